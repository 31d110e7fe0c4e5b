"""Names, sizes, halves and texts of the suites."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlm_loop import DirectAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.study import Study
from rlm_loop.tasks import get_suite, list_suites
from rlm_loop.tasks.long_context import FAMILIES, long_context, real_text, size_name, size_of


def test_names() -> None:
    assert [n for n in list_suites() if n.startswith("long")] == [f"long_context/{family}" for family in FAMILIES]
    suite = get_suite("long_context/needle@8k")
    assert (suite.name, len(suite)) == ("long_context/needle@8k", 8)
    assert get_suite("long-context/needle@8000") == suite
    assert get_suite("long_context/needle").name == "long_context/needle@100k"
    assert get_suite("long_context/needle@8k", tasks=2, seed=5).tasks != suite.tasks[:2]


def test_halves_are_alike() -> None:
    splits = [get_suite(f"long_context@32k/{split}", tasks=4) for split in ("dev", "test")]
    assert splits[0].name == "long_context@32k/dev"
    kinds = [[(t.facts["family"], t.facts["number"] // 2) for t in split] for split in splits]
    assert kinds[0] == kinds[1]
    assert len({t.id for split in splits for t in split}) == 4 * len(FAMILIES)


def test_sizes() -> None:
    sizes = [size_of(size) for size in ("8k", "1M", "100m", 2500, "1500k")]
    assert sizes == [8_000, 1_000_000, 100_000_000, 2_500, 1_500_000]
    assert [size_name(size) for size in sizes] == ["8k", "1M", "100M", "2500", "1500k"]


def test_the_same_seed_is_the_same_text() -> None:
    first, again = (long_context("records", "8k").tasks for _ in range(2))
    assert [t.material() for t in first] == [t.material() for t in again]
    other = long_context("records", "8k", seed=1).tasks
    assert all(a.material() != b.material() for a, b in zip(first, other, strict=True))
    assert len({t.material() for t in first}) == len(first)


@pytest.mark.slow
def test_a_suite_is_listed_without_its_texts() -> None:
    suite = get_suite("long_context@100M")
    assert len(suite) == 8 * len(FAMILIES)
    assert all(t.expected and t.question for t in suite)


def test_rows_say_which_text(tmp_path: Path) -> None:
    suite = replace(s := long_context("needle", "8k"), tasks=s.tasks[:1])
    model = ScriptedModel([str(suite.tasks[0].expected)])
    (row,) = Study("s", {"direct": DirectAgent(model=model, window=100)}, suite).run(tmp_path, False).rows
    assert (row["resolved"], row["facts"]["family"], row["facts"]["size"]) == (True, "needle", 8_000)
    assert real_text().label in row["facts"]["context"]
    assert len(model.prompts[0].messages[0].text) < 300


def test_the_window_of_direct() -> None:
    task = long_context("needle", "30k").tasks[0]
    seen: list[int] = []
    for window in (1_000, 20_000):
        model = ScriptedModel(["1"])
        DirectAgent(model=model, window=window).attempt(task)
        seen.append(len(model.prompts[0].messages[0].text) - len(task.question))
    assert seen[0] <= 1_002
    assert 19_000 < seen[1] <= 20_002
    assert DirectAgent(window=5).settings() != DirectAgent().settings()


def test_the_text_of_the_package() -> None:
    text = real_text()
    assert text.label == "documentation strings of Python 3.11.7, 1,608,420 characters, sha256 86d131c4f2c8d6d5"
    assert (max(text.text) <= "\xff", text.text[-1]) == (True, "\n")
