"""What compaction never does, under every dialect and policy, over random histories."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_laws import EVERY, look

from rlm_loop.accounting import Account, Budget, Ledger, Part
from rlm_loop.actions import Action, Answer, CallTool, Failure, FinalAnswer, Malformed, Observation
from rlm_loop.agents import Compaction
from rlm_loop.agents.conversation import Conversation
from rlm_loop.agents.environment import PENDING
from rlm_loop.agents.meter import Meter
from rlm_loop.dialects import Problem
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.models import Model, ModelError, RecordedModel, ScriptedModel
from rlm_loop.outcome import Turn
from rlm_loop.replay import ledger_of
from rlm_loop.tools import as_tool
from rlm_loop.traces import RunRecord, Trace
from tests.agents.replies import Uncounted

TOOLS = {"look": as_tool(look)}
#: Dialects that are to compaction what others here are.
ALIKE = {"native, written as text", "typed", "react over text calls"}
SUMMARY = "word 7 was found; x is set; the rest is to do"


@dataclass(frozen=True)
class Step:
    """One turn of a random history: how long the reply is, how many calls, and how long each result is."""

    said: int
    calls: int
    results: tuple[int, ...]
    pending: bool
    junk: bool


LENGTHS = st.tuples(*[st.sampled_from([0, 5, 40, 400, 2_000])] * 3)
STEP = st.builds(Step, st.integers(0, 300), st.integers(1, 3), LENGTHS, st.booleans(), st.booleans())
#: Limits in tokens and in messages.
LIMITS = [(None, 3), (None, 6), (None, 40), (30, None), (250, None), (600, None), (1_500, None), (250, 9), (600, 6)]
PLANS = st.builds(
    lambda policy, limit, keep, summary: Compaction(policy, limit[0], keep, limit[1], summary),
    st.sampled_from(["drop_outputs", "window", "summary"]),
    st.sampled_from(LIMITS),
    st.integers(1, 4),
    st.sampled_from([20, 120]),
)


def reply_of(name: str, step: Step, number: int) -> Reply:
    if step.junk:
        return Reply(" ")
    words, one = f"Turn {number}. " + "x" * step.said, EVERY[name][1]("look", word=f"w{number}")
    if name == "react text":
        return Reply(one.text.replace("on.", words, 1))
    calls = tuple(replace(call, id=f"c{number}") for call in one.tool_calls * step.calls)
    texts = [one.text] * (step.calls if "code" in name else 1)
    return Reply("\n".join([words, *texts]).rstrip(), calls, one.finish_reason)


def observed(action: Action, size: int, pending: bool) -> Observation:
    if isinstance(action, (Malformed, Answer)):
        return Observation("no action", Failure("malformed", "no action"), "error")
    text = "r" * size + ("\n" + PENDING if pending else "")
    cause = "tool_result" if isinstance(action, CallTool) else "repl_output"
    return Observation(text, None, cause, pending=FinalAnswer(1) if pending else None)


def said(message: Message) -> tuple[Any, ...]:
    """The parts of a message that are no result and no mark in the place of one."""
    own = [s.text for s in message.spans if s.cause not in ("tool_result", "repl_output", "error", "summary")]
    return message.role, message.tool_calls, message.tool_call_id, own


@dataclass
class Played:
    prompts: list[Prompt]  # what was sent to the agent's model
    grown: list[Prompt]  # what each would have been without compaction in this step
    turns: list[Turn]
    replayed: dict[int, Sequence[Message]]
    trace: Trace
    metered: Meter


class Dense(ScriptedModel):
    """Three times the tokens that an estimate by length expects: what was counted has to come out of the record."""

    def measure(self, prompt: Prompt) -> list[Part]:
        return [part._replace(tokens=3 * part.tokens) for part in super().measure(prompt)]


def play(name: str, plan: Compaction, script: Sequence[Step], model: Model) -> Played:
    """The loop's own order of things, with observations made up instead of acted out."""
    dialect, trace = EVERY[name][0], Trace()
    trace.start()
    metered = Meter(model, Account(Budget(steps=None)), Ledger(), trace)
    conversation = Conversation(dialect, plan)
    conversation.start(Problem("Find the cat.", "context is a str of 9 characters"), TOOLS, metered)
    played = Played([], [], conversation.turns, {}, trace, metered)
    for number, step in enumerate(script, 1):
        played.grown.append(conversation.prompt)
        prompt = conversation.next_prompt()
        played.prompts.append(prompt)
        reply = metered.complete(prompt, turn=number)
        actions = tuple(dialect.parse_reply(reply, TOOLS))
        results = enumerate(zip(actions, step.results, strict=False))
        seen = tuple(observed(action, size, step.pending and not i) for i, (action, size) in results)
        played.replayed[number] = dialect.format_turn(conversation.add(Turn(number, reply, actions, seen)))
    return played


def scripted(name: str, script: Sequence[Step], summary: Any = SUMMARY, kind: Any = ScriptedModel) -> Model:
    """Replies by what is asked for: a summary, or the next turn."""
    replies = iter([reply_of(name, step, number) for number, step in enumerate(script, 1)])

    def answer(prompt: Prompt) -> Any:
        return summary if prompt.messages[-1].text.endswith("do not answer the task.") else next(replies)

    return kind([answer] * 2 * len(script))


@pytest.mark.parametrize("name", [name for name in EVERY if name not in ALIKE])
@given(
    plan=PLANS,
    script=st.lists(STEP, min_size=1, max_size=9),
    failing=st.booleans(),
    counting=st.sampled_from(["rule", "dense", "none"]),
)
@settings(max_examples=20, deadline=None)
def test_nothing_that_matters_is_lost(
    name: str, plan: Compaction, script: list[Step], failing: bool, counting: str
) -> None:
    kind = Dense if counting == "dense" else ScriptedModel
    made = scripted(name, script, ModelError("down") if failing else SUMMARY, kind)
    played = play(name, plan, script, Uncounted(made) if counting == "none" else made)
    first = played.grown[0]
    events = [e for e in played.trace.events if e["event"] == "compaction"]
    by_turn = {e["turn"]: e for e in events}
    assert len(by_turn) == len(events)  # at most one for each request
    for number, (prompt, grown) in enumerate(zip(played.prompts, played.grown)):
        # system, task, schemas and the answer's format: as they were, and only a note after them
        brief = [m for m in prompt.messages if not m.turn]
        assert len(brief) == len(first.messages)
        for old, new in zip(first.messages, brief):
            assert new.spans[: len(old.spans)] == old.spans
            assert all(s.cause == "summary" for s in new.spans[len(old.spans) :])
        assert (prompt.tools, prompt.stop, prompt.reply_schema) == (first.tools, first.stop, first.reply_schema)
        # a turn is there whole or not at all, in order, with what the model said; the last one word for word
        there = list(dict.fromkeys(m.turn for m in prompt.messages if m.turn))
        assert there == sorted(there)
        for turn in there:
            messages = [m for m in prompt.messages if m.turn == turn]
            assert list(map(said, messages)) == list(map(said, played.replayed[turn]))
            assert turn < number or messages == list(played.replayed[number])
        assert not number or number in there
        # every call has its results right after it
        for index, message in enumerate(prompt.messages):
            ids = [c.id for c in message.tool_calls]
            assert [m.tool_call_id for m in prompt.messages[index + 1 : index + 1 + len(ids)]] == ids
        # roles follow one another as they did
        pairs = {(a.role, b.role) for a, b in itertools.pairwise(grown.messages)}
        assert {(a.role, b.role) for a, b in itertools.pairwise(prompt.messages)} <= pairs | {("user", "assistant")}
        # an answer that waits to be confirmed is in sight
        if any(t.pending for t in played.turns[:number]):
            assert PENDING in "".join(m.text for m in prompt.messages)
        # a change is announced, and what is over the limits is said to be
        event = by_turn.get(number) if number else None
        assert (prompt == grown) or event is not None
        if event is not None:
            before = dict.fromkeys(m.turn for m in grown.messages if m.turn)
            assert event["left_out"] == [turn for turn in before if turn not in there]
            tokens = played.metered.model.prompt_tokens(prompt)
            assert event["tokens"] in (tokens, None)
            limit, most = plan.threshold_tokens, plan.max_messages
            over = (limit is not None and tokens > limit) or (most is not None and len(prompt.messages) > most)
            assert event["over"] == over
    # every token has a cause; the summary has its own purpose
    ledger = played.metered.ledger
    for call in ledger.calls:
        assert sum(r.tokens for r in call.rows) == call.usage.input_tokens
    purposes = [c.purpose for c in ledger.calls]
    assert purposes.count("agent") == len(script)
    assert purposes.count("compaction") >= sum(e["policy"] == "summary" for e in events)
    if plan.policy != "summary" or failing:
        assert "compaction" not in purposes
    # the trace gives back the same requests and the same ledger
    record = RunRecord(tuple(played.trace.events))
    asked = [p for e, p, _ in record.replies() if e["charged"]["purpose"] == "agent"]
    assert (asked, ledger_of(record).calls) == (played.prompts, ledger.calls)
    assert [p.digest for p in asked] == [p.digest for p in played.prompts]
    # and drives the same run again, without the tokenizer and the failures being at hand
    again = RecordedModel(record)
    assert play(name, plan, script, again).prompts == played.prompts
    assert len(again.prompts) == len([*record.replies()])


@pytest.mark.parametrize("policy", ["drop_outputs", "window", "summary"])
def test_a_trace_stays_linear_where_compaction_goes_on_and_on(policy: Any) -> None:
    limit = 1_800 if policy == "drop_outputs" else 450  # what the model said stays, and grows
    script = [Step(20, 1, (300, 0, 0), False, False)] * 40
    played = play("native", Compaction(policy, limit, 4), script, scripted("native", script))
    events = [e for e in played.trace.events if e["event"] == "compaction"]
    assert len(events) > 2
    assert all(e["due"] == "tokens" and e["tokens_before"] > limit for e in events)
    listed = sum(len(e["added"]) for e in played.trace.events if e["event"] == "request")
    # each message when it is new and when it is changed, and the few that stand after a change
    assert listed <= 2 * 2 * 40 + 10 * len(events)
    charged = sum(len(e["charged"]["parts"]["new"]) for e in played.trace.events if e["event"] == "reply")
    assert charged < 30 * 40
