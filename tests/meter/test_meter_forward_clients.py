"""The official clients, once straight to a strict provider and once through the meter: both sides see the same.

The provider compares nothing itself: the test does, byte by byte what it got, value by value what the client read.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lazy import Lazy, needs
from upstream import Answer, Got, upstream
from wires import CALL, TOOL, user  # pyright: ignore

from rlm_loop.meter import metered_endpoint

openai, anthropic, genai, litellm = Lazy("openai"), Lazy("anthropic"), Lazy("google.genai"), Lazy("litellm")
FUNCTION = {"type": "function", **TOOL["function"]}
HEAD = {"id": "chatcmpl-1", "created": 1, "model": "m"}
MADE = {"role": "assistant", "content": "I add.", "tool_calls": [CALL]}
COUNTED = {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}
CHOICES = [{"index": 0, "finish_reason": "tool_calls", "message": MADE}]
CHAT = {**HEAD, "object": "chat.completion", "choices": CHOICES, "usage": COUNTED}


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {**HEAD, "object": "chat.completion.chunk", "choices": choices, "usage": None}


CHUNKS = [
    chunk(role="assistant", content=""),
    chunk(content="I "),
    chunk(content="add."),
    chunk(tool_calls=[{**CALL, "index": 0, "function": {"name": "add", "arguments": "{"}}]),
    chunk(tool_calls=[{"index": 0, "function": {"arguments": '"a": 1}'}}]),
    chunk("tool_calls"),
    {**chunk(), "choices": [], "usage": COUNTED},
    "[DONE]",
]
TEXT = {"type": "output_text", "text": "I add.", "annotations": []}
SAID = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [TEXT]}
DETAILS = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [SAID],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {"input_tokens": 50, "output_tokens": 7, "total_tokens": 57, **DETAILS},
}


def response_events() -> list[Any]:
    begun = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    at = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**SAID, "content": []}},
        {"type": "response.content_part.added", **at, "part": {**TEXT, "text": ""}},
        {"type": "response.output_text.delta", **at, "delta": "I ", "logprobs": []},
        {"type": "response.output_text.delta", **at, "delta": "add.", "logprobs": []},
        {"type": "response.output_text.done", **at, "text": "I add.", "logprobs": []},
        {"type": "response.content_part.done", **at, "part": TEXT},
        {"type": "response.output_item.done", "output_index": 0, "item": SAID},
        {"type": "response.completed", "response": RESPONSE},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "I add."}, {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 20, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 0, "output_tokens": 7},
}


def block(index: int, begun: dict[str, Any], kind: str, name: str, *pieces: str) -> list[Any]:
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}} for piece in pieces),
        {"type": "content_block_stop", "index": index},
    ]


ENDED = {"stop_reason": "tool_use", "stop_sequence": None}
USE = {"type": "tool_use", "id": "t1", "name": "add", "input": {}}
MESSAGE_EVENTS = [
    {
        "type": "message_start",
        "message": {**MESSAGE, "content": [], "stop_reason": None, "usage": {**MESSAGE["usage"], "output_tokens": 1}},
    },
    *block(0, {"type": "text", "text": ""}, "text_delta", "text", "I ", "add."),
    {"type": "ping"},
    *block(1, USE, "input_json_delta", "partial_json", '{"a"', ": 1}"),
    {"type": "message_delta", "delta": ENDED, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
]


def content(text: str, **more: Any) -> dict[str, Any]:
    parts: list[Any] = [{"text": text}] if text else [{"functionCall": {"name": "add", "args": {"a": 1}}}]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "g", **more}


USED = {"promptTokenCount": 50, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "totalTokenCount": 57}
CONTENTS = [content("I "), content("add."), content("", usageMetadata=USED)]


def openai_chat(base: str, stream: bool) -> Any:
    with openai.OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0) as client:
        said = [{"role": "developer", "content": "Rules."}, user("1 + 2?")]
        if not stream:
            return client.chat.completions.create(model="m", messages=said, tools=[TOOL]).model_dump()
        asked = client.chat.completions.stream(
            model="m", messages=said, tools=[TOOL], stream_options={"include_usage": True}
        )
        with asked as events:
            return events.get_final_completion().model_dump()


def openai_responses(base: str, stream: bool) -> Any:
    with openai.OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0) as client:
        if not stream:
            return client.responses.create(model="m", input="1 + 2?", tools=[FUNCTION]).model_dump()
        with client.responses.stream(model="m", input="1 + 2?", tools=[FUNCTION]) as events:
            return events.get_final_response().model_dump()


def anthropic_messages(base: str, stream: bool) -> Any:
    with anthropic.Anthropic(base_url=base, api_key="k", max_retries=0) as client:
        system = [{"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}}]
        tools = [{"name": "add", "input_schema": {"type": "object"}}, {"type": "bash_20250124", "name": "bash"}]
        asked = {"model": "m", "max_tokens": 9, "system": system, "messages": [user("1 + 2?")], "tools": tools}
        if not stream:
            return client.messages.create(**asked).model_dump()
        with client.messages.stream(**asked) as events:
            return events.get_final_message().model_dump()


def google(base: str, stream: bool) -> Any:
    client = genai.Client(api_key="k", http_options={"base_url": base})
    try:
        asked = {"model": "gemini-2.5-pro", "contents": "1 + 2?", "config": {"system_instruction": "Rules."}}
        if not stream:
            return [_plain(client.models.generate_content(**asked))]
        return [_plain(chunk) for chunk in client.models.generate_content_stream(**asked)]
    finally:
        client.close()


def _plain(answer: Any) -> Any:
    return answer.model_dump(exclude={"sdk_http_response"})


def lite(base: str, stream: bool) -> Any:
    said = [{"role": "system", "content": "Rules."}, user("1 + 2?")]
    asked = {"model": "anthropic/claude-sonnet-4-5", "api_base": base, "api_key": "k", "messages": said}
    answer = litellm.completion(**asked, stream=stream, num_retries=0)
    if stream:
        answer = litellm.stream_chunk_builder(list(answer))
    message = answer.choices[0].message
    return message.content, [call.function.arguments for call in message.tool_calls or ()]


STREAMED = Answer.events(*MESSAGE_EVENTS, named=True)
ANSWERED = Answer.events(*response_events(), named=True)
CASES = [
    pytest.param("openai", openai_chat, Answer.of(CHAT), Answer.events(*CHUNKS), id="openai-chat"),
    pytest.param("openai", openai_responses, Answer.of(RESPONSE), ANSWERED, id="responses"),
    pytest.param("anthropic", anthropic_messages, Answer.of(MESSAGE), STREAMED, id="anthropic"),
    pytest.param("google.genai", google, Answer.of(CONTENTS[-1]), Answer.events(*CONTENTS), id="google-genai"),
    pytest.param("litellm", lite, Answer.of(MESSAGE), STREAMED, id="litellm"),
]


@pytest.mark.slow  # each client takes seconds to import
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("package", "ask", "whole", "events"), CASES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # the clients' own
def test_both_sides_see_the_same(
    package: str, ask: Callable[[str, bool], Any], whole: Answer, events: Answer, stream: bool
) -> None:
    mark = needs(package, extra="dev")
    if mark.args[0]:
        pytest.skip(mark.kwargs["reason"])
    with upstream(events if stream else whole) as up:
        straight = ask(up.url, stream)
        with metered_endpoint(forward=up.url) as url:
            through = ask(url.root, stream)
            (call,) = url.meter.calls
            rows = url.meter.frame()
    assert through == straight
    first, second = up.got
    assert (first.method, first.path, first.body) == (second.method, second.path, second.body)
    assert headers(first) == headers(second)
    assert (call.input_tokens, call.output_tokens, call.stream, call.unread) == (50, 7, stream, "")
    assert rows.tokens.sum() == 50
    assert "task" in set(rows.cause)


ASKED = {"model": "m", "messages": [user("1 + 2?")], "stream": True}
SHAPES = [
    pytest.param("/v1/chat/completions", ASKED, Answer.events(*CHUNKS), id="chat"),
    pytest.param("/v1/responses", {"model": "m", "input": "1 + 2?", "stream": True}, ANSWERED, id="responses"),
    pytest.param("/v1/messages", ASKED, STREAMED, id="messages"),
    pytest.param(
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "1 + 2?"}]}]},
        Answer.events(*CONTENTS),
        id="gemini",
    ),
]


@pytest.mark.parametrize(("path", "asked", "sent"), SHAPES)
def test_a_stream_comes_chunk_by_chunk_as_it_was_sent(path: str, asked: Any, sent: Answer) -> None:
    body = json.dumps(asked, indent=3).encode()
    gates = [threading.Event() for _ in sent.pieces]
    gated = Answer([one for pair in zip(gates, sent.pieces, strict=True) for one in pair], headers=sent.headers)
    with upstream(gated) as up, metered_endpoint(forward=up.url) as url, httpx.Client(trust_env=False) as client:
        with client.stream("POST", f"{url.root}{path}", content=body) as answer:
            pieces, came, expected = answer.iter_raw(), b"", b""
            for gate, piece in zip(gates, sent.pieces, strict=True):
                gate.set()  # what follows is only sent now, so a meter that waited for the whole would wait for ever
                expected += piece
                while len(came) < len(expected):
                    came += next(pieces)
                assert came == expected
            assert b"".join(pieces) == b""
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        (call,) = url.meter.calls
        assert (call.input_tokens, call.output_tokens, call.delivered, call.stream) == (50, 7, True, True)
        assert url.meter.frame().tokens.sum() == 50
    assert (up.got[0].path, up.got[0].body) == (path, body)


def headers(got: Got) -> list[tuple[str, str]]:
    """What the client itself said; the retry count and the like are its own, too."""
    framing = ("host", "content-length", "connection", "accept-encoding")
    return [(k, v) for k, v in got.headers if k.lower() not in framing]
