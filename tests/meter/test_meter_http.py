"""The endpoint over HTTP, with scripted models: good requests, bad ones, many at once; and `rlm-loop meter`."""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from lazy import Lazy, needs
from served_commands import interrupted
from wires import CALL, HEAD, TOOL, ask, connected, events, post, system, user  # pyright: ignore

from rlm_loop.messages import Prompt, Reply, ToolCall, Usage
from rlm_loop.meter import metered_endpoint
from rlm_loop.models import (
    AuthenticationFailed,
    ModelError,
    ModelNotFound,
    ModelUnreachable,
    RateLimited,
    RequestRejected,
    ScriptedModel,
)

CALLS = Reply("I add.", (ToolCall(None, "add", '{"a": 1}'), ToolCall("mine", "add", "")), "tool_calls")


def test_a_chat() -> None:
    with metered_endpoint(ScriptedModel(["Hello."], name="local:m")) as url:
        answer = ask(url, system("Be kind."), user("Hi")).json()
        listed = httpx.get(f"{url}/models", trust_env=False, verify=False).json()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", url)
    said = {"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
    assert (answer["object"], answer["model"]) == ("chat.completion", "any")
    assert answer["choices"] == [{"index": 0, "logprobs": None, **said}]
    details = {"cached_tokens": 0}
    counted = {"prompt_tokens": 14, "completion_tokens": 2, "total_tokens": 16, "prompt_tokens_details": details}
    assert answer["usage"] == counted
    assert [entry["id"] for entry in listed["data"]] == ["local:m"]
    assert url.meter.sessions["default"].ledger.by_cause() == {"template": 11, "system": 2, "task": 1}
    with pytest.raises(httpx.ConnectError):
        ask(url, user("It is closed."))


def test_what_the_model_is_given_and_what_cannot_be_taken_is_on_record() -> None:
    model = ScriptedModel(["ok"])
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    not_applied = {"temperature": 0.7, "seed": 3, "tool_choice": "required"}
    said = [
        {"role": "developer", "content": "D", "name": "ann"},
        user(parts),
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
    ]
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array"}}}
    taken = {"tools": [TOOL], "stop": "END", "max_completion_tokens": 9, "response_format": form}
    with metered_endpoint(model) as url:
        answer = ask(url, *said, **taken, **not_applied, user="u", foo={"bar": 1})
        assert (answer.status_code, url.meter.calls[0].not_applied) == (200, not_applied)
    prompt = model.prompts[0]
    assert prompt.to_dict()["messages"] == [
        {"role": "system", "content": "D"},
        {"role": "user", "content": "one\ntwo"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": "3", "tool_call_id": "c1"},
    ]
    assert (prompt.tools, prompt.stop, prompt.reply_schema) == ((TOOL,), ("END",), {"type": "array"})


def test_tool_calls_there_and_back() -> None:
    with metered_endpoint(ScriptedModel([CALLS, "3"])) as url:
        said = ask(url, user("1 + 2?"), tools=[TOOL]).json()["choices"][0]
        back = [{"role": "tool", "tool_call_id": c["id"], "content": "3"} for c in said["message"]["tool_calls"]]
        assert ask(url, user("1 + 2?"), said["message"], *back, tools=[TOOL]).status_code == 200
    functions = [(c["id"], *c["function"].values()) for c in said["message"]["tool_calls"]]
    assert functions == [("call_1_0", "add", '{"a": 1}'), ("mine", "add", "{}")]
    assert (said["finish_reason"], [call.node for call in url.meter.calls]) == ("tool_calls", ["0", "0"])
    causes = {"tool_schema", "template", "task", "assistant", "tool_result"}
    assert set(url.meter.sessions["default"].ledger.by_cause()) == causes


@pytest.mark.parametrize("usage", [True, False])
def test_a_stream(usage: bool) -> None:
    options = {"stream_options": {"include_usage": True}} if usage else {}
    with metered_endpoint(ScriptedModel([CALLS])) as url:
        response = ask(url, user("1 + 2?"), tools=[TOOL], stream=True, **options)
    assert response.headers["content-type"].startswith("text/event-stream")
    *chunks, done = events(response)
    assert done == "[DONE]"
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    assert choices[0]["delta"]["role"] == "assistant"
    assert "".join(c["delta"].get("content") or "" for c in choices) == "I add."
    called = [call for c in choices for call in c["delta"].get("tool_calls", ())]
    assert [(c["index"], c["function"]["arguments"]) for c in called] == [(0, '{"a": 1}'), (1, "{}")]
    assert [c["finish_reason"] for c in choices][-1] == "tool_calls"
    stated = [chunk["usage"]["prompt_tokens"] for chunk in chunks if chunk.get("usage")]
    assert stated == ([url.meter.calls[0].input_tokens] if usage else [])


@needs("openai", extra="litellm")
@pytest.mark.slow
def test_openais_client_reads_what_the_model_said() -> None:
    openai = Lazy("openai")
    script = ScriptedModel([CALLS, CALLS, ModelError("broken")])
    with metered_endpoint(script) as url, openai.OpenAI(base_url=url, api_key="any") as client:
        asked: Any = {"model": "m", "messages": [user("1 + 2?")], "tools": [TOOL]}
        whole = client.chat.completions.create(**asked)
        with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            streamed = stream.get_final_completion()
        for reply in (whole, streamed):
            message = reply.choices[0].message
            assert (message.content, message.tool_calls[0].function.arguments) == ("I add.", '{"a": 1}')
            assert reply.usage.prompt_tokens == url.meter.calls[0].input_tokens
        with pytest.raises(openai.InternalServerError, match="broken"):
            client.chat.completions.create(**asked)
        assert len(url.meter.calls) == 3  # it was told not to try again


#: See also what models of ours refuse where a provider takes it, in `test_meter_forward.py`.
BAD: list[tuple[Any, str]] = [
    (b"{", "no JSON"),
    (b"\xff\xfe", "no JSON"),
    (b"[" * 100_000, "no JSON"),
    ([1], "the request body: Input should be a valid dictionary"),
    ({"messages": []}, "messages: List should have at least 1 item"),
    ({"messages": "hello"}, "messages: Input should be a valid list"),
    ({"messages": ["hello"]}, r"messages\.0: Input should be a valid dictionary"),
    ({"messages": [{"role": "robot", "content": "x"}]}, r"messages\.0\.role: Input should be 'system', "),
    ({"messages": [user([{"type": "text", "text": "x"}, {"type": "input_audio"}])]}, "holds audio content"),
    ({"messages": [user(7)]}, "content is int"),
    ({"messages": [user("x")], "max_tokens": True}, "max_tokens: Input should be a valid integer"),
    ({"messages": [user("x")], "stop": [1]}, "stop"),
    ({"messages": [user("x")], "tools": ["web_search"]}, r"tools\.0: Input should be a valid dictionary"),
]


@pytest.mark.parametrize(("body", "says"), BAD)
def test_bad_requests_are_refused_clearly_and_kept_on_record(body: Any, says: str) -> None:
    model = ScriptedModel(["never"])
    with metered_endpoint(model) as url:
        response = post(url, body)
        error = response.json()["error"]
    assert (response.status_code, error["type"], model.prompts) == (400, "invalid_request_error", [])
    assert re.fullmatch(f".*{says}.*", error["message"]), "in one line"
    assert [(c.status, c.call, c.error) for c in url.meter.calls] == [(400, None, error["message"])]


@pytest.mark.parametrize("path", ["/completions", "/embeddings", "/", "/chat/completions/x"])
def test_a_wrong_path_says_what_there_is(path: str) -> None:
    with metered_endpoint(ScriptedModel([])) as url:
        response = post(url, {}, path)
    assert (response.status_code, "/v1/chat/completions" in response.json()["error"]["message"]) == (404, True)


@pytest.mark.parametrize(
    ("error", "status", "kind", "again"),
    [
        (RequestRejected("the prompt has 9 tokens but the window is 4"), 400, "invalid_request_error", "false"),
        (AuthenticationFailed("set KEY"), 401, "authentication_error", "false"),
        (ModelNotFound("no such"), 404, "invalid_request_error", "false"),
        (RateLimited("slow down"), 429, "rate_limit_error", "true"),
        (ModelUnreachable("nobody", retryable=True), 503, "server_error", "true"),
        (ModelError("broken", retryable=True), 503, "server_error", "true"),
        (ModelError("broken"), 500, "server_error", "false"),
        (ValueError("a bug in the script"), 500, "server_error", "false"),
    ],
)
def test_a_model_that_fails(error: Exception, status: int, kind: str, again: str) -> None:
    error.retry_after = 7.0  # pyright: ignore
    with metered_endpoint(ScriptedModel([error, "then it works"])) as url:
        response = ask(url, user("Q"))
        assert ask(url, user("Q")).status_code == 200
    said = response.json()["error"]
    assert (response.status_code, said["type"], response.headers["x-should-retry"]) == (status, kind, again)
    assert again == "false" or response.headers["retry-after"] == "7"
    assert str(error) in said["message"]
    first, second = url.meter.calls
    assert (first.status, first.call, first.turn, second.call, second.turn) == (status, None, 1, 1, 1)
    assert (first.node, second.node) == ("0", "0")


def test_usage_that_is_not_known_is_not_invented() -> None:
    with metered_endpoint(ScriptedModel([Reply("hm", usage=Usage(None, None))])) as url:
        assert ask(url, user("Q")).json()["usage"] is None
    assert url.meter.calls[0].input_tokens is None
    assert url.meter.sessions["default"].ledger.usage.input_tokens is None


def test_fifty_connections_at_once() -> None:
    together = threading.Barrier(50)

    def one(i: int) -> tuple[int, int]:
        together.wait()
        response = ask(url.session(f"s{i % 3}"), user(f"question {i % 5}"))
        return response.status_code, int(response.json()["choices"][0]["message"]["content"])

    with metered_endpoint(ScriptedModel([str(i) for i in range(50)])) as url, ThreadPoolExecutor(50) as pool:
        assert sorted(pool.map(one, range(50))) == [(200, i) for i in range(50)]
    assert (sorted(url.meter.sessions), len(url.meter.calls)) == (["s0", "s1", "s2"], 50)
    for session in url.meter.sessions.values():
        assert [call.call for call in session.ledger.calls] == list(range(1, len(session.ledger.calls) + 1))
        assert all(sum(row.tokens for row in call.rows) == call.usage.input_tokens for call in session.ledger.calls)


@pytest.mark.parametrize("slots", [None, 2])
def test_one_at_a_time_unless_the_model_has_slots(slots: int | None) -> None:
    now, counted, both = list[int](), list[int](), threading.Event()

    def reply(_: Prompt) -> str:
        now.append(1)
        counted.append(len(now))
        if len(now) == 2:
            both.set()
        both.wait(0.2)
        now.pop()
        return "ok"

    model = ScriptedModel([reply] * 4)
    if slots:
        model.slots = slots
    with metered_endpoint(model) as url, ThreadPoolExecutor(4) as pool:
        assert [one.status_code for one in pool.map(lambda i: ask(url, user(f"q{i}")), range(4))] == [200] * 4
    assert max(counted) == (slots or 1)


def test_a_client_that_hangs_up_is_charged() -> None:
    gone, go = threading.Event(), threading.Event()

    def slowly(_: Prompt) -> str:
        go.set()
        assert gone.wait(30)
        return "x" * 400

    with metered_endpoint(ScriptedModel([slowly])) as url:
        body = json.dumps({"messages": [user("Q")]}).encode()
        sock = connected(url)
        sock.sendall(b"%sContent-Length: %d\r\n\r\n%s" % (HEAD, len(body), body))
        assert go.wait(30)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # close with a reset
        sock.close()
        gone.set()
        until = time.monotonic() + 30
        while (not url.meter.calls or url.meter.calls[0].delivered) and time.monotonic() < until:
            time.sleep(0.01)
    (call,) = url.meter.calls
    assert (call.status, call.call, call.output_tokens, call.delivered) == (200, 1, 100, False)
    assert url.meter.frame().tokens.sum() == call.input_tokens


def test_one_connection_serves_many_requests_whole_and_in_chunks() -> None:
    body = json.dumps({"messages": [user("Q")]}).encode()
    with metered_endpoint(ScriptedModel(["a", "b"])) as url, httpx.Client(trust_env=False, verify=False) as client:
        for content in (body, iter([body[:9], body[9:]])):
            assert client.post(f"{url}/chat/completions", content=content).status_code == 200
        assert client.post(f"{url}/chat/completions", content=b"no").status_code == 400
        assert client.head(f"{url}/models").status_code == 501
        assert client.get(f"{url}/models").status_code == 200  # a body of the answer to HEAD would be read as this one
        pool: Any = client._transport  # pyright: ignore
        assert len(pool._pool.connections) == 1


def test_unicode_and_lone_surrogates() -> None:
    model = ScriptedModel(["naïve 🙂 \udc80"])
    with metered_endpoint(model) as url:
        response = post(url, b'{"messages": [{"role": "user", "content": "\\ud83d\\ude42 \\udc80"}]}')
    assert model.prompts[0].messages[0].text == "🙂 \udc80"
    assert json.loads(response.content)["choices"][0]["message"]["content"] == "naïve 🙂 \udc80"


def test_serve_ask_interrupt(tmp_path: Path) -> None:
    def look(address: str) -> None:
        assert ask(address, user("A question?")).json()["choices"][0]["message"]["content"] == "Hello."
        second = ask(address, user("A question?"), user("More")).json()["choices"][0]["message"]
        assert second["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
        assert ask(address, user(7)).status_code == 400

    with metered_endpoint(ScriptedModel(["Hello.", Reply("", CALLS.tool_calls[:1], "tool_calls")])) as url:
        options = ("--forward", url.root, "--port", "0", "--out", str(tmp_path / "out"))
        code, shown, said = interrupted(signal.SIGINT, look, "meter", *options)
    assert (code, "default turn 1: 10 tokens in, 2 out" in said, "refused with 400" in said) == (0, True, True)
    for line in (r"task +3 +3 +6 +24.0% +50.0%", r"default +2 +1 +"):
        assert re.search(line, shown)
    assert (tmp_path / "out" / "default.jsonl").is_file()
