"""What a bill is, by the sums that the providers' own documents state.

Each case is a usage in the shape that a document shows, whole or as a stream sends it; what is expected follows from
the sentence of that document which is quoted, never from our code.
"""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx
import pytest
from upstream import Answer, readable, upstream
from wires import post, user  # pyright: ignore

from rlm_loop.messages import Usage
from rlm_loop.meter import metered_endpoint

ASKED = {"model": "m", "messages": [user("Hi")], "max_tokens": 9}
PATHS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/chat/completions", ASKED),
    "responses": ("/responses", {"model": "m", "input": "Hi"}),
    "messages": ("/messages", ASKED),
    "gemini": ("beta/models/m:generateContent", {"contents": [{"parts": [{"text": "Hi"}]}]}),
}
_MESSAGE = {"id": "m", "type": "message", "content": []}
_CONTENT = {"candidates": [{"content": {"parts": [{"text": "x"}]}}]}


def streamed(api: str, first: dict[str, Any], last: dict[str, Any]) -> Answer:
    """The usage as it stands in a stream: at its begin, where the API says something there, and at its end."""
    piece = {"choices": [{"index": 0, "delta": {"content": "x"}}], "usage": None}
    begun = {"id": "r", "status": "in_progress", "output": [], "usage": None}
    events: dict[str, list[Any]] = {
        "chat": [piece, {"choices": [], "usage": last}, "[DONE]"],
        "responses": [
            {"type": "response.created", "response": begun},
            {"type": "response.completed", "response": {**begun, "status": "completed", "usage": last}},
        ],
        "messages": [
            {"type": "message_start", "message": {**_MESSAGE, "usage": first}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last},
            {"type": "message_stop"},
        ],
        "gemini": [{**_CONTENT, "usageMetadata": usage} for usage in (first, last)],
    }
    return Answer.events(*events[api], named=api in ("responses", "messages"))


# https://platform.openai.com/docs/guides/prompt-caching: "usage.prompt_tokens_details.cached_tokens" of the
# "prompt_tokens"; https://platform.openai.com/docs/guides/reasoning: reasoning tokens "are billed as output tokens",
# shown in output_tokens_details inside output_tokens: total_tokens = input_tokens + output_tokens.
OPENAI_CHAT = {
    "prompt_tokens": 2006,
    "completion_tokens": 300,
    "total_tokens": 2306,
    "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 192, "audio_tokens": 0, "accepted_prediction_tokens": 0},
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
NO_CACHE = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
ANTHROPIC_START = {**NO_CACHE, "input_tokens": 472, "output_tokens": 2}
ANTHROPIC_ENDS = (ANTHROPIC_START, {"output_tokens": 89})
SEARCHED = {"web_search_requests": 1}
ANTHROPIC_SEARCHED = {**NO_CACHE, "input_tokens": 10682, "output_tokens": 510, "server_tool_use": SEARCHED}
# `BetaUsage.iterations` of the anthropic package: "A `compaction` entry's tokens are not included in the top-level
# `usage` fields"; those of a `message` are.
MADE = {**NO_CACHE, "input_tokens": 45, "output_tokens": 1234}
COMPACTION = {**NO_CACHE, "input_tokens": 180_000, "output_tokens": 3500, "cache_read_input_tokens": 20_000}
ANTHROPIC_COMPACTED = {**MADE, "iterations": [{"type": "compaction", **COMPACTION}, {"type": "message", **MADE}]}
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
#: The API; the usage, whole or as the begin and the end of a stream have it; and the bill.
CASES: dict[str, tuple[str, Any, Usage]] = {
    "openai": ("chat", OPENAI_CHAT, Usage(2006, 300, 1920, reasoning_tokens=192)),
    "responses": ("responses", OPENAI_RESPONSE, Usage(75, 1186, 0, reasoning_tokens=1024)),
    "anthropic": ("messages", ANTHROPIC, Usage(4096, 503, 1800, cache_write_tokens=248)),
    "anthropic-begin-and-end": ("messages", ANTHROPIC_ENDS, Usage(472, 89, 0, cache_write_tokens=0)),
    "anthropic-search": ("messages", (ANTHROPIC_START, ANTHROPIC_SEARCHED), Usage(10682, 510, 0, cache_write_tokens=0)),
    "anthropic-compacted": ("messages", ANTHROPIC_COMPACTED, Usage(200_045, 4734, 20_000, cache_write_tokens=0)),
    "gemini": ("gemini", GOOGLE, Usage(1030, 250, 600, reasoning_tokens=200)),
    "gemini-begin-and-end": ("gemini", (GOOGLE_BEGUN, GOOGLE), Usage(1030, 250, 600, reasoning_tokens=200)),
    "xai": ("chat", XAI, Usage(663, 174, 654, reasoning_tokens=124)),
    "deepseek": ("chat", DEEPSEEK, Usage(500, 40, 448)),
    "nothing-said": ("chat", {}, Usage(None, None)),
    "no-numbers": ("chat", {"prompt_tokens": "9", "completion_tokens": True, "total_tokens": -1}, Usage(None, None)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_bill_is_the_providers_own_sum(case: str) -> None:
    api, stated, expected = CASES[case]
    pair = stated if isinstance(stated, tuple) else (stated, stated)
    for answer in (streamed(api, *pair), *([] if isinstance(stated, tuple) else [readable(stated)])):
        with upstream(answer) as up, metered_endpoint(forward=up.url) as url:
            path, body = PATHS[api]
            assert post(url, body, path).status_code == 200
            frame, usage = url.meter.frame(), url.meter.sessions["default"].ledger.usage
        assert usage == expected
        if expected.input_tokens is not None:
            assert frame.tokens.sum() == expected.input_tokens
            assert frame.cached.sum() == (expected.cache_read_tokens or 0)
            assert frame.written.sum() == (expected.cache_write_tokens or 0)


@pytest.mark.parametrize("case", ["openai", "responses", "anthropic", "gemini"])
def test_a_stream_comes_chunk_by_chunk_as_it_was_sent(case: str) -> None:
    api, usage, bill = CASES[case]
    (path, asked), sent = PATHS[api], streamed(api, usage, usage)
    path = path.replace(":generateContent", ":streamGenerateContent?alt=sse")
    body = json.dumps({**asked, "stream": True}, indent=3).encode()
    gates = [threading.Event() for _ in sent.pieces]
    gated = Answer([one for pair in zip(gates, sent.pieces, strict=True) for one in pair], headers=sent.headers)
    with upstream(gated) as up, metered_endpoint(forward=up.url) as url, httpx.Client(trust_env=False) as client:
        with client.stream("POST", f"{url}{path}", content=body) as answer:
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
        assert (call.input_tokens, call.delivered, call.stream) == (bill.input_tokens, True, True)
    assert (up.got[0].path, up.got[0].body) == (f"/v1{path}", body)
