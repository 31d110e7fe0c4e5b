"""The log folder of runs without a trace of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlm_loop import LeanAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.traces import kept


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv(kept.LOG_VARIABLE, str(tmp_path / "log"))
    return tmp_path / "log"


@pytest.mark.parametrize(("files", "size"), [(2, 10_000), (100, 20)])
def test_the_oldest_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch, files: int, size: int) -> None:
    monkeypatch.setattr(kept, "_MOST_FILES", files)
    monkeypatch.setattr(kept, "_MOST_BYTES", size)
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.jsonl").write_text("x" * 10)
        os.utime(folder / f"{number}.jsonl", (number, number))
    (folder / "mine.txt").write_text("not a trace")
    kept.new_log()
    left = sorted(path.name for path in folder.iterdir())
    assert left == (["4.jsonl", "mine.txt"] if files == 2 else ["3.jsonl", "4.jsonl", "mine.txt"])


def test_a_folder_that_cannot_be_made_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(kept.LOG_VARIABLE, str(tmp_path / "file" / "log"))
    assert kept.new_log() is None


def test_a_script_keeps_nothing_and_a_notebook_does_where_others_cannot_look(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = LeanAgent(model=ScriptedModel(["42", "43"]))
    assert agent.run("What?").trace is None
    assert not folder.exists()
    monkeypatch.setattr(kept, "in_kernel", lambda: True)
    assert agent.run("What?").trace is not None
    assert (len(list(folder.iterdir())), folder.stat().st_mode & 0o077) == (1, 0)
