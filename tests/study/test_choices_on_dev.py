"""Texts and defaults are chosen on dev splits: by the files of the studies, and by the rows that are there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import dry_study as dry
import pytest

from rlm_loop.study import load_study_file
from rlm_loop.tasks import get_suite
from rlm_loop.tasks.base import current_suite

pytest.importorskip("pandas")

#: The studies by which something is chosen, with the options of each of their rounds.
CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("wording", {"kind": "all", "per_suite": 4}),
    ("wording", {"kind": "code", "first": 16}),
    ("tuning", {"round": 1}),
    ("tuning", {"round": 2}),
    ("context_dose", {"texts": "default"}),
]
NAMES = tuple(dict.fromkeys(name for name, _ in CHOICES))
ROWS = sorted(path for name in NAMES for path in (dry.EXPERIMENTS / name).rglob("results.jsonl*"))


@cache
def split_of(suite: str, task: str) -> str:
    """`dev` or `test`, by which split of its suite holds the task, whatever the row says of the split."""
    whole = current_suite(suite).rpartition("/")[0]
    found = [split for split in ("dev", "test") if task in {t.id for t in get_suite(f"{whole}/{split}")}]
    return " and ".join(found) or "none"


def outside(tasks: Iterable[tuple[str, str]]) -> list[str]:
    """What is not of a dev split, by its name or by the suite's own split."""
    return sorted({f"{s}: {t}" for s, t in tasks if not current_suite(s).endswith("/dev") or split_of(s, t) != "dev"})


@pytest.mark.parametrize(("name", "options"), CHOICES, ids=[f"{n}-{o}" for n, o in CHOICES])
def test_a_choice_is_made_on_dev_tasks(name: str, options: dict[str, Any]) -> None:
    study = load_study_file(dry.EXPERIMENTS / name, **options)
    assert outside((suite.name, task.id) for suite in study.suites for task in suite) == []


@pytest.mark.parametrize("path", ROWS, ids=[p.parent.relative_to(dry.EXPERIMENTS).as_posix() for p in ROWS])
def test_committed_rows_of_a_choice_are_of_dev_tasks(path: Path) -> None:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = [row for row in map(json.loads, raw.splitlines()) if "task" in row]
    assert rows
    assert outside((row["suite"], row["task"]) for row in rows) == []


def test_a_test_task_would_be_found() -> None:
    (test,) = get_suite("tables/test").tasks[:1]
    (dev,) = get_suite("tables/dev").tasks[:1]
    given = [("tables/dev", dev.id), ("tables/development", dev.id), ("tables/dev", test.id), ("tables/test", test.id)]
    assert outside(given) == [f"tables/dev: {test.id}", f"tables/test: {test.id}"]
