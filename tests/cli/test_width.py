"""What the command line prints fits a terminal of 80 columns: help, tables, errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from lazy import needs

from rlm_loop import LeanAgent, ScriptedModel, Task, ToolLoopAgent
from rlm_loop.cli.main import app, main
from rlm_loop.study import Study

pytestmark = needs("pandas", "matplotlib", extra="studies")


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


HELP = [(*path, "--help") for path in commands(typer.main.get_command(app))]
RESULTS = [
    ("doctor",),
    ("models", "list"),
    ("study", "status", "runs"),
    ("study", "report", "runs"),
    ("study", "check", "runs"),
    ("trace", "show", "run.jsonl"),
]
ERRORS = [
    ("run", "How many?", "--model", "nonsense"),
    ("run", "How many?", "--repl", "sandox"),
    ("study", "status", "nowhere"),
    ("study", "run", "nowhere", "--set", "x"),
    ("trace", "show", "nowhere.jsonl"),
    ("compare", "study.txt"),
    ("study", "status", "--nonsense"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("width")
    arms: dict[str, Any] = {
        "a loop of calls with a long name": LeanAgent(
            model=ScriptedModel(["4"] * 4, name="local:a-model-of-a-long-name")
        ),
        "another loop": ToolLoopAgent(model=ScriptedModel(["5"] * 4, name="local:a-model-of-a-long-name")),
    }
    factors = {"max_steps": [5, 10]}
    Study("a-study-of-a-long-name", arms, [Task("a", "2 + 2?", 4), Task("b", "3 + 1?", 4)], factors=factors).run(
        folder / "runs", progress=False
    )
    LeanAgent(model=ScriptedModel(["4"])).run("What is " + "2 + " * 60 + "2?", trace=folder / "run.jsonl")
    (folder / "study.txt").touch()
    return folder


@pytest.mark.parametrize("argv", [*HELP, *RESULTS, *ERRORS], ids=" ".join)
def test_it_fits_80_columns(
    argv: tuple[str, ...], place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")
    code = main(argv)
    out, err = capsys.readouterr()
    assert code == (2 if argv in ERRORS else 0), err
    assert out + err
    assert [line for line in f"{out}\n{err}".splitlines() if len(line) > 80] == []


def test_a_pipe_gets_whole_lines(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.delenv("COLUMNS", raising=False)
    main(["study", "report", "runs"])
    assert max(map(len, capsys.readouterr().out.splitlines())) > 120
