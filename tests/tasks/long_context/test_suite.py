"""Names, sizes, halves and texts of the suites; and that nothing is read before it is needed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rlm_loop.models import ScriptedModel
from rlm_loop.study import Study
from rlm_loop.study.plan.grid import task_digest
from rlm_loop.tasks import Suite, get_suite, list_suites
from rlm_loop.tasks.long_context import FAMILIES, long_context, real_text, size_name, size_of
from rlm_loop.tasks.long_context.text import MARKERS


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


@pytest.mark.parametrize(
    ("size", "characters", "name"),
    [
        ("8k", 8_000, "8k"),
        ("1M", 1_000_000, "1M"),
        ("100m", 100_000_000, "100M"),
        (2500, 2_500, "2500"),
        ("1500k", 1_500_000, "1500k"),
    ],
)
def test_sizes(size: str | int, characters: int, name: str) -> None:
    assert size_of(size) == characters
    assert size_name(characters) == name


def test_the_same_seed_is_the_same_text(folder: str) -> None:
    first, again = (long_context("records", "8k", text=folder).tasks for _ in range(2))
    assert [t.material() for t in first] == [t.material() for t in again]
    other = long_context("records", "8k", seed=1, text=folder).tasks
    assert all(a.material() != b.material() for a, b in zip(first, other, strict=True))
    assert len({t.material() for t in first}) == len(first)


@pytest.mark.slow
def test_a_suite_is_listed_without_its_texts() -> None:
    suite = get_suite("long_context@100M", text="no/such/folder")
    assert len(suite) == 8 * len(FAMILIES)
    assert all(t.expected and t.question for t in suite)
    with pytest.raises(ValueError, match="there is no text 'no/such/folder'; choose 'docstrings'"):
        suite.tasks[0].material()


def test_a_digest_knows_the_text(folder: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text\n" * 50)
    task = long_context("needle", "8k", text=str(tmp_path)).tasks[0]
    before, said = task_digest(task), task.context.identify()
    assert real_text(str(tmp_path)).sha256[:16] in said
    assert "500 characters" in said
    (tmp_path / "a.txt").write_text("other text\n" * 50)
    real_text.cache_clear()
    assert task_digest(task) != before


def test_rows_say_which_text(folder: str, tmp_path: Path) -> None:
    from rlm_loop import DirectAgent

    suite = replace(s := long_context("needle", "8k", text=folder), tasks=s.tasks[:1])
    model = ScriptedModel([str(suite.tasks[0].expected)])
    (row,) = Study("s", {"direct": DirectAgent(model=model, window=100)}, suite).run(tmp_path, False).rows
    assert row["resolved"]
    assert row["facts"]["family"] == "needle"
    assert row["facts"]["size"] == 8_000
    assert real_text(folder).sha256[:16] in row["facts"]["context"]
    assert len(model.prompts[0].messages[0].text) < 300


def test_the_window_of_direct(folder: str) -> None:
    from rlm_loop import DirectAgent

    task = long_context("needle", "30k", text=folder).tasks[0]
    seen: list[int] = []
    for window in (1_000, 20_000):
        model = ScriptedModel(["1"])
        DirectAgent(model=model, window=window).attempt(task)
        seen.append(len(model.prompts[0].messages[0].text) - len(task.question))
    assert seen[0] <= 1_002
    assert 19_000 < seen[1] <= 20_002
    assert DirectAgent(window=5).settings() != DirectAgent().settings()


def test_a_folder_is_read_in_order_without_what_tasks_put_in(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_bytes("second\r\nĀ line beyond Latin-1\r\nlast".encode())
    (tmp_path / "a.txt").write_text("first\nRecord 3: city=Rome status=paid amount=5\nnäive\n", "utf-8")
    (tmp_path / ".hidden").write_text("no")
    (tmp_path / "picture.bin").write_bytes(b"\0\1")
    text = real_text(str(tmp_path))
    assert text.text == "first\nnäive\nsecond\nlast\n"
    assert text.window(8, 30) == "näive\nsecond\nlast\nfirst\nnäive\n"
    assert text.name == f"folder {tmp_path.name}"
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="there is no text in"):
        real_text(str(tmp_path / "empty"))


def test_the_text_of_the_package() -> None:
    text = real_text()
    assert text.label == (
        "documentation strings of Python 3.11.7, 1,608,420 characters, sha256 86d131c4f2c8d6d5"  # on every Python
    )
    assert not any(marker in text.text for marker in MARKERS)
    assert max(text.text) <= "\xff"
    assert text.text.endswith("\n")


def test_importing_the_registry_reads_no_family() -> None:
    program = "import sys, rlm_loop.tasks as t; t.list_suites(); print([m for m in sys.modules if 'long_context' in m])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_suite_is_a_suite() -> None:
    assert isinstance(long_context(), Suite)
