"""Folders of sessions: what cells changed in them is observed, and they are removed, whatever they hold."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL
from rlm_loop.repl.host.clearing import remove
from rlm_loop.repl.text import clip_again
from rlm_loop.traces import Trace

# -- effects

NOTHING: dict[str, Any] = {}


def told(*added: str, changed: tuple[str, ...] = (), removed: tuple[str, ...] = ()) -> Any:
    return {"added": [*added], "changed": [*changed], "removed": [*removed]}


STEPS: list[tuple[str, Any]] = [
    ("import os, shutil", NOTHING),  # the files that the session was made with are no effects
    ("open('kept.txt').read()", NOTHING),
    ("open('new.txt', 'w').write('n')", told("new.txt")),
    ("open('new.txt', 'a').write('n'); 1 / 0", told(changed=("new.txt",))),  # a cell that fails too
    ("os.rename('new.txt', 'other.txt')", told("other.txt", removed=("new.txt",))),
    ("shutil.rmtree('old')", told(removed=("old/", "old/a.txt"))),
    ("os.makedirs('a/b'); open('a/b/c', 'w').close()", told("a/", "a/b/", "a/b/c")),
    ("os.symlink('/', 'root')", told("root")),  # not followed
    ("open('kept.txt', 'w').write('9'); os.utime('kept.txt', (0, 0))", told(changed=("kept.txt",))),
    ("final_answer = 5", NOTHING),
]


def test_names_that_were_added_changed_and_removed() -> None:
    steps = [*STEPS, *([] if sys.platform == "darwin" else [("open(b'\\xff', 'w').close()", told("\\udcff"))])]
    with PythonREPL(launcher="plain", files={"kept.txt": "1", "old/a.txt": "2"}) as repl:
        assert [(code, repl.run(code).effects) for code, _ in steps] == steps


def test_many_files_are_counted_and_too_many_are_not_looked_at(bare: PythonREPL) -> None:
    assert len(bare.run("for i in range(300): open(f'f{i}', 'w').close()").effects["added"]) == 300
    flood = bare.run("for i in range(1500): open(f'g{i}', 'w').close()").effects
    assert "1000" in flood["unknown"]
    assert bare.run("x = 1").effects == flood


def test_a_folder_that_cannot_be_listed_is_said_to_be_unknown(tmp_path: Path) -> None:
    with PythonREPL(launcher="plain", cwd=tmp_path) as repl:
        assert repl.run("x = 1").effects == {}
        tmp_path.joinpath("between").write_text("")  # by the user, or a process that a cell left behind
        assert repl.run("x = 2").effects == told("between")
        assert "unknown" in repl.run("import os, shutil; shutil.rmtree(os.getcwd())").effects
        assert repl.run("x").output == "2"
        tmp_path.mkdir(exist_ok=True)
    assert tmp_path.is_dir()  # a folder that was given is kept


def test_effects_of_cells_are_in_the_trace() -> None:
    trace = Trace()
    replies = ["```python\nopen('a.txt', 'w').write('a')\n```", "```python\nfinal_answer = 1\n```"]
    ToolLoopAgent(model=ScriptedModel(replies), repl="plain").run("Write a file.", trace=trace)
    effects = [o["effects"] for e in trace.events if e["event"] == "turn" for o in e["observations"]]
    assert effects == [told("a.txt"), {}]


# -- clearing


def test_folders_of_any_depth_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    for _ in range(1500):
        os.mkdir("d")
        os.chdir("d")
    Path("file").touch()
    os.chdir(tmp_path)
    remove(there)
    assert not there.exists()


def test_no_link_is_followed_and_closed_folders_are_opened(tmp_path: Path) -> None:
    mine, there = tmp_path / "mine", tmp_path / "there"
    inner = there / "closed" / "inner"
    for folder in (mine, inner, there / ".removed-1-0"):
        folder.mkdir(parents=True)
    (mine / "kept").touch()
    (inner / "file").touch()
    (there / "link").symlink_to(mine)
    os.mkfifo(there / "pipe")
    inner.chmod(0)
    inner.parent.chmod(0o500)
    for path in (tmp_path / "nothing", mine / "kept", there / "link", there):
        remove(path)
    assert (there.exists(), (mine / "kept").exists()) == (False, True)


@pytest.mark.parametrize("number", ["9" * 5000, "٣", "12"])
def test_a_printed_look_alike_of_the_mark_is_text(number: str) -> None:
    text = f"{'a' * 60}\n... [{number} characters left out] ...\n{'b' * 60}"
    shown, cut = clip_again(text, 100)
    assert (cut, len(shown) <= 100) == (True, True)
