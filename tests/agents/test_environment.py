"""Actions as a run performs them, and the part of their results that is shown."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest

from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.actions import Answer, CallTool, Malformed, Observation, RunCode
from rlm_loop.agents import Agent, Rules, turns_of
from rlm_loop.dialects import FunctionCalls, TurnCounter
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL
from rlm_loop.replay import replay
from rlm_loop.traces import RunRecord, Trace, read
from tests.agents.replies import call, cell, code, final, named, react, written

Lean = partial(LeanAgent, presentation="native")


def seen(*replies: Any, agent: Any = ToolLoopAgent, context: Any = None, **settings: Any) -> list[Observation]:
    """What the actions of each turn led to."""
    settings = {"repl": "plain", "tools": (named("add", lambda a, b: a + b),), "max_steps": len(replies), **settings}
    outcome = agent(model=ScriptedModel(replies), **settings).run("?", context=context)
    return [one for turn in outcome.turns for one in turn.observations]


def kind(one: Observation) -> str | None:
    return one.failure and one.failure.kind


def test_text_answers_and_require_code() -> None:
    assert seen("4")[0].answer is not None
    first, second = seen("4", "4", rules=Rules(require_code=True))  # it asks once, and never again
    assert (kind(first), second.answer is not None) == ("rejected", True)
    assert seen(code("1"), "4", rules=Rules(require_code=True))[1].answer is not None


@pytest.mark.parametrize(
    ("check", "value", "accepted", "words"),
    [
        ({"answer_type": int}, "'12'", 12, ""),
        ({"answer_type": int}, "'twelve'", None, "integer"),
        ({"answer_type": list[int]}, "(1, 2)", [1, 2], ""),
        ({"verify": lambda v: v > 3}, "2", None, "did not pass"),
        ({"verify": lambda v: "too small" if v < 3 else None}, "2", None, "too small"),
        ({"verify": lambda v: v["x"]}, "2", None, "TypeError"),
        ({"verify": lambda v: numpy.int64(v) > 3}, "4", 4, ""),
        ({"verify": lambda v: numpy.int64(v) > 3}, "2", None, "did not pass"),
    ],
)
def test_typed_and_verified_answers(check: dict[str, Any], value: str, accepted: Any, words: str) -> None:
    (one,) = seen(code(f"final_answer = {value}"), **check)
    assert (kind(one), one.answer and one.answer.value) == (None if accepted else "rejected", accepted)
    assert words in one.text


def test_nothing_is_started_before_it_is_needed() -> None:
    def explode() -> PythonREPL:
        raise AssertionError("a REPL was opened")

    assert seen(call("add", a=1, b=1), agent=Lean, repl=explode)[0].text == "2"


def test_the_context_and_tools_are_restored_after_a_cell_overwrote_them() -> None:
    """Small models rewrite `context` from its preview, with invented rows."""
    overwrite = code("context = 'invented'\nadd = None\nprint(context)")
    found = seen(overwrite, code("print(context, add(1, 2))"), context="the real one")
    assert [one.text.splitlines()[0] for one in found] == ["invented", "the real one 3"]
    told = found[0].text.splitlines()[1:]
    assert (len(told), "context" in told[0], "add" in told[0]) == (1, True, True)


def test_the_model_is_never_told_of_unlisted_tools() -> None:
    asked = call("python", code="print(llm_query('x'))")
    nothing, heard = seen(call("nothing"), asked, "heard", agent=Lean, max_steps=2, max_depth=1)
    assert "llm_query" not in nothing.text
    assert heard.text.strip() == "heard"


@pytest.mark.parametrize("agent", [ToolLoopAgent(), LeanAgent(), ReActAgent()], ids=lambda agent: agent.name)
def test_a_context_that_cannot_be_sent_ends_the_run_of_every_loop(agent: Agent) -> None:
    """Told to the model as a failed tool, it would count against the loops that call, and not the one of code."""
    model = ScriptedModel([cell(agent, "print(len(context))")] * 3)
    with pytest.raises(TypeError, match="cannot send 'context'") as ended:
        type(agent)(model=model, max_steps=3).run("?", context=[threading.Lock()])
    assert ended.value.outcome.usage.calls == 1


# -- `approve=` is told of an action before it runs, and what it refuses does not run

CELL = code("found = delete(name='a')")


def approved(agent: type[Agent], approve: Any, *replies: str) -> tuple[Any, list[str], Trace]:
    done: list[str] = []
    delete = named("delete", lambda name: done.append(name) or "gone")
    last = react("finish", answer="Done.") if agent is ReActAgent else "Done."
    model, trace = ScriptedModel([*replies, last]), Trace()
    made = agent(model=model, tools=(delete,), repl="plain", rules=Rules(approve=approve))
    return made.run("Tidy up.", trace=trace), done, trace


def raising(action: object) -> bool:
    raise EOFError("no terminal")


@pytest.mark.parametrize(
    ("agent", "reply"),
    [(ToolLoopAgent, CELL), (LeanAgent, written("delete", name="a")), (ReActAgent, react("delete", name="a"))],
)
@pytest.mark.parametrize(
    ("approve", "runs", "told"),
    [
        (True, True, ""),
        (None, True, ""),
        (False, False, "not approved"),
        ("not in production", False, "not approved: not in production"),
        (raising, False, "not approved: nobody could be asked (EOFError: no terminal)"),
        (1, False, "not approved: 1"),
    ],
)
def test_what_is_not_approved_does_not_run(agent: Any, reply: str, approve: Any, runs: bool, told: str) -> None:
    asked = approve if callable(approve) else lambda action: approve
    outcome, done, trace = approved(agent, asked, reply)
    assert (outcome.answered, done) == (True, ["a"] if runs else [])
    seen = outcome.turns[0].observations[0]
    assert (kind(seen), told in seen.text) == (None if runs else "denied", True)
    assert {e["approved"] for e in trace.events if e["event"] == "approval"} == {runs}
    assert replay(RunRecord(tuple(trace.events))).same


def test_a_call_in_a_cell_and_in_a_sub_agent_is_asked_for_itself() -> None:
    asked: list[str] = []

    def approve(action: RunCode | CallTool) -> bool:
        asked.append(action.name if isinstance(action, CallTool) else "cell")
        return not isinstance(action, CallTool)

    outcome, done, _ = approved(ToolLoopAgent, approve, CELL)
    assert (asked, done) == (["cell", "delete"], [])
    assert "denied" in outcome.turns[0].observations[0].text
    model = ScriptedModel([code("final_answer = llm_query('go')"), code("final_answer = 5")])
    outcome = ToolLoopAgent(model=model, max_depth=2, repl="plain", rules=Rules(approve=approve)).run("?")
    assert (outcome.answer, asked[2:]) == ("5", ["cell", "cell"])


def test_the_python_tool_is_asked_once_and_sees_the_code() -> None:
    asked: list[str] = []

    def approve(action: RunCode | CallTool) -> None:
        asked.append(action.arguments if isinstance(action, CallTool) else "")

    approved(LeanAgent, approve, written("python", code="1 + 1"))
    assert [json.loads(a) for a in asked] == [{"code": "1 + 1"}]


# -- what a model sees is bounded, whatever it is made of; what was left out is in the trace, up to a cap of its own

HARD_CAP, RECORD_CAP = 65_536, 262_144
MARK = re.compile(r"\n\.\.\. \[(\d+) characters left out\] \.\.\.\n")


def left_out(text: str) -> int:
    (count,) = MARK.findall(text)
    return int(count)


flood = named("flood", lambda: "f" * 1_000_000)


def fails() -> str:
    """An error that is long."""
    raise ValueError("e" * 1_000_000)


@pytest.fixture(scope="module")
def repl() -> Iterator[PythonREPL]:
    with PythonREPL(timeout=60) as session:
        yield session


PRINT = "print('x' * 200_000)\n"
ANY = {
    "a print": RunCode(PRINT),
    "a value": RunCode("'v' * 200_000"),
    "an error after a print": RunCode(PRINT + "1/0"),
    "an error that is long": RunCode("raise ValueError('e' * 1_000_000)"),
    "a pending answer": RunCode(PRINT + "final_answer = 1\n1/0"),
    "a refused answer": RunCode(PRINT + "final_answer = 1"),
    "a dead process": RunCode(PRINT + "import os, sys; sys.stdout.flush(); os._exit(1)"),
    "a tool's text": CallTool("flood"),
    "a tool's error": CallTool("fails"),
    "a call of the REPL": CallTool("python", '{"code": "print(\'x\' * 200_000)"}'),
    "an unknown tool": CallTool("t" * 200_000),
    "arguments that cannot be read": CallTool("flood", '{"a' * 100_000),
    "a reply that cannot be read": Malformed("m" * 200_000),
    "an answer that is refused": Answer("a" * 200_000),
}


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize(
    ("cap", "around"),
    [(1000, ()), (1000, (TurnCounter(5),)), (10**9, ())],
    ids=["a small cap", "with an injector", "more than the hard cap"],
)
def test_no_observation_is_longer_than_the_cap(repl: PythonREPL, name: str, cap: int, around: Any) -> None:
    class Says(FunctionCalls):
        observation_cap = cap

        def parse_reply(self, *_: Any) -> list[Any]:
            return [ANY[name]]

    class Speaker(LeanAgent):
        def _speaks(self) -> Says:
            return Says()

    own: Any = {"tools": (flood, fails), "repl": repl, "verify": lambda _: "n" * 100_000, "injectors": around}
    (seen,) = Speaker(ScriptedModel(["x"]), max_steps=1, **own).run("?").turns[0].observations
    assert len(seen.text) <= min(cap, HARD_CAP)
    if name in ("an unknown tool", "arguments that cannot be read") and len(seen.text) < cap:
        return  # these are worded to be short
    assert (seen.truncated, left_out(seen.text) > 0) == (True, True)
    assert len(seen.text) < len(seen.full) <= RECORD_CAP
    ends = {"a dead process": "process died", "a pending answer": "to confirm it."}
    assert ends.get(name, "") in seen.text.splitlines()[-1]


@pytest.mark.parametrize("agent", [ToolLoopAgent(), LeanAgent(presentation="native")], ids=lambda agent: agent.name)
@pytest.mark.parametrize(
    ("size", "kept"),
    [(100, 0), (200_000, 200_001), (1_000_000, RECORD_CAP)],
    ids=["small", "up to the record's cap", "beyond"],
)
def test_the_full_text_is_in_the_trace_and_no_prompt(tmp_path: Path, size: int, kept: int, agent: Agent) -> None:
    printed = cell(agent, f"print('a' * {size // 2} + 'é' * {size // 2})")
    model, path = ScriptedModel([printed, final(agent, 1)]), tmp_path / "t.jsonl"
    replace(agent, model=model).run("Look.", trace=path)
    (seen,) = turns_of(read(path))[0].observations
    assert kept - 2 < len(seen.full) <= kept
    assert seen.truncated == (size > HARD_CAP)
    if kept == size + 1:
        assert seen.full == "a" * (size // 2) + "é" * (size // 2) + "\n"
    for text in filter(MARK.search, (seen.text, seen.full)):
        assert len(MARK.sub("", text)) + left_out(text) == size + 1
    assert sum(len(m.text) for m in model.prompts[-1].messages) < HARD_CAP + 10_000
