"""The scripted session through other frameworks: its replies, what of a prompt is scaffold, the tables, the results."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm_loop.messages import Message, Prompt, Span, ToolCall, say
from rlm_loop.models import ScriptedModel

HERE = Path(__file__).parents[2] / "experiments" / "peers"
MODULES = ("attribution", "build", "contenders", "driving", "overhead", "records", "run", "tables", "times")
FORMS = ("repl", "tags", "python", "command", "fields_code", "fields_calls", "bash_call", "calls", "calls_final")


@pytest.fixture(scope="module")
def peers() -> Iterator[Any]:
    """The modules of the experiment, imported as its commands import them."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in (*MODULES, "wire_session")})
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(HERE)):
            del sys.modules[name]


def shown(steps: Any, observation: str, extra: str = "") -> Prompt:
    """A chat that sends the replies back as they were, each with its observation."""
    messages = [say("system", "You are a helpful assistant.", "system"), say("user", "Do: ", "task")]
    for step in steps:
        messages.append(Message("assistant", (Span(step.reply.text, "assistant"),), step.reply.tool_calls))
        messages.append(say("user", f"{extra}Output:\n{observation}\n", "tool_result"))
    return Prompt(tuple(messages))


def texts_of(prompt: Prompt, cause: str) -> list[str]:
    return [span.text for message in prompt.messages for span in message.spans if span.cause == cause]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_the_same_actions_and_an_end(peers: Any, form: str) -> None:
    steps = peers.wire_session.session(form, 25)
    assert len(steps) == (27 if form == "fields_calls" else 26)  # dspy's ReAct asks once more
    actions = [json.dumps([step.reply.text, [c.arguments for c in step.reply.tool_calls]]) for step in steps[:25]]
    assert len(set(actions)) == 25  # none is the same again, which some loops take for a dead end
    assert all(peers.wire_session.THOUGHT in step.reply.text for step in steps[:25])
    for step in steps:
        for piece in step.pieces:
            written = step.reply.text + "".join(f'"{c.name}"{c.arguments}' for c in step.reply.tool_calls)
            assert any(text in written for text in piece)
    fragments = {peers.wire_session.SENTENCE} if "look" not in actions[0] and "record.txt" not in actions[0] else set()
    assert all(fragment in action for fragment in fragments for action in actions)
    assert all(peers.wire_session.OBSERVATION not in action for action in actions)


def test_the_line_of_code_prints_the_observation(peers: Any) -> None:
    text = peers.wire_session.session("python", 1)[0].reply.text
    code = text.partition("```python\n")[2].partition("\n```")[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == peers.wire_session.OBSERVATION


@pytest.mark.parametrize("form", FORMS)
def test_only_what_a_framework_added_is_scaffold(peers: Any, form: str) -> None:
    session, task = peers.wire_session, peers.wire_session.TASK
    steps = session.session(form, 3)[:3]
    prompt = shown(steps, session.OBSERVATION)
    messages = (prompt.messages[0], say("user", f"Do: {task} Go!", "task"), *prompt.messages[2:])
    found = peers.attribution.attribute(Prompt(messages), steps)
    assert found.missing == ()
    assert texts_of(found.prompt, "task") == [task]
    assert texts_of(found.prompt, "observation") == [session.OBSERVATION] * 3
    assert texts_of(found.prompt, "scaffold")[:3] == ["You are a helpful assistant.", "Do: ", " Go!"]
    added = [text for text in texts_of(found.prompt, "scaffold")[3:] if "[[ ##" not in text]
    assert {text for text in added if text.strip()} == {"Output:\n"}


def test_second_copies_are_scaffold(peers: Any) -> None:
    session = peers.wire_session
    steps = session.session("tags", 2)[:2]
    echo = f"Calling tools: {steps[0].reply.text} {session.TASK}\n"
    prompt = shown(steps, session.OBSERVATION, echo)
    prompt = Prompt((prompt.messages[0], say("user", session.TASK, "task"), *prompt.messages[2:]))
    found = peers.attribution.attribute(prompt, steps)
    assert found.missing == ()
    assert len(texts_of(found.prompt, "task")) == 1
    assert len(texts_of(found.prompt, "reply")) == 2
    assert sum(echo in text for text in texts_of(found.prompt, "scaffold")) == 2


def test_a_call_that_is_sent_back_with_other_spaces_is_the_same_call(peers: Any) -> None:
    session = peers.wire_session
    steps = session.session("calls", 1)[:1]
    call = ToolCall("other", "look", '{"number":1}')
    said = Message("assistant", (Span(session.THOUGHT, "assistant"),), (call,))
    answered = say("tool", session.OBSERVATION, "tool_result")
    prompt = Prompt((say("user", session.TASK, "task"), said, answered))
    assert peers.attribution.attribute(prompt, steps).missing == ()
    other = Prompt((prompt.messages[0], Message("assistant", said.spans, ()), answered))
    assert len(peers.attribution.attribute(other, steps).missing) == 2


def test_what_a_framework_does_not_show_again_is_named(peers: Any) -> None:
    session = peers.wire_session
    steps = session.session("python", 2)[:2]
    missing = peers.attribution.attribute(shown(steps[:1], session.OBSERVATION), steps).missing
    assert missing[0] == "the task"
    assert any("turn 2" in what and "observation" in what for what in missing)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_no_character_is_lost(peers: Any, texts: list[str]) -> None:
    prompt = Prompt(tuple(say("user", text, "task") for text in texts))
    found = peers.attribution.attribute(prompt, peers.wire_session.session("repl", 2)).prompt
    assert [message.text for message in found.messages] == texts


RECORDED = {
    "peer": "rlms", "turns": 2, "error": None, "calls": 4, "billed": [16, 27, 38, 40], "agrees": True, "unfound": [],
    "tokens": {"task": [1, 1, 1, 1], "reply": [0, 2, 4, 4], "observation": [0, 4, 8, 8], "scaffold": [10, 13, 16, 18],
               "tool_schema": [3, 3, 3, 3], "template": [2, 4, 6, 6]},
}  # fmt: skip


def test_the_figures_of_a_small_recording(peers: Any) -> None:
    figures = peers.tables.overhead(RECORDED)
    assert (figures.first, figures.per_turn, figures.total) == (10, 3.0, 57)
    assert (figures.schema, figures.schema_total, figures.billed, figures.extra_calls) == (3, 12, 121, 1)
    assert "| rlms `RLM` | 10 | 3 | 57 | 3 | 12 | 121 | 1 |" in peers.tables.overhead_table([RECORDED])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"error": "no such package"}, "no such package"),
        ({"calls": 2}, "it stopped after 2 calls"),
        ({"unfound": ["call 2: the task"]}, "call 2: the task"),
        ({"agrees": False}, "the parts do not sum to the bill"),
    ],
)
def test_a_broken_session_is_a_row_with_the_reason(peers: Any, change: dict[str, Any], why: str) -> None:
    table = peers.tables.overhead_table([{**RECORDED, **change}])
    assert f"| rlms `RLM` | {why} |" in table


def test_tables_of_times_and_tasks(peers: Any) -> None:
    slow = {"peer": "rlms", "error": None, "median": 40.0, "low": 30.0, "high": 50.0, "least": 20.0}
    rows = [slow, {**slow, "peer": "ours_code", "median": 4.0}, {"peer": "dspy_rlm", "error": "not installed"}]
    lines = peers.tables.times_table(rows).splitlines()[2:]
    assert [line.split("|")[2].strip() for line in lines] == ["4.0", "40.0", "not installed"]
    row = {"suite": "computation", "peer": "rlms", "resolved": True, "answered": True, "error": None}
    row |= {"input_tokens": 100, "output_tokens": 10, "calls": 2}
    other = {**row, "resolved": False, "answered": False, "error": "stopped", "input_tokens": 300}
    table = peers.tables.tasks_table([row, other])
    assert "| rlms `RLM` | computation | 1 of 2 | 1 | 200 | 10 | 2.0 | 1 |" in table


def test_times_of_a_run_are_milliseconds_with_quartiles(peers: Any) -> None:
    (one,) = peers.contenders.chosen("rlms")
    row = peers.times.row_of(one, [1.0, 2.0, 3.0, 4.0, 5.0], None, 25, 1)
    assert (row["median"], row["low"], row["high"], row["least"]) == (3.0, 1.5, 4.5, 1.0)
    assert "median" not in peers.times.row_of(one, [], "not installed", 25, 1)


def test_rows_replace_earlier_ones_in_the_order_of_the_contenders(peers: Any, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    for row in ({"peer": "ours_lean", "n": 1}, {"peer": "rlms", "n": 2}, {"peer": "ours_lean", "n": 3}):
        peers.records.keep(file, row)
    assert [(row["peer"], row["n"]) for row in peers.records.rows_of(file)] == [("rlms", 2), ("ours_lean", 3)]


def test_every_contender_has_a_driver_and_pins(peers: Any) -> None:
    for one in peers.contenders.CONTENDERS:
        tree = ast.parse(one.driver.read_text("utf-8"))
        roots = {n.module.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
        assert bool(roots & {"rlm_loop", "ours_lean"}) == one.ours  # the others know nothing of us
        if not one.ours:
            assert all("==" in package for package in one.packages)
            assert all("==" in line for line in one.pins.read_text("utf-8").split())


def test_unknown_names_are_refused_with_the_known(peers: Any) -> None:
    with pytest.raises(ValueError, match="unknown: nobody; known are rlms"):
        peers.contenders.chosen("rlms,nobody")


@pytest.mark.parametrize(
    ("stdout", "stderr", "error"),
    [
        ('noise\n{"answer": "1", "error": null}\n', "", None),
        ("", "Traceback\nModuleNotFoundError: No module named 'x'\n", "ModuleNotFoundError"),
        ("half a resu", "", "it printed nothing"),
        ("[1]", "killed", "killed"),
    ],
)
def test_a_driver_that_dies_is_a_result_with_the_reason(peers: Any, stdout: str, stderr: str, error: str) -> None:
    done = peers.driving.result_of(stdout, stderr)
    assert done["error"] is None if error is None else error in done["error"]


def test_a_drivers_surroundings_hold_no_key_of_the_user(peers: Any, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-users-own")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the-users-own")
    (one,) = peers.contenders.chosen("openai_agents")
    found = peers.driving.surroundings(one, tmp_path, "a-session")
    assert "the-users-own" not in found.values()
    assert (found["OPENAI_API_KEY"], found["OPENAI_AGENTS_DISABLE_TRACING"]) == ("a-session", "1")


@pytest.mark.parametrize("how", ["argument", "stdin"])
def test_a_job_comes_as_an_argument_or_on_stdin(how: str) -> None:
    code = "import job; job.main(lambda j: {'answer': j['task'] * 2} if j['steps'] else 1 / 0, 'pip')"
    given = json.dumps({"task": "ab", "steps": 1})
    argv = [sys.executable, "-c", code, *([given] if how == "argument" else [])]
    done = subprocess.run(argv, input=given, capture_output=True, text=True, cwd=HERE / "drivers", check=True)
    row = json.loads(done.stdout)
    assert (row["answer"], row["error"]) == ("abab", None)


def test_an_exception_of_a_framework_is_a_result() -> None:
    code = "import job; job.main(lambda j: 1 / 0, 'pip')"
    done = subprocess.run(
        [sys.executable, "-c", code, "{}"], capture_output=True, text=True, cwd=HERE / "drivers", check=True
    )
    assert json.loads(done.stdout)["error"].startswith("ZeroDivisionError")


@pytest.mark.parametrize("name", ["ours_code", "ours_lean"])
def test_our_loops_through_the_meter(peers: Any, name: str, tmp_path: Path) -> None:
    (one,) = peers.contenders.chosen(name)
    row = peers.overhead.measured(one, 2, ScriptedModel([]), tmp_path)
    assert peers.tables.whole(row) == ""
    assert row["calls"] == 3
    assert row["reported_input_tokens"] == sum(row["billed"])
    assert peers.tables.overhead(row).per_turn == 0  # nothing of ours is added in a turn


def test_the_committed_session_is_whole(peers: Any) -> None:
    rows = peers.records.rows_of(HERE / "results" / "overhead.jsonl")
    order = [one.name for one in peers.contenders.CONTENDERS]
    assert [row["peer"] for row in rows] == order
    for row in rows:
        assert peers.tables.whole(row) == "", row["peer"]
        sums = [sum(call) for call in zip(*row["tokens"].values(), strict=True)]
        assert sums == row["billed"], row["peer"]
    assert peers.tables.overhead_table(rows) in (HERE / "README.md").read_text("utf-8")


@pytest.mark.parametrize("file", ["times", "tasks"])
def test_other_committed_results_are_in_the_readme(peers: Any, file: str) -> None:
    rows = peers.records.rows_of(HERE / "results" / f"{file}.jsonl")
    if rows:
        table = getattr(peers.tables, f"{file}_table")(rows)
        assert table in (HERE / "README.md").read_text("utf-8")
