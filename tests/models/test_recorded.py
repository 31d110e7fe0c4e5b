from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.messages import Prompt, Reply, Usage, say
from rlm_loop.models import Diverged, RecordedModel, ScriptedModel
from rlm_loop.traces import RunRecord, Trace

FIRST = Prompt((say("system", "Be brief.", "system"), say("user", "How much is 2 + 2?", "task")))
MORE = (say("assistant", "4?", "assistant", turn=1), say("user", "Sure?", "task", turn=1))
SECOND = FIRST + MORE
REPLIES = [Reply("4?", usage=Usage(9, 2, 0)), Reply("Yes: 4.", finish_reason="length", extra={"id": "7"})]


def recorded(*calls: tuple[Prompt, Reply]) -> RecordedModel:
    trace = Trace()
    trace.start()
    for number, (prompt, reply) in enumerate(calls):
        trace.record("request", prompt=prompt, model="some/model", turn=1, call_id=number)
        trace.record("reply", request=prompt, reply=reply, call_id=number)
    return RecordedModel(RunRecord(tuple(trace.events)))


def model() -> RecordedModel:
    return recorded((FIRST, REPLIES[0]), (SECOND, REPLIES[1]))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (Prompt((FIRST.messages[0], say("user", "How much is 2 + 3?", "task"))), r"call 1 .*message 1 \(user\)"),
        (Prompt((FIRST.messages[0], say("system", "How much is 2 + 2?", "task"))), "message 1"),
        (Prompt(FIRST.messages[:1]), r"message 1 \(user\): .* asked ''"),
        (SECOND + MORE, r"message 2 .*: recorded ''"),
        (Prompt(FIRST.messages, stop=("x",)), "stop: "),
        (Prompt(FIRST.messages, tools=({"a": 1},)), "tools: "),
    ],
)
def test_the_first_difference_is_named(asked: Prompt, says: str) -> None:
    with pytest.raises(Diverged, match=says):
        model().complete(asked)


def test_the_same_requests_get_the_same_replies_and_the_number_of_another_is_named() -> None:
    made = model()
    assert (made.name, made.complete(FIRST)) == ("some/model", REPLIES[0])
    with pytest.raises(Diverged, match="call 2 "):
        made.complete(FIRST)
    assert made.complete(SECOND) == REPLIES[1]  # a refused request uses nothing up
    with pytest.raises(Diverged, match=r"call 3 .* ends after 2 calls"):
        made.complete(SECOND)


def counting(more: int) -> ScriptedModel:
    """A model that counts `more` tokens than it reports."""
    count = ScriptedModel([]).prompt_tokens
    return ScriptedModel([lambda prompt: Reply("Four.", usage=Usage(count(prompt) - more, 2))])


@pytest.mark.parametrize(("more", "way"), [(0, "exact"), (3, "shared out by length")])
def test_what_was_counted_exactly_is_exact_again(tmp_path: Path, more: int, way: str) -> None:
    file = tmp_path / "run.jsonl"
    first = ToolLoopAgent(model=counting(more)).run("How much is 2 + 2?", trace=file)
    again = ToolLoopAgent(model=RecordedModel.from_trace(file)).run("How much is 2 + 2?")
    assert again.ledger.counting == way
    assert again.usage == first.usage
    assert (again.ledger.by_cause() == first.ledger.by_cause()) is (more == 0)


def test_sub_calls_may_come_in_another_order_and_each_once() -> None:
    prompts = [Prompt.ask(text) for text in ("root", "a", "b", "root again")]
    model = recorded(*[(p, Reply(p.messages[0].text.upper())) for p in prompts])
    assert [model.complete(prompts[i]).text for i in (0, 2, 1, 3)] == ["ROOT", "B", "A", "ROOT AGAIN"]
    with pytest.raises(Diverged, match="was never recorded"):
        model.complete(prompts[1])
