"""Where tokens come from, with chat templates written here: one character is one token, so counts can be read off."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.messages import Message, Prompt, Span, ToolCall, say
from rlm_loop.models.measure import measure

Render = Callable[[Mapping[str, Any]], str]


def chatml(body: Mapping[str, Any], content: Callable[[str], str] = lambda text: text) -> str:
    out = ""
    for number, message in enumerate(body["messages"]):
        out += f"<{message['role']}>{content(message['content'])}"
        if number == 0 and body.get("tools"):
            out += "".join(f"[{json.dumps(tool)}]" for tool in body["tools"])
        for call in message.get("tool_calls", ()):
            out += f"(call {call['function']['name']} {call['function']['arguments']})"
        out += "</>"
    return out + "<assistant>"


def without_system(body: Mapping[str, Any]) -> str:
    return chatml({"messages": [message for message in body["messages"] if message["role"] != "system"]})


TEMPLATES: dict[str, Render] = {
    "plain": chatml,
    "trimming": lambda body: chatml(body, str.strip),
    "as JSON": lambda body: chatml(body, lambda text: json.dumps(text)[1:-1]),
    "rewriting": lambda body: chatml(body, str.upper),
    "with a default system text": lambda body: "<system>You are user.</>" + chatml(body),
    "without system messages": without_system,
}


def rows(prompt: Prompt, render: Render = chatml) -> list[tuple[str, int, int, int]]:
    parts = measure(prompt, prompt.to_dict(), render, lambda text: [character.encode() for character in text])
    return [(p.cause, p.origin_turn, p.message, p.tokens) for p in parts]


def test_a_default_system_text_comes_before_the_first_message() -> None:
    first = rows(Prompt.ask("x"), TEMPLATES["with a default system text"])[0]
    assert first == ("template", 0, 0, len("<system>You are user.</><user>"))


def test_each_token_is_charged_to_the_text_schema_or_call_it_begins_in() -> None:
    calls = ToolCall("1", "f", "{}"), ToolCall("2", "g", "")
    prompt = Prompt(
        (
            say("system", "S", "system"),
            Message("user", (Span("ask", "task"), Span("!!", "scaffold:x"))),
            Message("assistant", (), calls, turn=2),
            Message("tool", (Span("42", "tool_result"),), tool_call_id="1", turn=2),
            Message("tool", (), tool_call_id="2", turn=2),
            Message("assistant", (Span("t", "assistant"),), calls[:1], turn=3),
        ),
        tools=({"name": "f"},),
    )
    assert rows(prompt) == [
        ("template", 0, 0, len("<system>")),
        ("system", 0, 0, 1),
        ("tool_schema", 0, -1, len('[{"name": "f"}]')),
        ("template", 0, 1, len("</><user>")),
        ("task", 0, 1, 3),
        ("scaffold:x", 0, 1, 2),
        ("template", 2, 2, len("</><assistant>")),
        ("assistant", 2, 2, len("(call f {})(call g )")),
        ("template", 2, 3, len("</><tool>")),
        ("tool_result", 2, 3, 2),
        ("template", 3, 5, len("</><tool></><assistant>")),
        ("assistant", 3, 5, 1),
        ("assistant", 3, 5, len("(call f {})")),
        ("template", 0, 6, len("</><assistant>")),
    ]


def test_trimmed_texts_keep_their_causes() -> None:
    prompt = Prompt((Message("user", (Span("  a", "task"), Span(" b \n", "scaffold:x"), Span("\n", "scaffold:y"))),))
    found = [row for row in rows(prompt, TEMPLATES["trimming"]) if row[0] != "template"]
    assert found == [("task", 0, 0, 1), ("scaffold:x", 0, 0, 2)]


TEXTS = st.one_of(st.text(max_size=12), st.sampled_from(["user", "<user>", " ", "\n", "</>", "Z0x0Z"]))
CAUSES = st.sampled_from(["task", "system", "scaffold:x"])
SPANS = st.lists(st.builds(Span, TEXTS, CAUSES), max_size=3).map(tuple)
CALLS = st.sampled_from([(), (ToolCall("1", "f", '{"a": 1}'),)])
ROLES = st.sampled_from(["system", "user", "tool"])
MESSAGES = st.lists(
    st.one_of(
        st.builds(Message, ROLES, SPANS, turn=st.integers(0, 3)),
        st.builds(Message, st.just("assistant"), SPANS, CALLS, turn=st.integers(0, 3)),
    ),
    max_size=5,
)


@given(MESSAGES, st.integers(0, 2), st.sampled_from(sorted(TEMPLATES)))
def test_the_parts_always_sum_and_the_reading_order_holds(messages: list[Message], tools: int, template: str) -> None:
    prompt = Prompt(tuple(messages), tools=({"name": "f"},) * tools)
    found = rows(prompt, TEMPLATES[template])
    assert sum(row[3] for row in found) == len(TEMPLATES[template](prompt.to_dict()))
    order = [row[2] for row in found if row[0] != "tool_schema"]
    assert order == sorted(order)
    assert all(row[3] > 0 or template == "rewriting" for row in found)  # shares of a sum are rounded


@given(MESSAGES)
def test_with_a_plain_template_every_text_is_charged_whole(messages: list[Message]) -> None:
    prompt = Prompt(tuple(messages))
    charged, expected = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for cause, _turn, index, tokens in rows(prompt):
        if cause not in ("template", "assistant"):
            charged[cause, index] += tokens
    for index, message in enumerate(messages):
        for span in message.spans:
            expected[span.cause, index] += len(span.text)
    assert charged == expected


def test_a_tokenizer_that_does_not_spell_its_text_still_sums() -> None:
    prompt = Prompt.ask("some words")
    parts = measure(prompt, prompt.to_dict(), chatml, lambda _: [b"?"] * 9)
    assert sum(p.tokens for p in parts) == 9
