"""Recorded runs of every kind of agent: today's loop asks byte for byte the same, and a changed word is named."""

from __future__ import annotations

import functools
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.actions import RunCode
from rlm_loop.dialects import CodeBlocks, FunctionCalls, ThoughtPrompt
from rlm_loop.replay import ReplayError, replay
from rlm_loop.traces import RunRecord, read

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


HELP = ("agents.environment._PYTHON_HELP", "Run Python code.")
#: A golden trace, what is changed in the package and to what, and how that is told.
CHANGES: dict[str, tuple[str, str, Any, str]] = {
    "thought prompt": (
        "react_calls",
        "agents.strategies.ThoughtPrompt",
        functools.partial(ThoughtPrompt, text=changed(ThoughtPrompt().text)),
        r"turn 1, message 0 \(user\): recorded .*, today '#",
    ),
    "no output": ("repeated", "dialects.base.NO_OUTPUT", "(no output.)", r"turn 2, message 3 \(user\)"),
    "mark of an output": (
        "history_outputs",
        "agents.compaction.OUTPUT_LEFT_OUT",
        "[{size:,} Characters left out]",
        r"turn \d, message \d \(user\): recorded 'characters.*, today 'Characters",
    ),
    "asking for a summary": (
        *("history_summary", "agents.compaction.SUMMARISE", "Summarise! At most {words} words"),
        r"turn \d, message 0 \(user\)",
    ),
    "line about the context": (
        *("lean_native", "repl.contexts.context.TOLD", "The REPL already has the variable context;"),
        r"turn 1, message 0 \(user\): recorded ., a dict",
    ),
    "line about the workspace": (
        *("workspace", "agents.checking.describe_workspace", lambda tools: "Files."),
        r"turn 1, message 0 \(user\)",
    ),
    "help of a tool of ours": ("lean_native", *HELP, r"turn 1, tools"),
    "help of a tool, as text": ("lean_text", *HELP, r"turn 1, message 0 \(system\)"),
    "a limit": (
        *("repeated", "agents.run.stop_reason", lambda turns, account: None),
        r"turn 2, end: recorded repeated .*, today a further request",
    ),
    "how a reply is read": (
        *("tool_loop_sub_calls", "dialects.reader.RunCode"),
        lambda code, notes=(): RunCode(code.strip() + " ", notes=notes),
        r"turn 1, what the reply asks for: recorded RunCode",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_found_and_named(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, target, value, says = CHANGES[what]
    monkeypatch.setattr(f"rlm_loop.{target}", value)
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


def begun(name: str, change: Callable[[Any], Any]) -> RunRecord:
    """Return a golden run whose first event is changed."""
    first, *others = read(HERE / f"{name}.jsonl").events
    return RunRecord(({**first, **change(first)}, *others))


@pytest.mark.parametrize(("word", "value"), [("rule", 5), ("presentation", "loud")])
def test_words_that_no_agent_can_speak_are_an_error_of_the_trace(word: str, value: Any) -> None:
    def speak(start: Any) -> Any:
        dialect = start["settings"]["dialect"] | {word: value}
        settings = start["settings"] | {"presentation": None, "dialect": dialect}
        return {"made": start["made"] | {"with": {}}, "settings": settings}

    with pytest.raises(ReplayError, match=r"LeanAgent does not take the recorded settings any more: .* got "):
        replay(begun("lean_text", speak))


def test_a_changed_word_of_the_fixed_text_presentation_is_named() -> None:
    system = {"system": changed(FunctionCalls().rule)}
    found = replay(begun("lean_text", lambda s: {"made": s["made"] | {"with": s["made"]["with"] | system}}))
    assert found.difference is not None
    assert (found.difference.turn, found.difference.message) == (1, 0)
    assert found.equal == 0
    assert found.requests == 4


def test_injectors_of_a_class_that_is_gone_say_what_was_recorded() -> None:
    made = read(HERE / "injectors.jsonl").start["made"]
    gone = [{"is": "Gone", "with": {}} for _ in made["with"]["injectors"]]
    found = replay(begun("injectors", lambda start: {"made": made | {"with": made["with"] | {"injectors": gone}}}))
    assert found.same, str(found.difference)
    assert len(found.notes) == len(gone) > 1
