"""The command line: one-line errors, help, what is the same for every command, and what is served until Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer.main
from growth import parts
from lazy import needs
from served_commands import interrupted

from rlm_loop import LeanAgent, ScriptedModel, Task, ToolLoopAgent
from rlm_loop.cli.main import app
from rlm_loop.models import AuthenticationFailed, ModelError
from rlm_loop.repl import ReplError
from rlm_loop.study import Study


def one_line(err: str) -> str:
    lines = err.strip().splitlines()
    assert (len(lines), lines[0][:7]) == (1, "error: "), err
    return lines[0]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("run",), "question"),
        (("run", ""), "empty"),
        (("run", "Q?", "--agent", "wizard"), "tool-loop"),
        (("run", "Q?", "--max-steps", "-1"), "--max-steps"),
        (("run", "Q?", "--context", "does/not/exist.txt"), "does/not/exist"),
        (("run", "Q?", "--context", "/dev/null"), "/dev/null"),
        (("run", "-", "--context", "-"), "standard input"),
        (("run", "Q?", "--workspace", "/nowhere/at/all"), "/nowhere/at/all"),
        (("run", "Q?", "--patch", "p.diff"), "--workspace"),
        (("run", "Q?", "--allow", "read_file"), "read_file"),
        (("run", "Q?", "--max-step", "3"), "--max-steps"),
        (("run", "Q?", "--repl", "sandox"), "sandox"),
        (("nonsense",), "nonsense"),
        (("models", "pull"), "NAME"),
        (("meter", "--forward", "nowhere"), "nowhere"),
        (("meter", "--show", "nowhere"), "cannot read the trace"),
        (("view", "nowhere"), "nowhere"),
        (("view", __file__), "test_cli.py"),
        (("compare", "study.txt"), "study.txt"),
        (("study", "init", "study.yaml"), "study.yaml"),
        (("models", "pull", "no-such-model"), "smollm2-135m"),
        (("trace", "show", "does/not/exist.jsonl"), "does/not/exist"),
        *((("study", name, "does-not-exist"), "does-not-exist") for name in ("run", "report", "status")),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(line: Any, argv: tuple[str, ...], says: str) -> None:
    code, out, err = line(*argv)
    assert (code, out) == (2, "")
    assert says in one_line(err)


@pytest.mark.parametrize(
    "name", ["local:no-such-model", "nonsense", "local:/gone.gguf", "openai-compatible:x", "local:{}/broken.gguf"]
)
def test_a_wrong_model_is_one_line(line: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(100))
    code, _, err = line("run", "Q?", "--model", name.format(tmp_path), named=True)
    assert (code, "broken.gguf" in one_line(err.splitlines()[-1])) == (2, "broken" in name)


@pytest.mark.parametrize("raw", [b"\xff\xfea\x00", b"\x89PNG\r\n\x1a\n", b"caf\xe9"])
def test_a_context_that_is_not_text_is_one_line(line: Any, tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "context.bin").write_bytes(raw)
    code, _, err = line("run", "Q?", "--context", tmp_path / "context.bin")
    assert (code, "context.bin" in one_line(err)) == (2, True)


@pytest.mark.parametrize(
    "error", [AuthenticationFailed("set OPENAI_API_KEY"), ModelError("first line\nsecond line"), ReplError("full disk")]
)
def test_a_fault_that_is_not_the_users_is_one_line_also_for_machines(line: Any, error: Exception) -> None:
    code, out, err = line("run", "Q?", "--quiet", replies=(error,))
    assert (code, out, str(error).split()[0] in err.splitlines()[-1]) == (2, "", True)
    code, out, err = line("run", "Q?", "--json", replies=("```python\nprint(1)\n```", error))
    found = json.loads(out)
    assert (code, found["partial"]["steps"], "not expected" in one_line(err)) == (2, 1, False)
    assert found["error"].startswith(str(error).split()[0])


def test_what_nobody_expected_is_one_line_too_and_debug_shows_the_traceback(line: Any) -> None:
    code, _, err = line("run", "Q?", "-q", replies=(RuntimeError("odd"),))
    assert (code, "RuntimeError: odd" in one_line(err), "--debug" in err) == (2, True, True)
    for argv in (("--debug", "run", "Q?"), ("run", "Q?", "--debug")):
        with pytest.raises(ModelError):
            line(*argv, replies=())


def test_its_version_and_the_licences_and_state_of_models(line: Any, monkeypatch: Any, tmp_path: Path) -> None:
    assert line("--version")[1].startswith("rlm-loop 0.")
    monkeypatch.setenv("RLM_LOOP_CACHE", str(tmp_path))
    code, out, _ = line("models", "list")
    assert (code, out.count("absent"), "Apache-2.0" in out) == (0, 3, True)


@pytest.mark.slow
def test_the_program_is_installed_and_survives_a_closed_pipe(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "rlm_loop.cli.main", "--help"], capture_output=True, check=False)
    assert (done.returncode, b"Usage" in done.stdout) == (0, True)
    shell = f"{sys.executable} -m rlm_loop.cli.main run --help | true"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, check=False)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_view_is_served_until_it_is_interrupted(line: Any, tmp_path: Path, number: signal.Signals) -> None:
    def look(address: str) -> None:
        with urllib.request.urlopen(address) as answer:
            assert b"Episodes of" in answer.read()
        port = urlsplit(address).port
        code, _, err = line("view", tmp_path, "--port", port)  # it is taken
        assert (code, str(port) in one_line(err)) == (2, True)

    assert interrupted(number, look, "view", str(tmp_path), "--port", "0") == (0, "", "")
    assert list(tmp_path.iterdir()) == []


# -- what is printed fits a terminal of 80 columns: help, tables, errors


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


HELP = [(*path, "--help") for path in commands(typer.main.get_command(app))]
SHOWN = "doctor|models list|study status runs|study report runs|study check runs|trace show run.jsonl"
RESULTS = [tuple(words.split()) for words in parts(SHOWN)]
WRONG = (
    "run Q? --model nonsense|run Q? --repl sandox|study status nowhere|study run nowhere --set x|"
    "trace show nowhere.jsonl|compare study.txt|study status --nonsense"
)
ERRORS = [tuple(words.split()) for words in parts(WRONG)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("width")
    four, five = (ScriptedModel([reply] * 4, name="local:a-model-of-a-long-name") for reply in "45")
    arms = {"a loop of calls with a long name": LeanAgent(model=four), "another loop": ToolLoopAgent(model=five)}
    tasks = [Task("a", "2 + 2?", 4), Task("b", "3 + 1?", 4)]
    Study("a-study-of-a-long-name", arms, tasks, factors={"max_steps": [5, 10]}).run(folder / "runs", progress=False)
    LeanAgent(model=ScriptedModel(["4"])).run("What is " + "2 + " * 60 + "2?", trace=folder / "run.jsonl")
    (folder / "study.txt").touch()
    return folder


@needs("pandas", "matplotlib", extra="studies")
@pytest.mark.parametrize("argv", [*HELP, *RESULTS, *ERRORS], ids=" ".join)
def test_it_fits_80_columns(argv: tuple[str, ...], place: Path, monkeypatch: pytest.MonkeyPatch, line: Any) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = line(*argv, named=True)
    assert (code, bool(out + err)) == (2 if argv in ERRORS else 0, True), err
    assert [said for said in f"{out}\n{err}".splitlines() if len(said) > 80] == []
    if argv == ("study", "report", "runs"):  # a pipe gets whole lines
        monkeypatch.delenv("COLUMNS")
        assert max(map(len, line(*argv)[1].splitlines())) > 120
