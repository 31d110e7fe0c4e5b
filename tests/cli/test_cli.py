"""The command line: one-line errors, help, and what is the same for every command, with scripted models."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_loop.cli.main import main
from rlm_loop.models import AuthenticationFailed, ModelError
from rlm_loop.repl import ReplError

Line = Callable[..., tuple[int, str, str]]


def one_line(err: str) -> str:
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("error: ")
    assert "Traceback" not in err
    return lines[0]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("run",), "question"),
        (("run", ""), "empty"),
        (("run", "Q?", "--agent", "wizard"), "tool-loop"),
        (("run", "Q?", "--max-steps", "-1"), "--max-steps"),
        (("run", "Q?", "--max-steps", "many"), "--max-steps"),
        (("run", "Q?", "--nonsense"), "--nonsense"),
        (("run", "Q?", "--context", "does/not/exist.txt"), "does/not/exist"),
        (("run", "Q?", "--context", "/dev/null"), "/dev/null"),
        (("run", "-", "--context", "-"), "standard input"),
        (("run", "Q?", "--workspace", "/nowhere/at/all"), "/nowhere/at/all"),
        (("run", "Q?", "--patch", "p.diff"), "--workspace"),
        (("run", "Q?", "--allow", "read_file"), "read_file"),
        (("run", "Q?", "--max-step", "3"), "--max-steps"),
        (("run", "Q?", "--repl", "sandox"), "sandox"),
        (("nonsense",), "nonsense"),
        (("meter", "--forward", "nowhere"), "nowhere"),
        (("meter", "--show", "nowhere"), "cannot read the trace"),
        (("view", "nowhere"), "nowhere"),
        (("compare", "study.txt"), "study.txt"),
        (("study", "init", "study.yaml"), "does not end in .py"),
        (("models", "pull", "no-such-model"), "smollm2-135m"),
        (("models", "pull"), "NAME"),
        (("trace", "show", "does/not/exist.jsonl"), "does/not/exist"),
        (("study", "run", "does-not-exist"), "does-not-exist"),
        (("study", "report", "does-not-exist"), "does-not-exist"),
        (("study", "status", "does-not-exist"), "does-not-exist"),
        (("demo", "--experiment", "does-not-exist"), "repository"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(line: Line, argv: tuple[str, ...], says: str) -> None:
    code, out, err = line(*argv)
    assert (code, out) == (2, "")
    assert says in one_line(err)


@pytest.mark.parametrize(
    "name", ["local:no-such-model", "nonsense", "local:/does/not/exist.gguf", "openai-compatible:x"]
)
def test_a_wrong_model_name_is_one_line(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["run", "Q?", "--model", name]) == 2
    assert "error: " in one_line(capsys.readouterr().err.splitlines()[-1])


def test_a_file_that_is_no_model_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF" + bytes(100))
    assert main(["run", "Q?", "-q", "--model", f"local:{file}"]) == 2
    assert "broken.gguf" in one_line(capsys.readouterr().err)


@pytest.mark.parametrize("raw", [b"\xff\xfea\x00", b"\x89PNG\r\n\x1a\n", b"caf\xe9"])
def test_a_context_that_is_not_text_is_one_line(line: Line, tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "context.bin"
    file.write_bytes(raw)
    code, _, err = line("run", "Q?", "--context", str(file))
    assert code == 2
    assert "context.bin" in one_line(err)


@pytest.mark.parametrize(
    "error",
    [
        AuthenticationFailed("set OPENAI_API_KEY"),
        ModelError("first line\nsecond line"),
        ReplError("the REPL's files cannot be written: free some space"),
    ],
)
def test_a_fault_that_is_not_the_users_is_one_line_also_for_machines(line: Line, error: Exception) -> None:
    code, out, err = line("run", "Q?", "--quiet", replies=(error,))
    assert (code, out) == (2, "")
    assert str(error).split()[0] in err.splitlines()[-1]
    code, out, err = line("run", "Q?", "--json", replies=("```python\nprint(1)\n```", error))
    assert code == 2
    found = json.loads(out)
    assert found["error"].startswith(str(error).split()[0])
    assert found["partial"]["steps"] == 1
    assert "not expected" not in one_line(err)


def test_debug_shows_the_traceback(line: Line) -> None:
    for argv in (("--debug", "run", "Q?"), ("run", "Q?", "--debug")):
        with pytest.raises(ModelError):
            line(*argv, replies=())


def test_what_nobody_expected_is_one_line_too(line: Line) -> None:
    code, _, err = line("run", "Q?", "-q", replies=(RuntimeError("odd"),))
    assert code == 2
    assert "RuntimeError: odd" in one_line(err)
    assert "--debug" in err


# -- the rest


def test_help_and_version(line: Line) -> None:
    code, out, _ = line("--help")
    assert code == 0
    for command in ("run", "models", "study", "trace", "demo"):
        assert command in out
    assert line("--version")[1].startswith("rlm-loop 0.")
    assert line("run", "--help")[0] == 0


def test_models_list_names_licences_and_state(line: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLM_LOOP_CACHE", str(tmp_path))
    code, out, _ = line("models", "list")
    assert code == 0
    assert out.count("absent") == 3
    assert "Apache-2.0" in out


@pytest.mark.slow
def test_the_program_is_installed_and_survives_a_closed_pipe(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "rlm_loop.cli.main", "--help"], capture_output=True, check=False)
    assert done.returncode == 0
    assert b"Usage" in done.stdout
    shell = f"{sys.executable} -m rlm_loop.cli.main run --help | true"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
