"""Recorded runs of every kind of agent: today's loop asks byte for byte the same, and a changed word is named.

What a replay makes of traces that are cut, edited, or of things that it cannot find again.
"""

from __future__ import annotations

import functools
import json
import re
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, LeanAgent, ToolLoopAgent
from rlm_loop.actions import RunCode
from rlm_loop.dialects import CodeBlocks, FunctionCalls, Injector, Problem, ThoughtPrompt
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Turn
from rlm_loop.replay import Replayed, ReplayError, replay
from rlm_loop.traces import RunRecord, TraceError, read
from tests.agents.replies import code, named

HERE = Path(__file__).parent.parent / "golden"
GOLDEN: dict[str, Any] = runpy.run_path(str(HERE / "record.py"))["GOLDEN"]


def lines(name: str) -> list[str]:
    return (HERE / f"{name}.jsonl").read_text().splitlines()


def replayed(name: str) -> Replayed:
    return replay(HERE / f"{name}.jsonl")


@pytest.mark.parametrize("name", GOLDEN)
def test_today_s_loop_drives_a_golden_trace_alike(name: str) -> None:
    found = replayed(name)
    assert found.same, str(found)
    assert found.requests == sum(e["node"] == "0" for e in read(HERE / f"{name}.jsonl").of("request")) > 0
    assert (found.notes, found.outcome is None) == ((), False)


def test_a_sub_agent_is_replayed_with_the_log_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "rlm_loop")
    assert replay(HERE / "tool_loop_sub_agents.jsonl").same


def test_the_golden_traces_are_those_of_the_script_and_show_what_they_are_for() -> None:
    assert {path.stem for path in HERE.glob("*.jsonl")} == set(GOLDEN)
    records = [read(HERE / f"{name}.jsonl") for name in GOLDEN]
    stops = {str(r.end["stop"]) for r in records if r.end is not None}
    assert stops >= {"answered", "steps", "tokens", "cost", "repeated", "malformed", "failed", "interrupted"}
    assert {e["policy"] for r in records for e in r.of("compaction")} == {"drop_outputs", "window", "summary"}
    assert {e["kind"] for r in records for e in r.of("subcall_start")} >= {"completion", "agent"}
    agents = {r.start["settings"]["agent"] for r in records}
    assert agents == {"ToolLoopAgent", "LeanAgent", "ReActAgent", "DirectAgent"}


def changed(text: str) -> str:
    return text[:17] + "#" + text[18:]


def with_a_blank(code: str, notes: tuple[str, ...] = ()) -> RunCode:
    return RunCode(code.strip() + " ", notes=notes)


HELP = "agents.environment._PYTHON_HELP"
SUMMARISE = "Summarise! At most {words} words"
THOUGHT = functools.partial(ThoughtPrompt, text=changed(ThoughtPrompt().text))
#: A golden trace, what is changed in the package and to what, and how that is told.
CHANGES: list[tuple[str, str, Any, str]] = [
    ("react_calls", "agents.strategies.ThoughtPrompt", THOUGHT, r"turn 1, message 0 \(user\): recorded .*, today '#"),
    ("repeated", "dialects.base.NO_OUTPUT", "(no output.)", r"turn 2, message 3 \(user\)"),
    ("history_outputs", "agents.compaction.OUTPUT_LEFT_OUT", "[{size:,} Characters]", r"\(user\): .*, today 'Char"),
    ("history_summary", "agents.compaction.SUMMARISE", SUMMARISE, r"turn \d, message 0 \(user\)"),
    ("workspace", "agents.checking.describe_workspace", lambda tools: "Files.", r"turn 1, message 0 \(user\)"),
    ("lean_native", HELP, "Run Python code.", r"turn 1, tools"),
    ("lean_text", HELP, "Run Python code.", r"turn 1, message 0 \(system\)"),
    ("repeated", "agents.run.stop_reason", lambda turns, account: None, r"turn 2, end: recorded repeated .*, today a "),
    ("tool_loop_sub_calls", "dialects.reader.RunCode", with_a_blank, r"turn 1, what the reply asks for: recorded Run"),
]


@pytest.mark.parametrize(("name", "target", "value", "says"), CHANGES)
def test_a_change_is_found_and_named(
    name: str, target: str, value: Any, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"rlm_loop.{target}", value)
    found = replayed(name)
    assert not found.same
    assert re.search(says, str(found.difference)), str(found.difference)


@pytest.mark.parametrize("name", ["tool_loop_sub_calls", "tool_loop_sub_agents"])
def test_a_default_text_that_is_another_today_is_replayed_as_recorded(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_today(rule: str = changed(CodeBlocks().rule), may_block: bool = False) -> CodeBlocks:
        return CodeBlocks(rule=rule, may_block=may_block)

    monkeypatch.setattr("rlm_loop.agents.strategies.CodeBlocks", of_today)
    found = replayed(name)
    assert found.same, str(found.difference)


def edited(name: str, change: Callable[[Any], Any], event: str = "run_start", which: int = 0) -> RunRecord:
    events = [json.loads(line) for line in lines(name)]
    change([e for e in events if e["event"] == event][which])
    return RunRecord(tuple(events))


@pytest.mark.parametrize("words", [{"rule": 5}, {"presentation": "loud"}])
def test_words_that_no_agent_can_speak_are_an_error_of_the_trace(words: dict[str, Any]) -> None:
    def speak(start: Any) -> None:
        start["made"]["with"] = {}
        start["settings"]["presentation"] = None
        start["settings"]["dialect"].update(words)

    with pytest.raises(ReplayError, match=r"LeanAgent .* got "):
        replay(edited("lean_text", speak))


def test_a_changed_word_of_the_fixed_text_presentation_is_named() -> None:
    rule = changed(FunctionCalls().rule)
    found = replay(edited("lean_text", lambda start: start["made"]["with"].update(system=rule)))
    assert found.difference is not None
    assert (found.difference.turn, found.difference.message, found.equal, found.requests) == (1, 0, 0, 4)


def test_injectors_of_a_class_that_is_gone_say_what_was_recorded() -> None:
    def forget(start: Any) -> None:
        given = start["made"]["with"]
        given["injectors"] = [{"is": "Gone", "with": {}} for _ in given["injectors"]]

    found = replay(edited("injectors", forget))
    assert (found.same, len(found.notes)) == (True, 4), str(found.difference)


def test_an_edited_message_is_found_by_its_hash() -> None:
    found = replay(edited("react_text", lambda e: e["message"]["spans"][0].update(text="Edited."), "message", 3))
    assert found.difference is not None
    assert (found.difference.recorded, found.equal < found.requests) == ("changed after it was written", True)


def test_a_missing_body_is_an_error_that_says_so() -> None:
    events = [json.loads(line) for line in lines("lean_native")]
    events.remove(next(e for e in events if e["event"] == "message"))
    with pytest.raises(TraceError, match=r"event of turn 1 \(request\) lacks .*cut or edited"):
        replay(RunRecord(tuple(events)))


@pytest.mark.parametrize("name", ["tool_loop_sub_agents", "tool_loop_sub_calls", "history_summary", "model_error"])
def test_a_trace_cut_after_any_line_or_within_it_is_replayed_as_far_as_it_goes(name: str, tmp_path: Path) -> None:
    whole, path = lines(name), tmp_path / "run.jsonl"
    for count in range(1, len(whole), 5 if name == "tool_loop_sub_agents" else 3):
        torn = whole[count][: 40 * (count % 2)]
        path.write_text("\n".join([*whole[:count], torn]))
        found, events = replay(path), [json.loads(line) for line in whole[:count]]
        assert found.same, f"cut after line {count}: {found}"
        assert found.requests == sum(e["event"] == "request" and e["node"] == "0" for e in events)
        assert (found.complete, "no end" in str(found)) == (False, True)


@dataclass(frozen=True)
class Mine(Injector):
    """An injector that is no part of the package."""

    name: str = "mine"

    def opening(self, problem: Problem) -> str:
        return "open"

    def after(self, turn: Turn) -> str:
        return f"after {turn.index}"


@dataclass(frozen=True)
class Own(ToolLoopAgent):
    """An agent of the caller's own."""


def recorded(agent: Any, path: Path) -> Path:
    agent.run("Q?", trace=path)
    return path


def test_an_injector_of_the_caller_s_own_is_taken_from_the_record(tmp_path: Path) -> None:
    agent = LeanAgent(model=ScriptedModel(["{", "{", "done"]), injectors=(Mine(),), budget=Budget(steps=3))
    found, note = replay(recorded(agent, tmp_path / "run.jsonl")), "the injector mine is not part of rlm_loop"
    assert (found.same, [one.partition(":")[0] for one in found.notes]) == (True, [note])


def test_an_agent_of_the_caller_s_own_has_to_be_given(tmp_path: Path) -> None:
    agent = Own(model=ScriptedModel([code("final_answer = 1")]))
    path = recorded(agent, tmp_path / "run.jsonl")
    with pytest.raises(ReplayError, match=r"class .*Own, which is not part of rlm_loop: give agent="):
        replay(path)
    assert replay(path, agent=agent).same
    assert not replay(path, agent=Own(model=ScriptedModel([]), system="Other.")).same


def test_a_name_in_a_trace_imports_nothing_of_others() -> None:
    made = {"is": "rlm_loop.cli.machine.os", "with": {}}
    with pytest.raises(ReplayError, match="not part of rlm_loop"):
        replay(edited("direct", lambda start: start.update(made=made)))


def test_redacted_text_is_compared_as_it_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "swordfish-123")
    agent = ToolLoopAgent(model=ScriptedModel([code("print('swordfish-123')"), code("final_answer = 1")]))
    path = recorded(agent, tmp_path / "run.jsonl")
    found = replay(path)
    assert ("swordfish" in path.read_text(), found.same) == (False, True), str(found)
    assert found.notes == ("1 requests hold text that was redacted: compared as they were recorded",)


def test_a_replay_runs_no_code_and_no_tools(tmp_path: Path) -> None:
    ran, file = list[str](), tmp_path / "made"
    touch = named("touch", lambda name: ran.append(name) or name)
    model = ScriptedModel([code(f"open({str(file)!r}, 'w').close()\nprint(touch('a'))"), code("final_answer = 1")])
    path = recorded(ToolLoopAgent(model=model, tools=(touch,), repl="plain"), tmp_path / "run.jsonl")
    file.unlink()
    assert (replay(path).same, ran, file.exists()) == (True, ["a"], False)
