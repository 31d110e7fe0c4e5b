"""The bill, by the sums that the providers' own documents state, and its tree, which sums to it.

Each case is a usage in the shape that a document shows, whole or as a stream sends it; what is expected follows from
the sentence of that document which is quoted, never from our code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from upstream import Answer, readable, upstream
from wires import post, user  # pyright: ignore

from rlm_loop.cli.main import main
from rlm_loop.messages import Usage
from rlm_loop.meter import Branch, metered_endpoint, read_meter

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
WROTE = {"reasoning_tokens": 192, "audio_tokens": 0, "accepted_prediction_tokens": 0}
CHAT = {"prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0}, "completion_tokens_details": WROTE}
OPENAI_CHAT = {"prompt_tokens": 2006, "completion_tokens": 300, "total_tokens": 2306, **CHAT}
RESPONSE = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 1024}}
OPENAI_RESPONSE = {"input_tokens": 75, "output_tokens": 1186, "total_tokens": 1261, **RESPONSE}
# https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching: "total_input_tokens = cache_read_input_tokens +
# cache_creation_input_tokens + input_tokens", and "the current cache_creation_input_tokens field equals the sum of the
# values in the cache_creation object".
WRITTEN = {"ephemeral_5m_input_tokens": 148, "ephemeral_1h_input_tokens": 100}
CACHE = {"cache_read_input_tokens": 1800, "cache_creation_input_tokens": 248, "cache_creation": WRITTEN}
ANTHROPIC = {"input_tokens": 2048, "output_tokens": 503, **CACHE}
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
GOOGLE_BEGUN = {"promptTokenCount": 1000, "cachedContentTokenCount": 600, "totalTokenCount": 1000}
GOOGLE_MORE = {"candidatesTokenCount": 50, "thoughtsTokenCount": 200, "toolUsePromptTokenCount": 30}
DETAILS = {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1000}]}
GOOGLE = {**GOOGLE_BEGUN, **GOOGLE_MORE, "totalTokenCount": 1280, **DETAILS}
# https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/grok/capabilities/reasoning: "The reasoning token
# count is outputted in the reasoning_tokens field, separated from the completion_tokens": 663 + 50 + 124 = 837.
THOUGHT = {"completion_tokens_details": {"reasoning_tokens": 124}}
CACHED = {"prompt_tokens_details": {"cached_tokens": 654, "text_tokens": 663}}
XAI = {"prompt_tokens": 663, "completion_tokens": 50, "total_tokens": 837, **CACHED, **THOUGHT}
# https://api-docs.deepseek.com/guides/kv_cache: prompt_cache_hit_tokens and prompt_cache_miss_tokens are the prompt.
HIT_AND_MISS = {"prompt_cache_hit_tokens": 448, "prompt_cache_miss_tokens": 52}
DEEPSEEK = {"prompt_tokens": 500, "completion_tokens": 40, "total_tokens": 540, **HIT_AND_MISS}
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
    (path, body), whole = PATHS[api], not isinstance(stated, tuple)
    of_streams = path.replace(":generateContent", ":streamGenerateContent?alt=sse")
    answers = [(of_streams, streamed(api, *((stated, stated) if whole else stated)))]
    answers += [(path, readable(stated))] if whole else []
    for where, answer in answers:
        with upstream(answer) as up, metered_endpoint(forward=up.url) as url:
            assert post(url, body, where).status_code == 200
            frame, usage = url.meter.frame(), url.meter.sessions["default"].ledger.usage
        assert usage == expected
        if expected.input_tokens is not None:
            sums = [expected.input_tokens, expected.cache_read_tokens or 0, expected.cache_write_tokens or 0]
            assert frame[["tokens", "cached", "written"]].sum().tolist() == sums


# -- the tree: every level sums to the one above, and the root to the bill

SYSTEM = "You are an agent.\n# Tools\nUse them well.\n## Style\nBe brief.\n<env>\ncwd: /x\n</env>"
TOOLS = [
    {"name": name, "description": f"It does {name}. " * size, "input_schema": {"type": "object"}}
    for name, size in (("Read", 9), ("mcp__ten__one", 3), ("mcp__ten__two", 3), ("mcp__other__x", 1))
]


def reminder(words: str) -> dict[str, Any]:
    return {"type": "text", "text": f"<system-reminder>\n{words}\n</system-reminder>"}


def answer(new: int, read: int, written: int, *blocks: dict[str, Any]) -> Answer:
    usage = {"input_tokens": new, "cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    made = {"id": "msg_1", "type": "message", "stop_reason": "end_turn", "usage": {**usage, "output_tokens": 10}}
    return Answer.of({**made, "content": blocks or [{"type": "text", "text": "Done."}]})


CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.txt"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "line one\nline two"}


def agent(url: str) -> None:
    """A task of two turns, whose reminder changes, and a title that is asked for beside it."""
    asked = {"model": "claude-sonnet-4-5", "max_tokens": 99}
    first = user([reminder("Today is Monday."), {"type": "text", "text": "Read a.txt."}])
    changed = user([reminder("Today is Tuesday."), {"type": "text", "text": "Read a.txt."}])
    more = [{"role": "assistant", "content": [CALL]}, user([RESULT, reminder("Keep going.")])]
    whole = {**asked, "system": SYSTEM, "tools": TOOLS}
    post(url, {**whole, "messages": [first]}, "/messages")
    post(url, {**asked, "messages": [user("A title of five words for: Read a.txt.")]}, "/messages")
    post(url, {**whole, "messages": [first, *more]}, "/messages")
    post(url, {**whole, "messages": [changed, *more]}, "/messages")


ANSWERS = (answer(100, 0, 900, CALL), answer(30, 0, 0), answer(50, 1000, 100), answer(1200, 0, 0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with upstream(*ANSWERS) as up, metered_endpoint(forward=up.url, out=tmp_path) as url:
        agent(url)
    assert url.meter.frame().groupby("call")["tokens"].sum().tolist() == [1000, 30, 1150, 1200]
    return tmp_path


def by_name(branch: Branch) -> dict[str, Branch]:
    return {one.name: one for one in branch.children}


def test_levels_sum_to_the_one_above_and_branches_are_conversation_cause_and_tool(folder: Path, capsys: Any) -> None:
    (root,) = read_meter(folder).trees()
    assert (root.requests, root.first, root.total) == (4, 1000, 3380)
    for _, one in root.lines():
        for field in ("total", "resent", "cached", "written"):
            parts = [getattr(child, field) for child in one.children]
            assert not parts or sum(parts) == getattr(one, field), (one.name, field)
    main_, title = root.children
    assert (main_.requests, title.requests, title.total, title.per_turn) == (3, 1, 30, None)
    assert ("4 tools" in main_.name, "no tools" in title.name) == (True, True)
    causes = by_name(main_)
    told = {"scaffold:reminder", "scaffold:environment", "task", "assistant", "tool_result", "template"}
    assert set(causes) == {"system", "tool_schema", *told}
    assert set(by_name(causes["system"])) == {"(other)", "Tools", "Style"}
    assert set(by_name(causes["scaffold:reminder"])) == {"system-reminder"}
    assert set(by_name(causes["tool_result"])) == {"Read"}
    assert set(by_name(causes["tool_schema"])) == {tool["name"] for tool in TOOLS}
    assert causes["tool_schema"].cacheable == pytest.approx(2 / 3, abs=0.05)
    assert causes["tool_result"].first == 0
    assert main(["meter", "--show", str(folder)]) == 0
    assert "mcp__ten__one" in capsys.readouterr().out
