"""`rlm-loop run`: exit codes, standard output, limits, tools and workspaces."""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.messages import Prompt
from rlm_loop.models import ScriptedModel
from tests.agents.replies import code as cell
from tests.agents.replies import react, written

CODE = "I compute.\n" + cell("print(6 * 7)\nfinal_answer = 6 * 7")
REACT, DONE = react("finish", answer=42), written("final_answer", answer=42)


def test_an_answer_is_the_only_thing_on_standard_output(line: Any) -> None:
    code, out, err = line("run", "What is 6 * 7?", replies=(CODE,))
    assert (code, out) == (0, "42\n")
    said = ("turn 1", "I compute.", "print(6 * 7)", "tokens in", "answered: 1 turn")
    assert [part for part in said if part not in err] == []
    assert line("run", "Q?", "--agent", "direct", "--quiet", replies=("Paris",)) == (0, "Paris\n", "")


def test_a_warning_is_a_line(line: Any) -> None:
    def warned(_: Prompt) -> str:
        warnings.simplefilter("always")
        warnings.warn("paper is low", RuntimeWarning, stacklevel=1)
        return "Paris"

    shown = line("run", "Q?", "--agent", "direct", "--quiet", replies=(warned,))
    assert shown == (0, "Paris\n", "note: paper is low\n")


def test_json_is_one_object_and_nothing_else(line: Any) -> None:
    code, out, err = line("run", "What is 6 * 7?", "--json", replies=(CODE,))
    assert (code, err, out.count("\n")) == (0, "", 1)
    found = json.loads(out)
    assert [found[name] for name in ("answer", "answered", "stop", "steps")] == [42, True, "answered", 1]
    assert found["usage"]["calls"] == 1
    assert sum(found["input_tokens_by_cause"].values()) == found["usage"]["input_tokens"]


@pytest.mark.parametrize("value", ["None", "0", "''", "False", "[]"])
def test_falsy_answers_are_answers(line: Any, value: str) -> None:
    code, out, _ = line("run", "Q?", "-q", replies=(cell(f"final_answer = {value}"),))
    assert (code, out.strip()) == (0, value.strip("'"))


@pytest.mark.parametrize("value", ["float('nan')", "object()", "{1, 2}", "b'x'", "{1: 2}"])
def test_json_stays_json_whatever_the_answer_is(line: Any, value: str) -> None:
    code, out, _ = line("run", "Q?", "--json", replies=(cell(f"final_answer = {value}"),))
    assert (code, json.loads(out, parse_constant=pytest.fail)["answered"]) == (0, True)


@pytest.mark.parametrize(
    ("options", "replies", "stop"),
    [
        (("--max-steps", "1"), (cell("print(1)"),), "steps"),
        (("--max-tokens", "10"), (), "tokens"),
        (("--seconds", "0"), (), "seconds"),
        ((), ("", " ", "  "), "malformed"),
        ((), (cell("print(1)"),) * 3, "repeated"),
    ],
)
def test_no_answer_is_exit_code_1_and_says_why(line: Any, options: Any, replies: Any, stop: str) -> None:
    code, _, err = line("run", "Q?", *options, replies=replies)
    assert (code, stop in err) == (1, True)
    code, out, _ = line("run", "Q?", "--json", *options, replies=replies)
    assert (code, json.loads(out)["stop"]) == (1, stop)


@pytest.mark.parametrize(
    ("agent", "reply", "options", "steps"),
    [
        ("tool-loop", CODE, ("--seconds", "60"), 20),
        ("lean", DONE, ("--max-steps", "3"), 3),
        ("react", REACT, (), 20),
        ("react", REACT, ("--max-steps", "60"), 60),
    ],
)
def test_every_strategy_runs_and_keeps_its_own_limit_of_steps(
    line: Any, tmp_path: Path, agent: str, reply: str, options: tuple[str, ...], steps: int
) -> None:
    trace = tmp_path / "t.jsonl"
    assert line("run", "Q?", "--agent", agent, "-q", "--trace", trace, *options, replies=(reply,))[:2] == (0, "42\n")
    assert json.loads(trace.read_text().splitlines()[0])["settings"]["budget"]["steps"] == steps


def test_the_context_reaches_the_repl_exactly(line: Any, tmp_path: Path) -> None:
    raw = "a\r\nb\u2028\x00ä\n".encode()
    (tmp_path / "context.txt").write_bytes(raw)
    reply = cell("final_answer = context.encode().hex()")
    assert line("run", "Q?", "-q", "--context", tmp_path / "context.txt", replies=(reply,))[1].strip() == raw.hex()


def test_context_and_question_from_standard_input(line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stdin(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))

    stdin("some text")
    reply = cell("final_answer = len(context)")
    assert line("run", "Q?", "-q", "--context", "-", replies=(reply,))[:2] == (0, "9\n")
    stdin("What?")
    model = ScriptedModel(["so"])
    assert line("run", "-", "-q", "--agent", "direct", model=model)[0] == 0
    assert "What?" in model.prompts[0].messages[-1].text


def test_a_run_without_a_place_goes_to_the_log_and_is_shown(line: Any, tmp_path: Path, monkeypatch: Any) -> None:
    log, run = tmp_path / "log", ("run", "What is 6 * 7?", "-q")
    monkeypatch.setenv("RLM_LOOP_LOG", str(log))
    code, out, err = line(*run, replies=(CODE,))
    assert (code, out, str(log) in err) == (0, "42\n", True)
    (trace,) = log.iterdir()
    shown, said = line("trace", "show", trace)[1], ("What is 6 * 7?", "turn 1", "print(6 * 7)", "42", "answered")
    assert [part for part in said if part not in shown] == []
    assert json.loads(line("trace", "show", trace, "--json")[1])["answer"] == 42
    assert line(*run, replies=(CODE,))[2] == ""  # the place is said once
    monkeypatch.setenv("RLM_LOOP_LOG", "off")
    line(*run, replies=(CODE,))
    assert (len(list(log.iterdir())), "RLM_LOOP_LOG" in line("view")[2]) == (2, True)


def test_ctrl_c_keeps_the_partial_answer_and_says_where_the_trace_is(line: Any, tmp_path: Path) -> None:
    replies = (cell("final_answer = 'so far'\n1 / 0"), KeyboardInterrupt)
    code, out, err = line("run", "Q?", "--trace", tmp_path / "run.jsonl", replies=replies)
    assert (code, out) == (130, "so far\n")
    assert f"rlm-loop trace show {tmp_path / 'run.jsonl'}" in err
    code, out, _ = line("run", "Q?", "--json", replies=replies)
    assert (code, json.loads(out)["stop"]) == (130, "interrupted")


EDIT = written("apply_edit", path="a.py", start_line=1, end_line=1, replacement="x = 2")


def test_a_workspace_is_a_copy_its_patch_is_kept_and_what_is_not_allowed_is_not_run(line: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.py").write_text("x = 1\n")
    run = ("run", "Set x to 2.", "--agent", "lean", "--workspace", tmp_path / "mine")
    assert line(*run, "--patch", tmp_path / "p.diff", "-q", replies=(EDIT, DONE))[:2] == (0, "42\n")
    assert "-x = 1\n+x = 2\n" in (tmp_path / "p.diff").read_text()
    code, out, _ = line(*run, "--allow", "read_file,search_code", "--json", replies=(EDIT, DONE))
    assert (code, json.loads(out)["artifact"]) == (0, "")
    assert (tmp_path / "mine" / "a.py").read_text() == "x = 1\n"


SERVER = f"{sys.executable} {Path(__file__).parents[1] / 'tools' / 'mcp_server.py'}"


@pytest.mark.slow
def test_a_server_gives_its_tools_and_one_that_is_not_there_is_said(line: Any) -> None:
    pytest.importorskip("mcp")
    reply = cell("final_answer = int(add_numbers(1, 2))")
    assert line("run", "Q?", "-q", "--tools", SERVER, "--allow", "add_numbers", replies=(reply,))[:2] == (0, "3\n")
    code, _, err = line("run", "Q?", "-q", "--tools", SERVER, "--allow", "add_number")
    assert (code, "add_numbers" in err) == (2, True)
    code, _, err = line("run", "Q?", "-q", "--tools", "no-such-command --x")
    assert (code, "no-such-command" in err) == (2, True)
