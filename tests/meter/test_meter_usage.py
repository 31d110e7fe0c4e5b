"""What a bill is, by the sums that the providers' own documents state.

Each case is a usage in the shape that a document shows, whole or as a stream sends it; what is expected follows from
the sentence of that document which is quoted, never from our code.
"""

from __future__ import annotations

from typing import Any

import pytest
from upstream import Answer, upstream
from wires import post, user  # pyright: ignore

from rlm_loop.messages import Usage
from rlm_loop.meter import metered_endpoint

ASKED = {"model": "m", "messages": [user("Hi")], "max_tokens": 9}
CHAT = ("/chat/completions", ASKED)
RESPONSES = ("/responses", {"model": "m", "input": "Hi"})
MESSAGES = ("/messages", ASKED)
GEMINI = ("beta/models/m:generateContent", {"contents": [{"parts": [{"text": "Hi"}]}]})


def chat(usage: dict[str, Any]) -> Answer:
    return Answer.of({"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}}], "usage": usage})


def chat_stream(usage: dict[str, Any]) -> Answer:
    piece = {"choices": [{"index": 0, "delta": {"content": "x"}}], "usage": None}
    return Answer.events(piece, {"choices": [], "usage": usage}, "[DONE]")


def response(usage: dict[str, Any]) -> Answer:
    return Answer.of({"id": "r", "status": "completed", "output": [], "usage": usage})


def response_stream(usage: dict[str, Any]) -> Answer:
    begun = {"id": "r", "status": "in_progress", "output": [], "usage": None}
    whole = {**begun, "status": "completed", "usage": usage}
    return Answer.events(
        {"type": "response.created", "response": begun}, {"type": "response.completed", "response": whole}
    )


def message(usage: dict[str, Any]) -> Answer:
    return Answer.of({"id": "m", "type": "message", "content": [], "stop_reason": "end_turn", "usage": usage})


def message_stream(start: dict[str, Any], end: dict[str, Any]) -> Answer:
    begun = {"id": "m", "type": "message", "content": [], "usage": start}
    return Answer.events(
        {"type": "message_start", "message": begun},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end},
        {"type": "message_stop"},
        named=True,
    )


def content(usage: dict[str, Any]) -> Answer:
    return Answer.of({"candidates": [{"content": {"parts": [{"text": "x"}]}}], "usageMetadata": usage})


def content_stream(*usages: dict[str, Any]) -> Answer:
    return Answer.events(*({"candidates": [{"content": {"parts": []}}], "usageMetadata": usage} for usage in usages))


# https://platform.openai.com/docs/guides/prompt-caching: "usage.prompt_tokens_details.cached_tokens" of the
# "prompt_tokens"; https://platform.openai.com/docs/guides/reasoning: reasoning tokens "are billed as output tokens",
# shown in output_tokens_details inside output_tokens: total_tokens = input_tokens + output_tokens.
OPENAI_CHAT = {
    "prompt_tokens": 2006,
    "completion_tokens": 300,
    "total_tokens": 2306,
    "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0},
    "completion_tokens_details": {
        "reasoning_tokens": 192,
        "audio_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    },
}
OPENAI_RESPONSE = {
    "input_tokens": 75,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 1186,
    "output_tokens_details": {"reasoning_tokens": 1024},
    "total_tokens": 1261,
}
# https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching: "total_input_tokens = cache_read_input_tokens +
# cache_creation_input_tokens + input_tokens", and "the current cache_creation_input_tokens field equals the sum of the
# values in the cache_creation object".
ANTHROPIC = {
    "input_tokens": 2048,
    "cache_read_input_tokens": 1800,
    "cache_creation_input_tokens": 248,
    "output_tokens": 503,
    "cache_creation": {"ephemeral_5m_input_tokens": 148, "ephemeral_1h_input_tokens": 100},
}
# https://docs.anthropic.com/en/docs/build-with-claude/streaming: "the token counts shown in the usage field of the
# message_delta event are cumulative".
ANTHROPIC_START = {
    "input_tokens": 472,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 2,
}
ANTHROPIC_END = {"output_tokens": 89}
ANTHROPIC_SEARCHED = {
    "input_tokens": 10682,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 510,
    "server_tool_use": {"web_search_requests": 1},
}
# `BetaUsage.iterations` of the anthropic package: "A `compaction` entry's tokens are not included in the top-level
# `usage` fields"; those of a `message` are.
ANTHROPIC_COMPACTED = {
    "input_tokens": 45,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 1234,
    "iterations": [
        {
            "type": "compaction",
            "input_tokens": 180_000,
            "output_tokens": 3500,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 20_000,
        },
        {
            "type": "message",
            "input_tokens": 45,
            "output_tokens": 1234,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    ],
}
# https://ai.google.dev/api/generate-content#UsageMetadata: promptTokenCount "includes the number of tokens in the
# cached content"; https://ai.google.dev/gemini-api/docs/thinking: the price is the sum of output and thinking tokens;
# totalTokenCount is prompt, thoughts and candidates (and tool use prompts).
GOOGLE = {
    "promptTokenCount": 1000,
    "cachedContentTokenCount": 600,
    "candidatesTokenCount": 50,
    "thoughtsTokenCount": 200,
    "toolUsePromptTokenCount": 30,
    "totalTokenCount": 1280,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1000}],
    "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 600}],
}
GOOGLE_BEGUN = {"promptTokenCount": 1000, "cachedContentTokenCount": 600, "totalTokenCount": 1000}
# https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/grok/capabilities/reasoning: "The reasoning token
# count is outputted in the reasoning_tokens field, separated from the completion_tokens": 663 + 50 + 124 = 837.
XAI = {
    "prompt_tokens": 663,
    "completion_tokens": 50,
    "total_tokens": 837,
    "prompt_tokens_details": {"cached_tokens": 654, "text_tokens": 663},
    "completion_tokens_details": {"reasoning_tokens": 124},
}
# https://api-docs.deepseek.com/guides/kv_cache: prompt_cache_hit_tokens and prompt_cache_miss_tokens
# make up the prompt.
DEEPSEEK = {
    "prompt_tokens": 500,
    "completion_tokens": 40,
    "total_tokens": 540,
    "prompt_cache_hit_tokens": 448,
    "prompt_cache_miss_tokens": 52,
}
CASES = [
    pytest.param(CHAT, chat(OPENAI_CHAT), Usage(2006, 300, 1920, reasoning_tokens=192), id="openai-chat"),
    pytest.param(CHAT, chat_stream(OPENAI_CHAT), Usage(2006, 300, 1920, reasoning_tokens=192), id="openai-chat-stream"),
    pytest.param(RESPONSES, response(OPENAI_RESPONSE), Usage(75, 1186, 0, reasoning_tokens=1024), id="responses"),
    pytest.param(
        RESPONSES, response_stream(OPENAI_RESPONSE), Usage(75, 1186, 0, reasoning_tokens=1024), id="responses-stream"
    ),
    pytest.param(MESSAGES, message(ANTHROPIC), Usage(4096, 503, 1800, cache_write_tokens=248), id="anthropic"),
    pytest.param(
        MESSAGES,
        message_stream(ANTHROPIC_START, ANTHROPIC_END),
        Usage(472, 89, 0, cache_write_tokens=0),
        id="anthropic-stream",
    ),
    pytest.param(
        MESSAGES,
        message_stream(ANTHROPIC_START, ANTHROPIC_SEARCHED),
        Usage(10682, 510, 0, cache_write_tokens=0),
        id="anthropic-stream-with-search",
    ),
    pytest.param(
        MESSAGES,
        message_stream(ANTHROPIC_START, ANTHROPIC_COMPACTED),
        Usage(200_045, 4734, 20_000, cache_write_tokens=0),
        id="anthropic-compacted",
    ),
    pytest.param(GEMINI, content(GOOGLE), Usage(1030, 250, 600, reasoning_tokens=200), id="gemini"),
    pytest.param(
        GEMINI, content_stream(GOOGLE_BEGUN, GOOGLE), Usage(1030, 250, 600, reasoning_tokens=200), id="gemini-stream"
    ),
    pytest.param(CHAT, chat(XAI), Usage(663, 174, 654, reasoning_tokens=124), id="xai"),
    pytest.param(CHAT, chat(DEEPSEEK), Usage(500, 40, 448), id="deepseek"),
    pytest.param(CHAT, chat({}), Usage(None, None), id="nothing-said"),
    pytest.param(
        CHAT,
        chat({"prompt_tokens": "9", "completion_tokens": True, "total_tokens": -1}),
        Usage(None, None),
        id="no-numbers",
    ),
]


@pytest.mark.parametrize(("asked", "answer", "expected"), CASES)
def test_the_bill_is_the_providers_own_sum(asked: tuple[str, Any], answer: Answer, expected: Usage) -> None:
    path, body = asked
    with upstream(answer) as up, metered_endpoint(forward=up.url) as url:
        assert post(url, body, path).status_code == 200
        frame, usage = url.meter.frame(), url.meter.sessions["default"].ledger.usage
    assert usage == expected
    if expected.input_tokens is not None:
        assert frame.tokens.sum() == expected.input_tokens
        assert frame.cached.sum() == (expected.cache_read_tokens or 0)
        assert frame.written.sum() == (expected.cache_write_tokens or 0)
