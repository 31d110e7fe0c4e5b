"""Replies in events: put together to what a whole reply says, retried where they break off, hung up where runs end."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
from loopback import Answering, Loopback

from rlm_loop import Budget, DirectAgent
from rlm_loop.agents import Interrupted
from rlm_loop.messages import Prompt, Reply, Usage, say
from rlm_loop.models import (
    ModelError,
    ModelUnreachable,
    OpenAICompatibleModel,
    RateLimited,
    RequestRejected,
    RetryPolicy,
    ScriptedModel,
)
from rlm_loop.models.listening import listener
from rlm_loop.models.streams import events_of, joined
from rlm_loop.traces import Trace

#: What a server does with one request: it is given what sends a piece, and what waits until the client has hung up.
Act = Callable[[Callable[[str], None], Callable[[], None]], None]


def chunk(text: str | None = None, finish: str | None = None, **more: Any) -> str:
    delta = {} if text is None else {"content": text}
    event = {"id": "x1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    return f"data: {json.dumps(event)}\n\n"


END = chunk(finish="stop") + chunk(choices=[], usage={"prompt_tokens": 7, "completion_tokens": 2}) + "data: [DONE]\n\n"


class Streaming:
    """Does with each request the next of `acts`: sends a stream, or a status with a body."""

    def __init__(self, *acts: Act | tuple[int, Any], chunked: bool = True) -> None:
        self.acts, self.chunked = list(acts), chunked
        self.requests: list[dict[str, Any]] = []
        self.clients: set[Any] = set()
        self.hung_up = threading.Event()
        self.address = ""

    @contextmanager
    def serving(self) -> Generator[Streaming]:
        owner = self

        class Handler(Answering):
            protocol_version = "HTTP/1.1" if owner.chunked else "HTTP/1.0"

            def do_POST(self) -> None:
                owner.clients.add(self.client_address)
                owner.requests.append(json.loads(self.body()))
                act = owner.acts.pop(0)
                if isinstance(act, tuple):
                    self.answer(*act)
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                if owner.chunked:
                    self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    act(self.send, self.wait)
                except ConnectionError:
                    self.close_connection = True
                else:
                    if owner.chunked:
                        self.wfile.write(b"0\r\n\r\n")

            def send(self, text: str) -> None:
                data = text.encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if owner.chunked else data)

            def wait(self) -> None:
                assert self.connection.recv(1) == b""
                owner.hung_up.set()
                raise ConnectionError

        with Loopback(Handler) as server:
            self.address = f"{server.address}/v1"
            yield self


def sends(*pieces: str) -> Act:
    def act(send: Callable[[str], None], wait: Callable[[], None]) -> None:
        for piece in pieces:
            send(piece)

    return act


def breaks_off(*pieces: str) -> Act:
    def act(send: Callable[[str], None], wait: Callable[[], None]) -> None:
        sends(*pieces)(send, wait)
        raise ConnectionError

    return act


def goes_on(send: Callable[[str], None], wait: Callable[[], None]) -> None:
    """Send a piece, and then nothing for as long as the client waits."""
    send(chunk("a piece "))
    wait()


def model(server: Streaming, attempts: int = 1) -> OpenAICompatibleModel:
    return OpenAICompatibleModel("m", server.address, retry=RetryPolicy(attempts, first=0.0, sleep=lambda _: None))


def asked(one: OpenAICompatibleModel) -> tuple[Reply, list[tuple[str, str]]]:
    """A reply, and what was heard of it."""
    heard: list[tuple[str, str]] = []
    token = listener.set(lambda kind, text: heard.append((kind, text)))
    try:
        return one.complete(Prompt((say("user", "?", "task"),))), heard
    finally:
        listener.reset(token)


@pytest.mark.parametrize("chunked", [True, False])
def test_a_reply_is_heard_as_it_comes(chunked: bool) -> None:
    with Streaming(sends(chunk("Hel"), chunk("lo"), END), chunked=chunked).serving() as server:
        reply, heard = asked(model(server))
    assert (reply.text, reply.finish_reason, reply.usage) == ("Hello", "stop", Usage(7, 2))
    assert heard == [("text", "Hel"), ("text", "lo")]
    assert server.requests[0]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("chunked", [True, False])
def test_a_connection_that_breaks_off_is_tried_again_and_nothing_of_it_counts(chunked: bool) -> None:
    acts = breaks_off(chunk("Half a re")), sends(chunk("All of it"), END)
    with Streaming(*acts, chunked=chunked).serving() as server:
        reply, heard = asked(model(server, attempts=2))
    assert reply.text == "All of it"
    assert reply.usage == Usage(7, 2)
    assert [kind for kind, _ in heard] == ["text", "retry", "text"]
    assert "gave no reply" in heard[1][1]


@pytest.mark.parametrize("chunked", [True, False])
def test_the_error_says_that_it_broke_off(chunked: bool) -> None:
    said = "IncompleteRead|ended before the reply did"
    with (
        Streaming(breaks_off(chunk("Half a re")), chunked=chunked).serving() as server,
        pytest.raises(ModelUnreachable, match=said) as caught,
    ):
        asked(model(server))
    assert caught.value.retryable


def no(said: str, parameter: str | None = None) -> tuple[int, Any]:
    return 400, {"error": {"message": said, "param": parameter}}


REFUSALS = {
    "the usage, by a field": no("Unsupported parameter", "stream_options"),
    "the usage, in words": no("stream_options: Extra inputs are not permitted"),
    "events": no("Your organization must be verified to stream: unsupported value", "stream"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_server_that_does_not_stream_is_asked_for_whole_replies(case: str) -> None:
    whole = 200, {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}
    with Streaming(REFUSALS[case], whole, whole).serving() as server:
        one = model(server)
        for _ in range(2):
            reply, _heard = asked(one)
            assert reply.text == "Hello"
            assert "not_applied" not in reply.extra
            assert not {"stream", "stream_options"} & server.requests[-1].keys()
    assert len(server.requests) == 3


ERRORS = {
    "limits the rate": ({"error": {"code": 429, "message": "slow down"}}, RateLimited, True),
    "refuses": ({"error": {"code": 400, "message": "too long"}}, RequestRejected, False),
    "fails": ({"error": {"code": "server_error", "message": "oh"}}, ModelError, True),
    "says a word": ({"error": "oh"}, ModelError, True),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_among_the_events_is_the_one_it_would_be_before_them(case: str) -> None:
    event, kind, retryable = ERRORS[case]
    acts = sends(chunk("Half"), f"data: {json.dumps(event)}\n\n", "data: [DONE]\n\n")
    with Streaming(acts).serving() as server, pytest.raises(kind) as caught:
        asked(model(server))
    assert caught.value.retryable == retryable


def test_a_server_that_sends_it_whole_all_the_same_is_read() -> None:
    whole = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}
    with Streaming((200, whole)).serving() as server:
        reply, heard = asked(model(server))
    assert (reply.text, heard) == ("Hello", [])


@pytest.mark.parametrize("event", [{}, [], "x", {"choices": 3}, {"choices": [[]]}, {"choices": [{"delta": 5}]}])
def test_events_of_another_shape_are_a_providers_error(event: Any) -> None:
    with Streaming(sends(f"data: {json.dumps(event)}\n\n")).serving() as server, pytest.raises(ModelError):
        asked(model(server))


# -- who looks on, and how it ends


class Once:
    """A hook that does something when it hears the first piece."""

    def __init__(self, does: Callable[[], Any]) -> None:
        self.does, self.heard = does, list[str]()

    def on_text(self, kind: str, text: str) -> None:
        self.heard.append(text)
        if kind == "text":
            self.does()


def test_a_stop_hangs_up() -> None:
    piece = threading.Event()
    with Streaming(goes_on).serving() as server:
        run = DirectAgent(model=model(server)).start("?", hooks=[Once(piece.set)])
        assert piece.wait(60)
        run.stop()
        outcome = run.result(60)
        assert server.hung_up.wait(60)
    assert (outcome.stop, outcome.answer) == ("interrupted", None)  # what was shown is no reply


def test_a_time_limit_hangs_up() -> None:
    once = Once(lambda: None)
    with Streaming(goes_on).serving() as server:
        outcome = DirectAgent(model=model(server), budget=Budget(seconds=1.2)).run("?", hooks=[once])
        assert server.hung_up.wait(60)
    assert (outcome.stop, outcome.answer) == ("seconds", None)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
def test_ctrl_c_hangs_up_and_what_was_heard_is_on_record() -> None:
    def press() -> None:
        threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()

    once, trace = Once(press), Trace()
    with Streaming(goes_on).serving() as server:
        with pytest.raises(Interrupted) as caught:
            DirectAgent(model=model(server)).run("?", trace=trace, hooks=[once])
        assert server.hung_up.wait(60)
    assert (caught.value.outcome.stop, caught.value.outcome.answer) == ("interrupted", None)
    assert (caught.value.outcome.usage.calls, caught.value.outcome.usage.output_tokens) == (1, None)
    (error,) = [event for event in trace.events if event["event"] == "model_error"]
    assert error["text"]
    assert "".join(once.heard).startswith(error["text"])


def test_a_hook_that_raises_does_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise RuntimeError("no")

    with Streaming(sends(chunk("Hel"), chunk("lo"), END)).serving() as server:
        assert DirectAgent(model=model(server)).run("?", hooks=[Once(broken)]).answer == "Hello"
    assert "a hook raised in on_text" in caplog.text


def test_a_model_of_ones_own_need_not_know_of_it() -> None:
    once = Once(lambda: None)
    assert DirectAgent(model=ScriptedModel(["42"])).run("?", hooks=[once]).answer == "42"
    assert once.heard == ["", ""]  # that the call begins and ends


# -- how events are read


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_pieces_may_be_cut_anywhere(size: int) -> None:
    text = "event: x\r\n" + chunk("Größe") + ": a comment\n\n" + chunk("!") + END
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert len(list(events_of(text.encode()))) == 4
    with Streaming(sends(*pieces)).serving() as server:
        reply, heard = asked(model(server))
    assert (reply.text, heard) == ("Größe!", [("text", "Größe"), ("text", "!")])


def test_calls_with_the_same_index_and_other_ids_are_several() -> None:
    """As some servers send them; a call goes on where its id is repeated, or left out."""

    def delta(**call: Any) -> dict[str, Any]:
        return {"choices": [{"delta": {"tool_calls": [{"index": 0, **call}]}}]}

    body = joined(
        [
            delta(id="a", function={"name": "f", "arguments": '{"x'}),
            delta(function={"arguments": '": 1'}),
            delta(id="a", function={"arguments": "}"}),
            delta(id="b", function={"name": "g", "arguments": "{}"}),
        ]
    )
    calls = body["choices"][0]["message"]["tool_calls"]
    assert [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls] == [
        ("a", "f", '{"x": 1}'),
        ("b", "g", "{}"),
    ]


@pytest.mark.parametrize("names", [["look_up", "look_up"], ["look", "look_up"], ["look_", "up"], ["look_up", ""]])
def test_a_name_that_is_sent_again_is_the_same_name(names: list[str]) -> None:
    chunks = [{"index": 0, "id": "a", "function": {"name": name, "arguments": "{"}} for name in names]
    body = joined([{"choices": [{"delta": {"tool_calls": [one]}}]} for one in chunks])
    (call,) = body["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "look_up", "arguments": "{{"}


def test_a_cumulative_figure_never_falls() -> None:
    """Some servers state the usage in each event, and some end with zeros."""
    stated = [(7, 1, {"cached_tokens": 5}), (7, 2, None), (0, 0, {"cached_tokens": 0})]
    names = ("prompt_tokens", "completion_tokens", "prompt_tokens_details")
    body = joined([{"choices": [], "usage": dict(zip(names, one))} for one in stated])
    assert body["usage"] == dict(zip(names, (7, 2, {"cached_tokens": 5})))


def test_parts_and_then_text_are_read() -> None:
    """As Mistral's reasoning models stream: parts of thought first, the answer as text."""
    think = {"type": "thinking", "thinking": [{"type": "text", "text": "6 * 7"}]}
    body = joined([{"choices": [{"delta": {"content": piece}}]} for piece in ([think], "4", "2")])
    assert body["choices"][0]["message"]["content"] == "42"
