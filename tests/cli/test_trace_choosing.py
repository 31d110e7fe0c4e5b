"""Every `trace` command reads the run that is named, and says which one it read where nobody named one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel

CELLS = ["```python\nprint('{0}')\n```", "```python\nfinal_answer = '{0}'\n```"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """A trace of three runs, `one` tried again, and their ids."""
    path = tmp_path_factory.mktemp("runs") / "run.jsonl"
    ids: dict[str, str] = {}
    for word in ("one", "two", "six"):
        model = ScriptedModel([cell.format(word) for cell in CELLS], name=f"model-{word}")
        ids[word] = ToolLoopAgent(model=model).run(f"The {word}?", trace=path).run
        if word == "one":
            again = {"run": ids[word], "event": "aborted", "at": 0, "reason": "tried again"}
            path.write_text(path.read_text() + json.dumps(again) + "\n")
    return str(path), ids


COMMANDS = {
    "show": ([], "answer: '{0}'"),
    "replay": ([], "same: 2 of 2 requests"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_run_is_named_by_its_id_or_number(
    file: tuple[str, dict[str, str]], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (path, ids), (options, says) = file, COMMANDS[name]
    for word, run in (("one", ids["one"]), ("two", "1"), ("six", "-1")):
        assert main(["trace", name, path, *options, "--run", run]) == 0
        out, err = capsys.readouterr()
        assert (says.format(word) in out, err) == (True, ""), out
    assert main(["trace", name, path, *options]) == 0
    out, err = capsys.readouterr()
    assert says.format("six") in out
    assert err.startswith(f"run {ids['six']}, one of 3 in ")
    assert main(["trace", name, path, *options, "--run", "nothing"]) == 2
    said = capsys.readouterr().err
    assert all(run in said for run in ids.values())


def test_a_fork_of_a_named_run(
    file: tuple[str, dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, ids = file
    words = [
        "trace",
        "fork",
        path,
        "--at",
        "1",
        "--run",
        ids["two"],
        "--trace",
        str(tmp_path / "fork.jsonl"),
        "--model",
        "local",
    ]
    assert main(words, models=lambda name, **_: ScriptedModel([CELLS[1].format("new")], name=name)) == 0
    assert "answer: 'new'" in capsys.readouterr().out
    start = json.loads((tmp_path / "fork.jsonl").read_text().splitlines()[0])
    assert (start["forked"]["run"], start["question"]) == (ids["two"], "The two?")


def test_a_file_of_strangers_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    start = {
        "run": "\x1b[2Jr1",
        "event": "run_start",
        "schema": 5,
        "at": 1e14,
        "agent": {"a": 1},
        "task": "\x1b]0;x\x07",
    }
    path.write_text(json.dumps(start) + "\n")
    assert main(["trace", "show", str(path), "--run", "\x1bx"]) == 2
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
