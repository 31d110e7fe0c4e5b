"""The official clients, once straight to a strict provider and once through the meter: both sides see the same.

The test compares, byte by byte what the provider got, value by value what the client read.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from lazy import Lazy
from upstream import EVENT_STREAM, Answer, Got, upstream
from wires import TOOL, user  # pyright: ignore

from rlm_loop.meter import metered_endpoint
from tests.providers.anthropic_messages import AnthropicMessages
from tests.providers.openai_chat import OpenAIChat
from tests.providers.serving import INPUT, OUTPUT, Provider, Said

openai, anthropic, genai, litellm = Lazy("openai"), Lazy("anthropic"), Lazy("google.genai"), Lazy("litellm")
FUNCTION = {"type": "function", **TOOL["function"]}


def scripted(provider: Provider, stream: bool) -> Answer:
    """Text and a call, as a stand-in says them."""
    body = {"model": "m", "stream_options": {"include_usage": True}}
    whole = provider.answer(Said("I add.", (("add", {"a": 1}),)), body)
    if not stream:
        return Answer.of(whole)
    return Answer([one.encode() for one in provider.events(whole, body)], headers=EVENT_STREAM)


TEXT = {"type": "output_text", "text": "I add.", "annotations": []}
SAID = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [TEXT]}
DETAILS = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
USED = {"input_tokens": INPUT, "output_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT, **DETAILS}
MADE = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": [SAID]}
RESPONSE = {**MADE, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": USED}


def response(stream: bool) -> Answer:
    if not stream:
        return Answer.of(RESPONSE)
    begun = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    at = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**SAID, "content": []}},
        {"type": "response.content_part.added", **at, "part": {**TEXT, "text": ""}},
        {"type": "response.output_text.delta", **at, "delta": "I add.", "logprobs": []},
        {"type": "response.completed", "response": RESPONSE},
    ]
    return Answer.events(*({**event, "sequence_number": number} for number, event in enumerate(events)), named=True)


def contents(stream: bool) -> Answer:
    call = {"functionCall": {"name": "add", "args": {"a": 1}}}
    found: list[Any] = [
        {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "modelVersion": "g"}
        for part in ({"text": "I "}, {"text": "add."}, call)
    ]
    used = {"promptTokenCount": INPUT, "candidatesTokenCount": 8, "thoughtsTokenCount": OUTPUT - 8}
    found[-1]["usageMetadata"] = {**used, "totalTokenCount": INPUT + OUTPUT}
    return Answer.events(*found) if stream else Answer.of(found[-1])


def openai_chat(base: str, stream: bool) -> Any:
    with openai.OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0) as client:
        said = [{"role": "developer", "content": "Rules."}, user("1 + 2?")]
        asked: Any = {"model": "m", "messages": said, "tools": [TOOL]}
        if not stream:
            return client.chat.completions.create(**asked).model_dump()
        with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
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
    with closing(genai.Client(api_key="k", http_options={"base_url": base})) as client:
        asked = {"model": "gemini-2.5-pro", "contents": "1 + 2?", "config": {"system_instruction": "Rules."}}
        models = client.models
        said = models.generate_content_stream(**asked) if stream else [models.generate_content(**asked)]
        return [answer.model_dump(exclude={"sdk_http_response"}) for answer in said]


def lite(base: str, stream: bool) -> Any:
    said = [{"role": "system", "content": "Rules."}, user("1 + 2?")]
    asked = {"model": "anthropic/claude-sonnet-4-5", "api_base": base, "api_key": "k", "messages": said}
    answer = litellm.completion(**asked, stream=stream, num_retries=0)
    if stream:
        answer = litellm.stream_chunk_builder(list(answer))
    message = answer.choices[0].message
    return message.content, [call.function.arguments for call in message.tool_calls or ()]


CASES = [
    pytest.param("openai", openai_chat, lambda stream: scripted(OpenAIChat(), stream), id="openai-chat"),
    pytest.param("openai", openai_responses, response, id="responses"),
    pytest.param("anthropic", anthropic_messages, lambda stream: scripted(AnthropicMessages(), stream), id="anthropic"),
    pytest.param("google.genai", google, contents, id="google-genai"),
    pytest.param("litellm", lite, lambda stream: scripted(AnthropicMessages(), stream), id="litellm"),
]


@pytest.mark.slow  # each client takes seconds to import
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("package", "ask", "said"), CASES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # the clients' own
def test_both_sides_see_the_same(package: str, ask: Any, said: Any, stream: bool) -> None:
    pytest.importorskip(package, reason="pip install -e . --group dev")
    with upstream(said(stream)) as up:
        straight = ask(up.url, stream)
        with metered_endpoint(forward=up.url) as url:
            through = ask(url.root, stream)
            (call,) = url.meter.calls
            rows = url.meter.frame()
    assert through == straight
    sent, passed = ((got.method, got.path, got.body, headers(got)) for got in up.got)
    assert sent == passed
    assert (call.input_tokens, call.output_tokens, call.stream, call.unread) == (INPUT, OUTPUT, stream, "")
    assert (rows.tokens.sum(), "task" in set(rows.cause)) == (INPUT, True)


def headers(got: Got) -> list[tuple[str, str]]:
    """What the client itself said; the retry count and the like are its own, too."""
    framing = ("host", "content-length", "connection", "accept-encoding")
    return [(k, v) for k, v in got.headers if k.lower() not in framing]
