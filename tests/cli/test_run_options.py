"""What `rlm-loop run` makes of its limits, its workspace and its list of tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel

EDIT = '{"tool": "apply_edit", "arguments": {"path": "a.py", "start_line": 1, "end_line": 1, "replacement": "x = 2"}}'
DONE = '{"tool": "final_answer", "arguments": {"answer": "done"}}'


def run(*options: str, replies: tuple[str, ...] = (EDIT, DONE), agent: str = "lean") -> int:
    return main(
        ["run", "Set x to 2.", "--agent", agent, *options], models=lambda name, **_: ScriptedModel(list(replies))
    )


def started(path: Path) -> dict[str, Any]:
    return next(e for e in map(json.loads, path.read_text().splitlines()) if e["event"] == "run_start")


@pytest.mark.parametrize(
    ("agent", "options", "steps"),
    [
        ("lean", (), 20),
        ("tool-loop", ("--seconds", "60"), 20),
        ("react", (), 20),
        ("react", ("--max-steps", "60"), 60),
        ("lean", ("--max-steps", "3"), 3),
    ],
)
def test_an_agent_keeps_its_own_limit_of_steps(
    tmp_path: Path, agent: str, options: tuple[str, ...], steps: int
) -> None:
    run("-q", "--trace", str(tmp_path / "t.jsonl"), *options, agent=agent, replies=("Final Answer: 4",) * 4)
    assert started(tmp_path / "t.jsonl")["settings"]["budget"]["steps"] == steps


@pytest.mark.parametrize(("options", "repl"), [((), None), (("--repl", "plain"), "plain")])
def test_the_kind_of_session_is_passed_on(tmp_path: Path, options: tuple[str, ...], repl: str | None) -> None:
    run("-q", "--trace", str(tmp_path / "t.jsonl"), *options, replies=(DONE,))
    assert started(tmp_path / "t.jsonl")["made"]["with"].get("repl") == repl


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.py").write_text("x = 1\n")
    return tmp_path / "mine"


def test_a_workspace_is_a_copy_and_its_patch_is_kept(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--workspace", str(folder), "--patch", str(tmp_path / "p.diff"), "-q") == 0
    assert capsys.readouterr().out == "done\n"
    assert "-x = 1\n+x = 2\n" in (tmp_path / "p.diff").read_text()
    assert (folder / "a.py").read_text() == "x = 1\n"


def test_what_is_not_allowed_does_not_run(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--workspace", str(folder), "--allow", "read_file,search_code", "--json") == 0
    assert json.loads(capsys.readouterr().out)["artifact"] == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workspace", "/nowhere/at/all"), "/nowhere/at/all"),
        (("--patch", "p.diff"), "--workspace"),
        (("--allow", "read_file"), "read_file"),
        (("--max-step", "3"), "--max-steps"),
        (("--repl", "sandox"), "sandox"),
    ],
)
def test_misuse_is_one_line(options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    import re

    assert run("-q", *options) == 2
    err = capsys.readouterr().err
    assert re.search(said, err)
    assert err.count("\n") == 1
