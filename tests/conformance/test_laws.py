"""The laws that hold for every dialect: each one here runs through all of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm_loop import Budget
from rlm_loop.actions import Answer, CallTool, Malformed, RunCode
from rlm_loop.agents import Agent, SubCalls
from rlm_loop.dialects import (
    CodeBlocks,
    Dialect,
    Direct,
    FormatReminder,
    FunctionCalls,
    Initiator,
    Injected,
    Nudge,
    ReActText,
    ThoughtPrompt,
    TurnCounter,
    TypedCalls,
)
from rlm_loop.messages import Prompt, Reply, ToolCall
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Outcome
from rlm_loop.repl import PythonREPL
from rlm_loop.tools import as_tool
from rlm_loop.traces import Trace
from tests.agents.replies import code, react, written

Say = Callable[..., Reply]
#: The dialect, the outcome, what was asked, and the trace.
Played = tuple[Dialect, Outcome, list[Prompt], Trace]


def as_code(name: str, **arguments: object) -> Reply:
    call = f"final_answer = {arguments['answer']!r}" if name == "final_answer" else f"print({name}(**{arguments!r}))"
    return Reply(f"Let me act.\n{code(call)}\n")


def as_native(name: str, **arguments: object) -> Reply:
    return Reply("", (ToolCall("c1", name, json.dumps(arguments)),), "tool_calls")


def as_json_text(name: str, **arguments: object) -> Reply:
    return Reply(f"```json\n{written(name, **arguments)}\n```")


def as_react(name: str, **arguments: object) -> Reply:
    said = react("finish" if name == "final_answer" else name, **arguments)
    return Reply(f"{said}\nObservation: invented by the model")


FULL = (TurnCounter(9), FormatReminder("Use a fence."))
EVERY: dict[str, tuple[Dialect, Say]] = {
    "code": (CodeBlocks(), as_code),
    "native": (FunctionCalls("native"), as_native),
    "native, written as text": (FunctionCalls("native"), as_json_text),
    "text": (FunctionCalls("text"), as_json_text),
    "constrained": (FunctionCalls("constrained"), as_json_text),
    "typed": (TypedCalls("native"), as_native),
    "react text": (ReActText(), as_react),
    "react over native calls": (Injected(FunctionCalls("native"), (Initiator(), ThoughtPrompt())), as_native),
    "react over text calls": (Injected(FunctionCalls("text"), (Initiator(), ThoughtPrompt())), as_json_text),
    "lean with a nudge": (Injected(FunctionCalls("text"), (Nudge(),)), as_json_text),
    "code with everything": (Injected(CodeBlocks(), FULL), as_code),
}
DIALECTS = {**{k: v[0] for k, v in EVERY.items()}, "direct": Direct()}


def look(word: str) -> str:
    """Look up a word."""
    if word == "boom":
        raise ValueError("no such word")
    return f"found {word}"


@pytest.fixture(scope="module")
def repl() -> Iterator[PythonREPL]:
    with PythonREPL(timeout=20) as session:
        yield session


@dataclass(frozen=True)
class Speaker(Agent):
    """An agent that speaks any dialect, without sub-calls."""

    subcalls: SubCalls = field(default_factory=lambda: SubCalls(depth=0))
    speaks: Dialect = field(default_factory=CodeBlocks)

    def _speaks(self) -> Dialect:
        return self.speaks


def play(dialect: Dialect, replies: list[Reply], repl: PythonREPL, **limits: int) -> Played:
    """Run scripted replies through a dialect in the shared session."""
    model, trace = ScriptedModel(replies), Trace()
    agent = Speaker(model=model, speaks=dialect, repl=repl, tools=(look,), budget=Budget(**{"steps": 8, **limits}))
    return dialect, agent.run("Find the cat.", trace=trace), model.prompts, trace


@pytest.fixture(scope="module", params=EVERY)
def walk(request: pytest.FixtureRequest, repl: PythonREPL) -> Played:
    """A call that fails, three that come off, and the answer."""
    dialect, say = EVERY[request.param]
    words = [say("look", word=word) for word in ("boom", "cat", "a", "b")]
    return play(dialect, [*words, say("final_answer", answer="tabby")], repl)


def test_every_dialect_walks_the_same_path(walk: Played) -> None:
    _, outcome, prompts, _ = walk
    assert (outcome.stop, outcome.answer, outcome.steps) == ("answered", "tabby", 5)
    seen = "\n".join(m.text for m in prompts[-1].messages)
    # what a model claims to have observed is not kept
    assert [word in seen for word in ("no such word", "found cat", "invented")] == [True, True, False]


def test_the_prompt_only_grows(walk: Played) -> None:
    _, _, prompts, _ = walk
    for before, after in itertools.pairwise(prompts):
        assert after.messages[: len(before.messages)] == before.messages
        assert (after.tools, after.stop) == (before.tools, before.stop)


def test_every_token_is_accounted_for(walk: Played) -> None:
    _, outcome, _, trace = walk
    for call in outcome.ledger.calls:
        assert (sum(r.tokens for r in call.rows), call.exact) == (call.usage.input_tokens, True)
    assert sum(r.tokens for r in outcome.ledger.rows) == outcome.usage.input_tokens
    assert outcome.usage.calls == len([e for e in trace.events if e["event"] == "reply"]) == 5


def test_the_lean_forms_add_nothing_and_results_read_alike(walk: Played) -> None:
    """Neutral: the text of a result is the same span in every dialect, whatever stands around it."""
    dialect, _, prompts, _ = walk
    added = [s for m in prompts[2].messages if m.turn == 2 and m.role != "assistant" for s in m.spans]
    assert [s.text.strip() for s in added if s.cause in ("tool_result", "repl_output")] == ["found cat"]
    if not isinstance(dialect, (Injected, ReActText)):
        assert len(added) == 1


@pytest.mark.parametrize("name", DIALECTS)
def test_a_cut_off_reply_is_never_run_and_never_an_answer(name: str) -> None:
    dialect = DIALECTS[name]
    say = EVERY[name][1] if name in EVERY else as_code
    for reply in (say("look", word="cat"), Reply("The answer is 4")):
        actions = dialect.parse_reply(Reply(reply.text, reply.tool_calls, "length"))
        assert {isinstance(a, Malformed) and a.kind for a in actions} == {"cut_off"}


CALLS = st.builds(ToolCall, st.none() | st.text(max_size=3), st.text(max_size=6), st.text(max_size=12))


@pytest.mark.parametrize("name", DIALECTS)
@given(
    text=st.text(max_size=200) | st.sampled_from(["```python\n", "Action:", '{"name":', "Thought: x\nAction: finish"]),
    calls=st.lists(CALLS, max_size=3),
    reason=st.sampled_from(["stop", "length", "tool_calls", "content_filter", "error"]),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_reply_parses_to_at_least_one_action(name: str, text: str, calls: list[ToolCall], reason: str) -> None:
    reply = Reply(text, tuple(calls), reason)  # type: ignore[arg-type]
    kinds = {type(action) for action in DIALECTS[name].parse_reply(reply, {"look": as_tool(look)})}
    assert set() < kinds <= {RunCode, CallTool, Answer, Malformed}


@pytest.mark.parametrize("name", EVERY)
def test_an_answer_in_the_turn_that_breaks_a_limit_is_kept(name: str, repl: PythonREPL) -> None:
    dialect, say = EVERY[name]
    _, outcome, *_ = play(dialect, [say("final_answer", answer=7)], repl, steps=1, calls=1)
    assert (outcome.stop, outcome.answer) == ("answered", 7)


@pytest.mark.parametrize("name", EVERY)
def test_unreadable_replies_in_a_row_end_the_run(name: str, repl: PythonREPL) -> None:
    empty = [Reply(" " * n) for n in range(1, 9)]
    _, outcome, *_ = play(EVERY[name][0], empty, repl, malformed=3)
    assert (outcome.stop, outcome.steps, outcome.usage.calls) == ("malformed", 3, 3)  # unreadable replies are billed


@pytest.mark.parametrize("name", EVERY)
def test_the_same_reply_with_the_same_result_again_ends_the_run(name: str, repl: PythonREPL) -> None:
    dialect, say = EVERY[name]
    assert play(dialect, [say("look", word="a")] * 5, repl)[1].stop == "repeated"
    _, outcome, *_ = play(dialect, [say("look", word="a"), say("look", word="b")] * 3, repl)
    assert (outcome.stop, outcome.steps) == ("repeated", 4)
