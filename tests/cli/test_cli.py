"""The command line: exit codes, what goes to standard output, and one-line errors, with scripted models."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.cli.main import main
from rlm_loop.messages import Prompt
from rlm_loop.models import AuthenticationFailed, ModelError, ScriptedModel
from rlm_loop.repl import ReplError

CODE = "I compute.\n```python\nprint(6 * 7)\nfinal_answer = 6 * 7\n```"


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line with a scripted model; gives exit code, standard output and standard error."""

    def run(*argv: str, replies: tuple[Any, ...] = ()) -> tuple[int, str, str]:
        model = ScriptedModel(replies, name="local:scripted")
        code = main(argv, models=lambda name, **_: model)
        out, err = capsys.readouterr()
        return code, out, err

    return run


Line = Callable[..., tuple[int, str, str]]


def stdin(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))


# -- run


def test_an_answer_is_the_only_thing_on_standard_output(line: Line) -> None:
    code, out, err = line("run", "What is 6 * 7?", replies=(CODE,))
    assert code == 0
    assert out == "42\n"
    for part in ("turn 1", "I compute.", "print(6 * 7)", "tokens in", "answered: 1 turn"):
        assert part in err


def test_quiet_shows_the_answer_only(line: Line) -> None:
    assert line("run", "Q?", "--agent", "direct", "--quiet", replies=("Paris",)) == (0, "Paris\n", "")


@pytest.mark.parametrize("value", ["None", "0", "''", "False", "[]"])
def test_falsy_answers_are_answers(line: Line, value: str) -> None:
    code, out, _ = line("run", "Q?", "-q", replies=(f"```python\nfinal_answer = {value}\n```",))
    assert code == 0
    assert out.strip() == ("" if value == "''" else value)


def test_json_is_one_object_and_nothing_else(line: Line) -> None:
    code, out, err = line("run", "What is 6 * 7?", "--json", replies=(CODE,))
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    found = json.loads(out)
    assert found["answer"] == 42
    assert found["answered"] is True
    assert found["stop"] == "answered"
    assert found["steps"] == 1
    assert found["usage"]["calls"] == 1
    assert sum(found["input_tokens_by_cause"].values()) == found["usage"]["input_tokens"]


@pytest.mark.parametrize("value", ["float('nan')", "object()", "{1, 2}", "b'x'", "{1: 2}"])
def test_json_stays_json_whatever_the_answer_is(line: Line, value: str) -> None:
    code, out, _ = line("run", "Q?", "--json", replies=(f"```python\nfinal_answer = {value}\n```",))
    assert code == 0

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(out, parse_constant=refuse)


@pytest.mark.parametrize(
    ("options", "replies", "stop"),
    [
        (("--max-steps", "1"), ("```python\nprint(1)\n```",), "steps"),
        (("--max-steps", "0"), (), "steps"),
        (("--max-tokens", "10"), (), "tokens"),
        (("--seconds", "0"), (), "seconds"),
        ((), ("", " ", "  "), "malformed"),
        ((), ("```python\nprint(1)\n```",) * 3, "repeated"),
    ],
)
def test_a_run_without_an_answer_exits_with_1_and_says_why(
    line: Line, options: tuple[str, ...], replies: tuple[str, ...], stop: str
) -> None:
    code, _, err = line("run", "Q?", *options, replies=replies)
    assert code == 1
    assert stop in err
    code, out, _ = line("run", "Q?", "--json", *options, replies=replies)
    assert code == 1
    assert json.loads(out)["stop"] == stop


@pytest.mark.parametrize(
    ("agent", "reply"),
    [
        ("tool-loop", CODE),
        ("lean", '{"name": "final_answer", "arguments": {"answer": 42}}'),
        ("react", 'Thought: I know.\nAction: finish\nAction Input: {"answer": 42}'),
        ("direct", "42"),
    ],
)
def test_every_strategy_runs(line: Line, agent: str, reply: str) -> None:
    code, out, err = line("run", "What is 6 * 7?", "--agent", agent, replies=(reply,))
    assert code == 0, err
    assert out.strip() == "42"


def test_the_context_reaches_the_repl_exactly(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "context.txt"
    raw = "a\r\nb\u2028\x00ä\n".encode()
    file.write_bytes(raw)
    reply = "```python\nfinal_answer = context.encode().hex()\n```"
    assert line("run", "Q?", "-q", "--context", str(file), replies=(reply,))[1].strip() == raw.hex()


def test_context_and_question_from_standard_input(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"some text")
    reply = "```python\nfinal_answer = len(context)\n```"
    assert line("run", "Q?", "-q", "--context", "-", replies=(reply,))[:2] == (0, "9\n")
    stdin(monkeypatch, b"What?")
    seen: list[Prompt] = []

    def answer(prompt: Prompt) -> str:
        seen.append(prompt)
        return "so"

    assert line("run", "-", "-q", "--agent", "direct", replies=(answer,))[0] == 0
    assert "What?" in seen[0].messages[-1].text


def test_a_trace_is_written_and_shown(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    assert line("run", "What is 6 * 7?", "-q", "--trace", str(file), replies=(CODE,))[0] == 0
    code, out, _ = line("trace", "show", str(file))
    assert code == 0
    for part in ("What is 6 * 7?", "turn 1", "print(6 * 7)", "42", "answered"):
        assert part in out
    code, out, _ = line("trace", "show", str(file), "--json")
    assert json.loads(out)["answer"] == 42


def test_a_run_without_a_place_goes_to_the_log(line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_LOOP_LOG", str(tmp_path / "log"))
    code, out, err = line("run", "What is 6 * 7?", "-q", replies=(CODE,))
    assert (code, out) == (0, "42\n")
    assert str(tmp_path / "log") in err
    (trace,) = (tmp_path / "log").iterdir()
    assert "What is 6 * 7?" in line("trace", "show", str(trace))[1]
    assert line("run", "What is 6 * 7?", "-q", replies=(CODE,))[2] == ""  # the place is said once
    assert len(list((tmp_path / "log").iterdir())) == 2
    monkeypatch.setenv("RLM_LOOP_LOG", "off")
    line("run", "What is 6 * 7?", "-q", replies=(CODE,))
    assert len(list((tmp_path / "log").iterdir())) == 2
    assert "RLM_LOOP_LOG" in line("view")[2]


def test_ctrl_c_keeps_the_partial_answer_and_says_where_the_trace_is(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    cell = "```python\nfinal_answer = 'so far'\n1 / 0\n```"
    code, out, err = line("run", "Q?", "--trace", str(file), replies=(cell, KeyboardInterrupt))
    assert code == 130
    assert out == "so far\n"
    assert f"rlm-loop trace show {file}" in err
    code, out, _ = line("run", "Q?", "--json", replies=(cell, KeyboardInterrupt))
    assert code == 130
    assert json.loads(out)["stop"] == "interrupted"


# -- errors


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
        (("nonsense",), "nonsense"),
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
