"""The clients of the Messages and the Responses API: what is cached, what goes back, what it cost, where a key goes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

anthropic = pytest.importorskip("anthropic")
pytest.importorskip("openai")

from anthropic.types.message_create_params import MessageCreateParamsNonStreaming  # noqa: E402
from anthropic_messages import AnthropicMessages  # pyright: ignore  # noqa: E402
from openai_responses import OpenAIResponses  # pyright: ignore  # noqa: E402
from players import ANSWER, PLAYERS, QUESTION, TOOLS  # pyright: ignore  # noqa: E402
from pydantic import TypeAdapter  # noqa: E402
from serving import CACHE_READ, CACHE_WRITE, INPUT, OUTPUT, Provider, Said, serving  # pyright: ignore  # noqa: E402

from rlm_loop import LeanAgent, Outcome  # noqa: E402
from rlm_loop.accounting.prices import Price  # noqa: E402
from rlm_loop.messages import Message, Prompt, ToolCall, Usage, say  # noqa: E402
from rlm_loop.models import AnthropicModel, ModelError, ResponsesModel, anthropic_wire, get_model, responses_wire  # noqa: E402  # noqa: E402
from rlm_loop.models.base import AuthenticationFailed, RequestRejected  # noqa: E402
from rlm_loop.models.retry import RetryPolicy  # noqa: E402
from rlm_loop.replay import fork, replay  # noqa: E402

ONCE: dict[str, Any] = {"api_key": "k", "retry": RetryPolicy(attempts=1)}
THINK: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
THREE = [
    Said("I add.", (("add", {"a": 2, "b": 3}),)),
    Said(None, (("today", {}), ("add", {"a": 2, "b": 3}))),
    Said(None, (("final_answer", {"answer": 5}),)),
]


def claude(server: Provider, **more: Any) -> AnthropicModel:
    return AnthropicModel("claude", server.address, **{**ONCE, **more})


def gpt(server: Provider, **more: Any) -> ResponsesModel:
    return ResponsesModel("gpt", f"{server.address}/v1", **{**ONCE, **more})


def marked(body: dict[str, Any]) -> Iterator[str]:
    """The prefixes of a request that end at a mark, without the marks: what the provider's cache is told to hold."""
    blocks = [*body.get("tools", []), *body.get("system", [])]
    blocks += [{"role": m["role"], **b} for m in body["messages"] for b in m["content"]]
    for end, block in enumerate(blocks, 1):
        if "cache_control" in block:
            yield json.dumps([{k: v for k, v in b.items() if k != "cache_control"} for b in blocks[:end]])


@pytest.mark.parametrize("player", PLAYERS)
def test_each_request_reads_what_the_one_before_wrote(player: str) -> None:
    with serving(AnthropicMessages()) as server:
        server.says = list(PLAYERS[player].says)
        assert PLAYERS[player].agent(claude(server)).run(QUESTION).answer in (ANSWER, str(ANSWER))
    prefixes = [list(marked(body)) for body in server.requests]
    assert all(prefixes)
    for before, after in itertools.pairwise(prefixes):
        assert before[-1] in after


def test_caching_can_be_turned_off() -> None:
    with serving(AnthropicMessages()) as server:
        server.says = [Said("5")]
        claude(server, cache=False).complete(Prompt.ask(QUESTION))
    assert list(marked(server.requests[0])) == []


def run(model: Any, **more: Any) -> Outcome:
    return LeanAgent(model=model, tools=TOOLS, max_tokens=500).run(QUESTION, **more)


def test_thinking_goes_back_as_it_came() -> None:
    with serving(AnthropicMessages()) as server:
        server.says = list(THREE)
        outcome = run(claude(server, options=THINK))
    said = [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "assistant"]
    assert outcome.answer == 5
    assert [[block["type"] for block in blocks] for blocks in said] == [
        ["thinking", "text", "redacted_thinking", "tool_use"],
        ["thinking", "redacted_thinking", "tool_use", "tool_use"],
    ]


def test_reasoning_goes_back_encrypted() -> None:
    with serving(OpenAIResponses(reasoning=True)) as server:
        server.says = list(THREE)
        outcome = run(gpt(server, temperature=None))
    assert outcome.answer == 5
    assert [item["type"] for item in server.requests[-1]["input"]] == [
        "message",
        *("reasoning", "message", "function_call", "function_call_output"),
        *("reasoning", "function_call", "function_call", "function_call_output", "function_call_output"),
    ]
    assert all(body["include"] == ["reasoning.encrypted_content"] for body in server.requests)


def test_a_model_without_reasoning_is_asked_without_it_after_one_refusal() -> None:
    with serving(OpenAIResponses()) as server:
        server.says = list(THREE)
        run(gpt(server))
    assert len(server.refused) == 1
    assert not any("include" in body for body in server.requests)


@pytest.mark.parametrize("make", [AnthropicMessages, lambda: OpenAIResponses(reasoning=True)])
def test_a_trace_replays_and_a_fork_has_the_thinking_of_the_record(make: Any, tmp_path: Any) -> None:
    file = tmp_path / "t.jsonl"
    with serving(make()) as server:
        ours = claude(server, options=THINK) if isinstance(server, AnthropicMessages) else gpt(server, temperature=None)
        server.says = list(THREE)
        run(ours, trace=file)
        assert replay(file).same
        server.says = THREE[2:]
        assert fork(file, at=2, model=ours, tools=TOOLS).answer == 5
    first, forked = (json.dumps(body, sort_keys=True) for body in server.requests[-2:])
    assert first == forked


@pytest.mark.parametrize("kind", ["messages", "responses"])
def test_what_the_loop_left_out_of_a_reply_does_not_go_back(kind: str) -> None:
    thought: dict[str, Any] = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    blocks = [thought, {"type": "text", "text": "Yes. And no."}]
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x", "status": None},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes. And no."}]},
    ]
    kept = {"messages": blocks, "responses": items}
    cut = Message("assistant", say("assistant", "Yes.", "assistant").spans, kept=kept)
    prompt = Prompt((say("user", "So?", "task"), cut))
    if kind == "messages":
        said = anthropic_wire.to_request(prompt, cache=False)["messages"][-1]["content"]
        assert said == [thought, {"type": "text", "text": "Yes."}]
    else:
        said = responses_wire.to_request(prompt)["input"][-1]
        assert said == {"type": "message", "role": "assistant", "content": "Yes."}
        assert "status" not in responses_wire._stated(items[0])  # pyright: ignore[reportPrivateUsage]


def test_odd_messages_make_a_request_that_the_types_of_the_real_client_take() -> None:
    calls = (ToolCall("a b", "add", "not JSON"), ToolCall(None, "today", ""))
    prompt = Prompt(
        (
            say("system", "Be brief.", "system"),
            say("user", "One", "task"),
            Message("assistant"),
            say("user", "  ", "task"),
            say("user", "Two", "task"),
            Message("assistant", tool_calls=calls),
            Message("tool", say("tool", "", "tool_result").spans, tool_call_id="a b"),
            Message("tool", say("tool", "x", "tool_result").spans),
        ),
        tools=tuple(t.schema for t in TOOLS),
        stop=("END",),
        reply_schema={"type": "object"},
    )
    body = {"model": "m", "max_tokens": 1, **anthropic_wire.to_request(prompt, cache=True)}
    TypeAdapter(MessageCreateParamsNonStreaming).validate_python(body)
    assert [(m["role"], len(m["content"])) for m in body["messages"]] == [("user", 2), ("assistant", 2), ("user", 2)]
    assert [block["input"] for block in body["messages"][1]["content"]] == [{"input": "not JSON"}, {}]
    assert json.dumps(body).count("cache_control") == 3


@pytest.mark.parametrize(
    ("answer", "finish", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"}, "stop", "a"),
        ({"content": [{"type": "text", "text": "a"}], "stop_reason": "max_tokens"}, "length", "a"),
        ({"content": [], "stop_reason": "refusal"}, "content_filter", ""),
        ({"content": [], "stop_reason": "model_context_window_exceeded"}, "length", ""),
        ({"output": [], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length", ""),
        (
            {"output": [], "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "content_filter",
            "",
        ),
        ({"output": [{"type": "message", "content": "odd"}, 3], "status": "completed"}, "stop", ""),
        ({"content": [{"type": "text", "text": None}, "odd"], "stop_reason": None}, "stop", ""),
    ],
)
def test_how_a_reply_ended(answer: dict[str, Any], finish: str, text: str) -> None:
    provider = AnthropicMessages() if "content" in answer else OpenAIResponses()
    with serving(provider) as server:
        server.troubles = [(200, {}, answer)]
        reply = (claude(server) if "content" in answer else gpt(server)).complete(Prompt.ask("So?"))
    assert (reply.finish_reason, reply.text) == (finish, text)


@pytest.mark.parametrize("answer", [{}, {"error": {"message": "no"}, "output": []}, {"content": None}, "<html>"])
@pytest.mark.parametrize("make", [claude, gpt])
def test_what_is_no_reply_is_tried_again(make: Any, answer: Any) -> None:
    with serving(AnthropicMessages()) as server:
        server.troubles = [(200, {}, answer)]
        with pytest.raises(ModelError) as raised:
            make(server).complete(Prompt.ask("So?"))
    assert raised.value.retryable


def test_a_cost_counts_what_the_cache_saved() -> None:
    with serving(AnthropicMessages()) as server:
        server.says = [Said("5")]
        model = claude(server, price=Price(1.0, 5.0, cached=0.1, cache_write=1.25))
        usage = model.complete(Prompt.ask(QUESTION)).usage
    assert model.price == (1e-6, 5e-6)
    cost = ((INPUT - CACHE_READ - CACHE_WRITE) * 1.0 + CACHE_READ * 0.1 + CACHE_WRITE * 1.25 + OUTPUT * 5.0) / 1e6
    assert usage == Usage(INPUT, OUTPUT, CACHE_READ, 1, pytest.approx(cost), CACHE_WRITE)


@pytest.mark.parametrize(
    ("name", "kind", "becomes", "address"),
    [
        ("anthropic-messages:claude", AnthropicModel, "anthropic-messages:claude", "https://api.anthropic.com"),
        ("openai-responses:gpt-5-nano", ResponsesModel, "openai-responses:gpt-5-nano", "https://api.openai.com/v1"),
        ("anthropic-messages:m@http://h:1/v1", AnthropicModel, "anthropic-messages:m@http://h:1", "http://h:1"),
        ("openai-responses:m@http://h:1/v1", ResponsesModel, "openai-responses:m@http://h:1/v1", "http://h:1/v1"),
    ],
)
def test_names(name: str, kind: type, becomes: str, address: str) -> None:
    model: Any = get_model(name)
    assert (type(model), model.name, model.base_url) == (kind, becomes, address)


@pytest.mark.parametrize(
    ("named", "sent"), [({}, False), ({"ANTHROPIC_BASE_URL": "ADDRESS"}, True), ({"OPENAI_BASE_URL": "ADDRESS"}, False)]
)
def test_a_key_goes_only_where_the_user_said(
    monkeypatch: pytest.MonkeyPatch, named: dict[str, str], sent: bool
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-xxxxxxxxxxxxxxxx")
    with serving(AnthropicMessages()) as server:
        for variable, value in named.items():
            monkeypatch.setenv(variable, value.replace("ADDRESS", server.address))
        server.says = [Said("5")]
        model = AnthropicModel("claude", server.address, retry=RetryPolicy(attempts=1))
        if sent:
            model.complete(Prompt.ask("So?"))
        else:
            with pytest.raises(AuthenticationFailed, match="set ANTHROPIC_BASE_URL to this address"):
                model.complete(Prompt.ask("So?"))
        assert ("x-api-key" in server.headers[0]) == sent


def test_a_refusal_that_is_no_setting_is_said() -> None:
    said = "may only be set to 1 when thinking is enabled"
    with serving(AnthropicMessages()) as server, pytest.raises(RequestRejected, match=said):
        claude(server, options=THINK, temperature=0.5).complete(Prompt.ask("So?"))
