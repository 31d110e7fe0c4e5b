from __future__ import annotations

import pickle
from typing import Any

import pytest

from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall, Usage, say
from rlm_loop.models import ModelError, ScriptedModel, text_tokens

ASK = Prompt.ask("12345")


def test_replies_come_in_order_in_all_their_forms_until_there_are_none() -> None:
    model = ScriptedModel(["a", Reply("b"), lambda p: f"{len(p.messages)} message", lambda _: Reply("d")])
    assert [model.complete(ASK).text for _ in range(4)] == ["a", "b", "1 message", "d"]
    assert model.prompts == [ASK] * 4
    assert pickle.loads(pickle.dumps(ScriptedModel(["a"]))).complete(ASK).text == "a"
    with pytest.raises(ModelError, match="was given 4 replies"):
        model.complete(ASK)


@pytest.mark.parametrize("error", [ModelError("x"), ValueError("x"), KeyboardInterrupt(), KeyboardInterrupt])
@pytest.mark.parametrize("called", [False, True], ids=["itself", "of a callable"])
def test_exceptions_are_raised(error: BaseException | type[BaseException], called: bool) -> None:
    with pytest.raises(error if isinstance(error, type) else type(error)):
        ScriptedModel([(lambda _: error) if called else error]).complete(ASK)


def test_the_counting_rule() -> None:
    call = ToolCall("1", "add", '{"a": 1}')  # 11 characters: 3 tokens
    prompt = Prompt(
        (
            say("system", "12345678", "system"),
            Message("user", (Span("12345", "task"), Span("x", "scaffold:turns"))),
            Message("assistant", (), (call,), turn=1),
        ),
        tools=({"a": 1},),  # {"a": 1} is 8 characters
    )
    model = ScriptedModel(["123456789"], price=(2.0, 10.0))
    assert [(p.cause, p.origin_turn, p.message, p.tokens) for p in model.measure(prompt)] == [
        ("tool_schema", 0, -1, 2),
        ("template", 0, 0, 4),
        ("system", 0, 0, 2),
        ("template", 0, 1, 4),
        ("task", 0, 1, 2),
        ("scaffold:turns", 0, 1, 1),
        ("template", 1, 2, 4),
        ("assistant", 1, 2, 3),
        ("template", 0, 3, 3),
    ]
    assert model.complete(prompt).usage == Usage(25, 3, 0, cost=25 * 2.0 + 3 * 10.0)


def test_cached_tokens_are_those_of_the_common_start() -> None:
    model = ScriptedModel(["a"] * 4)
    first = Prompt((say("user", "12345678", "task"),), tools=({"a": 1},))
    more = [say("assistant", "a", "assistant", turn=1)]
    grown = first + more
    other = Prompt(grown.messages)
    cached = [model.complete(p).usage.cache_read_tokens for p in (first, grown, other, ASK)]  # type: ignore[union-attr]
    assert cached == [0, 2 + 4 + 2, 0, 0]


@pytest.mark.parametrize(
    ("reply", "limit", "text", "finish"),
    [
        ("123456789", 3, "123456789", "stop"),
        ("123456789", 2, "12345678", "length"),
        ("123456789", 0, "", "length"),
        ("123456789", None, "123456789", "stop"),
        (Reply("1234", (ToolCall(None, "f", "{}"),)), 1, "1234", "length"),
    ],
)
def test_a_limit_cuts(reply: str | Reply, limit: int | None, text: str, finish: str) -> None:
    got: Any = ScriptedModel([reply]).complete(ASK, max_tokens=limit)
    assert (got.text, got.finish_reason, got.tool_calls) == (text, finish, ())
    assert got.usage.output_tokens == text_tokens(text)
