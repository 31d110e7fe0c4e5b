"""What a replay makes of traces that are cut, edited, old, or of things that it cannot find again."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, LeanAgent, ToolLoopAgent
from rlm_loop.dialects import Injector, Problem
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Turn
from rlm_loop.replay import ReplayError, replay
from rlm_loop.traces import RunRecord, Trace, TraceError

GOLDEN = Path(__file__).parent.parent / "golden"
NAMES = list(runpy.run_path(str(GOLDEN / "record.py"))["GOLDEN"])


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def lines(name: str) -> list[str]:
    return (GOLDEN / f"{name}.jsonl").read_text().splitlines()


def written(tmp_path: Path, some: list[str]) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(some) + "\n")
    return path


@pytest.mark.parametrize("name", ["tool_loop_sub_agents", "tool_loop_sub_calls", "history_summary", "model_error"])
def test_a_trace_cut_after_any_line_is_replayed_as_far_as_it_goes(name: str, tmp_path: Path) -> None:
    whole = lines(name)
    for count in range(1, len(whole), 5 if name == "tool_loop_sub_agents" else 3):
        found = replay(written(tmp_path, whole[:count]))
        assert found.same, f"cut after line {count}: {found}"
        assert not found.complete
        assert found.requests == sum(
            e["event"] == "request" and e["node"] == "0" for e in map(json.loads, whole[:count])
        )
        assert "no end" in str(found)


def test_a_torn_last_line_is_no_line(tmp_path: Path) -> None:
    whole = lines("lean_native")
    found = replay(written(tmp_path, [*whole[:-1], whole[-1][:40]]))
    assert found.same
    assert not found.complete


def test_a_trace_of_another_version(tmp_path: Path) -> None:
    first, *rest = lines("direct")
    with pytest.raises(TraceError, match="schema 99"):
        replay(written(tmp_path, [first.replace('"schema":5', '"schema":99'), *rest]))


def edited(name: str, change: Callable[[dict[str, Any]], None], event: str, which: int = 0) -> RunRecord:
    events = [json.loads(line) for line in lines(name)]
    change([e for e in events if e["event"] == event][which])
    return RunRecord(tuple(events))


def test_an_edited_message_is_found_by_its_hash_and_the_requests_are_proved_all_the_same() -> None:
    def edit(event: dict[str, Any]) -> None:
        event["message"]["spans"][0]["text"] += " Edited."

    found = replay(edited("react_text", edit, "message", 3))
    assert found.difference is not None
    assert found.difference.recorded == "changed after it was written"
    assert found.equal == found.requests


def test_an_edited_reply_shows_in_the_next_request() -> None:
    def edit(event: dict[str, Any]) -> None:
        event["reply"]["text"] = event["reply"]["text"].replace("fig", "pig")

    found = replay(edited("react_text", edit, "reply"))
    assert "turn 1, what the reply asks for" in str(found.difference)


def test_a_missing_body_is_an_error_that_says_so() -> None:
    events = [json.loads(line) for line in lines("lean_native")]
    body = next(e for e in events if e["event"] == "message")
    events.remove(body)
    with pytest.raises(TraceError, match=r"event \d+ of the run \(request\) lacks .*cut or edited"):
        replay(RunRecord(tuple(events)))


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
    found = replay(recorded(agent, tmp_path / "run.jsonl"))
    assert found.same
    assert found.notes == ("the injector mine is not part of rlm_loop: its text is as recorded",)


def test_an_agent_of_the_caller_s_own_has_to_be_given(tmp_path: Path) -> None:
    agent = Own(model=ScriptedModel([code("final_answer = 1")]))
    path = recorded(agent, tmp_path / "run.jsonl")
    with pytest.raises(ReplayError, match=r"class .*Own, which is not part of rlm_loop: give agent="):
        replay(path)
    assert replay(path, agent=agent).same
    assert not replay(path, agent=Own(model=ScriptedModel([]), system="Other.")).same


def test_a_name_in_a_trace_imports_nothing_of_others(tmp_path: Path) -> None:
    made = {"is": "rlm_loop.cli.machine.os", "with": {}}
    record = edited("direct", lambda e: e.update(made=made), "run_start")
    with pytest.raises(ReplayError, match="not part of rlm_loop"):
        replay(record)


def test_the_context_given_has_to_be_the_recorded_one() -> None:
    with pytest.raises(ReplayError, match="another than the recorded one"):
        replay(GOLDEN / "direct.jsonl", context="another")


def test_redacted_text_is_compared_as_it_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "swordfish-123")
    agent = ToolLoopAgent(model=ScriptedModel([code("print('swordfish-123')"), code("final_answer = 1")]))
    path = recorded(agent, tmp_path / "run.jsonl")
    assert "swordfish" not in path.read_text()
    found = replay(path)
    assert found.same, str(found)
    assert found.notes == ("1 requests hold text that was redacted: compared as they were recorded",)


def test_a_replay_runs_no_code_and_no_tools(tmp_path: Path) -> None:
    ran: list[str] = []

    def touch(name: str) -> str:
        """Note it."""
        ran.append(name)
        return name

    file = tmp_path / "made"
    model = ScriptedModel([code(f"open({str(file)!r}, 'w').close()\nprint(touch('a'))"), code("final_answer = 1")])
    with Trace(tmp_path / "run.jsonl") as trace:
        ToolLoopAgent(model=model, tools=(touch,), repl="plain").run("Q?", trace=trace)
    assert ran == ["a"]
    file.unlink()
    assert replay(tmp_path / "run.jsonl").same
    assert ran == ["a"]
    assert not file.exists()
