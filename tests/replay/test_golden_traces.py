"""Recorded runs of every kind of agent: today's loop asks byte for byte the same, and a changed word is named."""

from __future__ import annotations

import dataclasses
import functools
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.actions import RunCode
from rlm_loop.dialects import CodeBlocks, FunctionCalls, ThoughtPrompt
from rlm_loop.replay import ReplayError, replay
from rlm_loop.traces import read

HERE = Path(__file__).parent.parent / "golden"
GOLDEN: dict[str, Any] = runpy.run_path(str(HERE / "record.py"))["GOLDEN"]


@pytest.mark.parametrize("name", GOLDEN)
def test_today_s_loop_drives_a_golden_trace_alike(name: str) -> None:
    found = replay(HERE / f"{name}.jsonl", context=GOLDEN[name].context)
    assert found.same, str(found)
    assert found.requests == sum(e["node"] == "0" for e in read(HERE / f"{name}.jsonl").of("request")) > 0
    assert found.notes == ()
    assert found.outcome is not None


def test_every_golden_trace_is_made_by_the_script() -> None:
    assert {path.stem for path in HERE.glob("*.jsonl")} == set(GOLDEN)


def test_a_sub_agent_is_replayed_with_the_log_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "rlm_loop")
    assert replay(HERE / "tool_loop_sub_agents.jsonl").same


def test_the_golden_traces_show_what_they_are_for() -> None:
    records = {name: read(HERE / f"{name}.jsonl") for name in GOLDEN}
    stops = {str(r.end["stop"]) for r in records.values() if r.end is not None}
    assert stops >= {"answered", "steps", "tokens", "cost", "repeated", "malformed", "failed", "interrupted"}
    assert {e["policy"] for r in records.values() for e in r.of("compaction")} == {"drop_outputs", "window", "summary"}
    kinds = {e["kind"] for r in records.values() for e in r.of("subcall_start")}
    assert kinds >= {"completion", "agent"}
    agents = {r.start["settings"]["agent"] for r in records.values()}
    assert agents == {"ToolLoopAgent", "LeanAgent", "ReActAgent", "DirectAgent"}


def changed(text: str) -> str:
    return text[:17] + "#" + text[18:]


CHANGES = {
    "thought prompt": (
        "react_calls",
        "rlm_loop.agents.strategies.ThoughtPrompt",
        functools.partial(ThoughtPrompt, text=changed(ThoughtPrompt().text)),
        r"turn 1, message 0 \(user\): recorded .*, today '#",
    ),
    "no output": (
        "repeated",
        "rlm_loop.dialects.base.NO_OUTPUT",
        "(no output.)",
        r"turn 2, message 3 \(user\)",
    ),
    "mark of an output": (
        "history_outputs",
        "rlm_loop.agents.compaction.OUTPUT_LEFT_OUT",
        "[{size:,} Characters left out]",
        r"turn \d, message \d \(user\): recorded 'characters.*, today 'Characters",
    ),
    "asking for a summary": (
        "history_summary",
        "rlm_loop.agents.compaction.SUMMARISE",
        "Summarise! At most {words} words",
        r"turn \d, message 0 \(user\)",
    ),
    "line about the context": (
        "lean_native",
        "rlm_loop.repl.contexts.context.TOLD",
        "The REPL already has the variable context;",
        r"turn 1, message 0 \(user\): recorded ., a dict",
    ),
    "line about the workspace": (
        "workspace",
        "rlm_loop.agents.checking.describe_workspace",
        lambda tools: "Files.",
        r"turn 1, message 0 \(user\)",
    ),
    "help of a tool of ours": (
        "lean_native",
        "rlm_loop.agents.environment._PYTHON_HELP",
        "Run Python code.",
        r"turn 1, tools",
    ),
    "help of a tool, as text": (
        "lean_text",
        "rlm_loop.agents.environment._PYTHON_HELP",
        "Run Python code.",
        r"turn 1, message 0 \(system\)",
    ),
    "a limit": (
        "repeated",
        "rlm_loop.agents.run.stop_reason",
        lambda turns, account: None,
        r"turn 2, end: recorded repeated .*, today a further request",
    ),
    "how a reply is read": (
        "tool_loop_sub_calls",
        "rlm_loop.dialects.reader.RunCode",
        lambda code, notes=(): RunCode(code.strip() + " ", notes=notes),
        r"turn 1, what the reply asks for: recorded RunCode",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_found_and_named(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, target, value, says = CHANGES[what]
    monkeypatch.setattr(target, value)
    found = replay(HERE / f"{name}.jsonl", context=GOLDEN[name].context)
    assert not found.same
    assert re.search(says, str(found.difference)), str(found.difference)


@pytest.mark.parametrize("name", ["tool_loop_sub_calls", "tool_loop_sub_agents"])
def test_a_default_text_that_is_another_today_is_replayed_as_recorded(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_today(rule: str = changed(CodeBlocks().rule), may_block: bool = False) -> CodeBlocks:
        return CodeBlocks(rule=rule, may_block=may_block)

    monkeypatch.setattr("rlm_loop.agents.strategies.CodeBlocks", of_today)
    found = replay(HERE / f"{name}.jsonl", context=GOLDEN[name].context)
    assert found.same, str(found.difference)


@pytest.mark.parametrize(("word", "value"), [("rule", 5), ("presentation", "loud")])
def test_words_that_no_agent_can_speak_are_an_error_of_the_trace(word: str, value: Any) -> None:
    record = read(HERE / "lean_text.jsonl")
    start = dict(record.start)
    start["made"] = {**start["made"], "with": {}}
    start["settings"] = {
        **start["settings"],
        "presentation": None,
        "dialect": {**start["settings"]["dialect"], word: value},
    }
    with pytest.raises(ReplayError, match=r"LeanAgent does not take the recorded settings any more: .* got "):
        replay(dataclasses.replace(record, events=(start, *record.events[1:])))


def test_a_changed_word_of_the_fixed_text_presentation_is_named() -> None:
    record = read(HERE / "lean_text.jsonl")
    start = dict(record.start)
    start["made"] = {**start["made"], "with": {**start["made"]["with"], "system": changed(FunctionCalls().rule)}}
    found = replay(dataclasses.replace(record, events=(start, *record.events[1:])))
    assert found.difference is not None
    assert (found.difference.turn, found.difference.message) == (1, 0)
    assert found.equal == 0
    assert found.requests == 4


def test_injectors_of_a_class_that_is_gone_say_what_was_recorded() -> None:
    record = read(HERE / "injectors.jsonl")
    made = record.start["made"]
    gone = [{"is": "Gone", "with": {}} for _ in made["with"]["injectors"]]
    start = {**record.start, "made": {**made, "with": {**made["with"], "injectors": gone}}}
    found = replay(dataclasses.replace(record, events=(start, *record.events[1:])))
    assert found.same, str(found.difference)
    assert len(found.notes) == len(gone) > 1
