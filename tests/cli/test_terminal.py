"""Nothing that a model, a server or a file of others says steers the terminal, now or by a pipe that is shown later."""

from __future__ import annotations

import gzip
import json
import os
import pty
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.cli.main import main
from rlm_loop.models import ModelError, ScriptedModel

#: Sets the clipboard; clears the screen, with and without ESC; goes a line up; shows what follows from right to left.
HOSTILE = "\x1b]52;c;ZXZpbA==\x07|\x1b[2J|\x9b2J|\x1b[7A\r|\u202eneddih\u2066"
NEVER = ("\x1b]", "\x07", "\x1b[2J", "\x9b", "\x1b[7A", "\u202e", "\u2066")
CELL = f"Look: {HOSTILE}\n```python\nprint({HOSTILE!r})  # {HOSTILE}\nfinal_answer = {HOSTILE!r}\n```"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command line in a terminal, which nothing steers; gives all that came to it."""

    def run(*argv: str, model: Any = None) -> str:
        reader, terminal = pty.openpty()
        came: list[bytes] = []

        def read() -> None:
            with suppress(OSError):  # the other side is closed
                while part := os.read(reader, 65536):
                    came.append(part)

        thread = threading.Thread(target=read)
        thread.start()
        with open(terminal, "w", encoding="utf-8") as stream:
            assert stream.isatty()
            with monkeypatch.context() as patched:
                patched.setattr(sys, "stdout", stream)
                patched.setattr(sys, "stderr", stream)
                main(argv, models=lambda name, **_: model)
        thread.join()
        os.close(reader)
        text = b"".join(came).decode()
        assert [sequence for sequence in NEVER if sequence in text] == []
        return text

    return run


def test_a_run_and_an_error_of_a_provider(shown: Any) -> None:
    for more in ((), ("--quiet",), ("--json",)):
        assert "neddih" in shown("run", f"Q {HOSTILE}", *more, model=ScriptedModel([CELL], name=HOSTILE))
    assert "refused" in shown("run", "Q", model=ScriptedModel([ModelError(f"refused: {HOSTILE}", HOSTILE)]))


def test_until_a_turn_ends_a_line_says_what_goes_on(shown: Any) -> None:
    said = shown("run", "Q", model=ScriptedModel([CELL]))
    assert (said.count("turn 1: the model writes") >= 1, said.count("\r\x1b[K") > 1) == (True, True)


def test_a_trace_of_a_stranger(shown: Any, tmp_path: Path) -> None:
    """A run of which every text is hostile, and that ends at a limit."""
    trace = str(tmp_path / "run.jsonl")
    model = ScriptedModel([CELL.replace("final_answer =", "x ="), HOSTILE + "\n```python\n1/0\n```"], name=HOSTILE)
    ToolLoopAgent(model=model, budget=Budget(steps=2), repl="plain").run(HOSTILE, trace=trace)
    for argv in (("show",), ("replay",), ("show", "--json")):
        assert shown("trace", *argv, trace).strip()


def test_a_file_name_a_misuse_and_runs_of_a_stranger_that_are_listed(shown: Any, tmp_path: Path) -> None:
    start = {"event": "run_start", "run": HOSTILE, "schema": 5, "at": 1e14, "agent": {"a": 1}, "task": HOSTILE}
    (tmp_path / "run.jsonl").write_text(json.dumps(start) + "\n")
    for argv in (("trace", "show", HOSTILE), ("study", "report", HOSTILE), (HOSTILE,), ("run", "Q", f"--{HOSTILE}")):
        assert shown(*argv)
    assert shown("trace", "show", str(tmp_path / "run.jsonl"), "--run", HOSTILE)


def test_a_study_folder_of_a_stranger(shown: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = Path(__file__).parents[2] / "experiments" / "lean_vs_react" / "results"
    rows = gzip.decompress((source / "results.jsonl.gz").read_bytes()).decode()
    lock = (source / "study.json").read_text()
    hostile = json.dumps(HOSTILE)[1:-1]
    (tmp_path / "results.jsonl").write_text(rows.replace('"lean"', f'"lean{hostile}"').replace("answered", hostile))
    (tmp_path / "study.json").write_text(lock.replace('"lean"', f'"lean{hostile}"'))
    for name in ("report", "status"):
        assert shown("study", name, str(tmp_path))
    for argv in (("study", "report"), ("study", "status"), ("study", "check"), ("compare",)):
        main([*argv, str(tmp_path)])
    piped = "".join(capsys.readouterr())
    assert (piped.count("neddih") > 3, [sequence for sequence in NEVER if sequence in piped]) == (True, [])


def test_a_pipe_gets_the_answer_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    model = ScriptedModel([f"```python\nfinal_answer = {HOSTILE!r}\n```"])
    assert main(["run", "Q", "--quiet"], models=lambda name, **_: model) == 0
    assert capsys.readouterr().out == HOSTILE + "\n"
