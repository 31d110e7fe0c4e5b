"""`rlm-loop run`: exit codes, standard output, limits, tools, workspaces, and approval in the terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.messages import Prompt
from rlm_loop.models import ScriptedModel

CODE = "I compute.\n```python\nprint(6 * 7)\nfinal_answer = 6 * 7\n```"
Line = Callable[..., tuple[int, str, str]]


def stdin(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))


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


# -- limits and workspaces

EDIT = '{"tool": "apply_edit", "arguments": {"path": "a.py", "start_line": 1, "end_line": 1, "replacement": "x = 2"}}'
DONE = '{"tool": "final_answer", "arguments": {"answer": "done"}}'


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
    line: Line, tmp_path: Path, agent: str, options: tuple[str, ...], steps: int
) -> None:
    trace = tmp_path / "t.jsonl"
    line("run", "Q?", "--agent", agent, "-q", "--trace", trace, *options, replies=("Final Answer: 4",) * 4)
    assert started(trace)["settings"]["budget"]["steps"] == steps


@pytest.mark.parametrize(("options", "repl"), [((), None), (("--repl", "plain"), "plain")])
def test_the_kind_of_session_is_passed_on(
    line: Line, tmp_path: Path, options: tuple[str, ...], repl: str | None
) -> None:
    line("run", "Q?", "--agent", "lean", "-q", "--trace", tmp_path / "t.jsonl", *options, replies=(DONE,))
    assert started(tmp_path / "t.jsonl")["made"]["with"].get("repl") == repl


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.py").write_text("x = 1\n")
    return tmp_path / "mine"


def test_a_workspace_is_a_copy_and_its_patch_is_kept(line: Line, folder: Path, tmp_path: Path) -> None:
    options = ("--agent", "lean", "--workspace", folder, "--patch", tmp_path / "p.diff", "-q")
    assert line("run", "Set x to 2.", *options, replies=(EDIT, DONE))[:2] == (0, "done\n")
    assert "-x = 1\n+x = 2\n" in (tmp_path / "p.diff").read_text()
    assert (folder / "a.py").read_text() == "x = 1\n"


def test_what_is_not_allowed_does_not_run(line: Line, folder: Path) -> None:
    options = ("--agent", "lean", "--workspace", folder, "--allow", "read_file,search_code", "--json")
    code, out, _ = line("run", "Set x to 2.", *options, replies=(EDIT, DONE))
    assert (code, json.loads(out)["artifact"]) == (0, "")


# -- tools

SERVER = f"{sys.executable} {Path(__file__).parents[1] / 'tools' / 'mcp_server.py'}"
FILE = '''
from rlm_loop import tool
from helper import ONE

@tool
def double(x: int) -> int:
    """Twice as much."""
    return 2 * x + ONE - 1

def not_offered() -> None:
    """No tool."""
'''


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "helper.py").write_text("ONE = 1\n")
    monkeypatch.syspath_prepend(tmp_path.parent)  # so that what the file adds to sys.path is seen to go
    return str(tmp_path / "mine.py")


DOUBLED = "```python\nfinal_answer = double(21)\n```"


def test_a_file_gives_its_marked_functions(line: Line, file: str) -> None:
    assert line("run", "Q?", "-q", "--tools", file, "--allow", "double", replies=(DOUBLED,))[:2] == (0, "42\n")
    assert str(Path(file).parent) not in sys.path
    code, _, err = line("run", "Q?", "-q", "--tools", file, "--allow", "dubble")
    assert (code, "double" in err) == (2, True)


@pytest.mark.slow
def test_a_server_and_a_file_together(line: Line, file: str) -> None:
    pytest.importorskip("mcp")
    cell = "```python\nfinal_answer = double(int(add_numbers(1, 2)))\n```"
    assert line("run", "Q?", "-q", "--tools", SERVER, "--tools", file, replies=(cell,))[:2] == (0, "6\n")


@pytest.mark.parametrize(
    ("source", "text", "said"),
    [
        ("gone.py", None, "gone.py"),
        ("bad.py", "1 / 0", "ZeroDivisionError"),
        ("none.py", "def f():\n    'No tool.'\n", "@tool"),
        ("no-such-command --x", None, "no-such-command"),
    ],
)
def test_what_gives_no_tools_is_said(line: Line, tmp_path: Path, source: str, text: str | None, said: str) -> None:
    if source.endswith(".py"):
        source = str(tmp_path / source)
        if text is not None:
            Path(source).write_text(text)
    else:
        pytest.importorskip("mcp")
    code, _, err = line("run", "Q?", "-q", "--tools", source, replies=(DOUBLED,))
    assert (code, said in err) == (2, True)


# -- approval

CELL = "```python\nprint('ran', 6 * 7)\n```"
MORE = "```python\nprint('again')\n```"


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Standard input is a terminal at which these lines were typed."""
    keyboard, terminal = pty.openpty()

    def type_(text: str) -> None:
        os.write(keyboard, text.encode())
        monkeypatch.setattr(sys, "stdin", os.fdopen(os.dup(terminal)))

    yield type_
    sys.stdin.close()
    os.close(keyboard)
    os.close(terminal)


@pytest.mark.parametrize(
    ("lines", "ran", "told"),
    [
        ("y\ny\n", ["ran 42", "again"], ""),
        ("a\n", ["ran 42", "again"], ""),
        ("n\ny\n", ["again"], "not approved"),
        ("\nn\n", [], "not approved"),
        ("do not print\nall\n", ["again"], "not approved: do not print"),
        ("\x04\x04", [], "nobody could be asked"),  # the end of the input
    ],
)
def test_what_the_user_types_decides(line: Line, typed: Any, lines: str, ran: list[str], told: str) -> None:
    typed(lines)
    model = ScriptedModel([CELL, MORE, "Done."])
    code, out, err = line("run", "Q?", "--approve", "--quiet", model=model)
    assert (code, out.endswith("Done.\n")) == (0, True)
    assert "print('ran', 6 * 7)" in err
    said = "\n".join(m.text for m in model.prompts[-1].messages if m.role != "assistant")
    assert [one for one in said.splitlines() if one in ("ran 42", "again")] == ran
    assert told in said


@pytest.mark.parametrize("argv", [["Q?"], ["-"], ["Q?", "--context", "-"]])
def test_without_a_terminal_nothing_starts(line: Line, argv: list[str]) -> None:
    model = ScriptedModel([CELL])
    code, _, err = line("run", *argv, "--approve", model=model)
    assert (code, "--approve" in err, model.prompts) == (2, True, [])
