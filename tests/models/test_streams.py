"""Replies in events: put together to what a whole reply says, retried where they break off, hung up where runs end."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from upstream import EVENT_STREAM, Answer, Upstream, until_gone, upstream

from rlm_loop import DirectAgent
from rlm_loop.agents import Interrupted
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models import ModelError, OpenAICompatibleModel, RateLimited, RequestRejected, RetryPolicy, ScriptedModel
from rlm_loop.models.base import listener
from rlm_loop.models.streams import events_of, joined
from rlm_loop.report import start_live
from rlm_loop.traces import Trace


def chunk(text: str | None = None, finish: str | None = None) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {"id": "x1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


COUNTED = {"id": "x1", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
END = chunk(finish="stop"), COUNTED, "[DONE]"
HELLO = Answer.events(chunk("Hel"), chunk("lo"), *END)
WHOLE = Answer.of({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]})
HALF = Answer.events(chunk("Half a re"), None)
#: Sends a piece, and then nothing for as long as the client waits.
GOES_ON = Answer.events(chunk("a piece "), until_gone)


def model(server: Upstream, attempts: int = 1) -> OpenAICompatibleModel:
    return OpenAICompatibleModel("m", f"{server.url}/v1", retry=RetryPolicy(attempts, first=0.0, sleep=lambda _: None))


def asked(one: OpenAICompatibleModel) -> tuple[Reply, list[tuple[str, str]]]:
    """A reply, and what was heard of it."""
    heard: list[tuple[str, str]] = []
    token = listener.set(lambda kind, text: heard.append((kind, text)))
    try:
        return one.complete(Prompt.ask("?")), heard
    finally:
        listener.reset(token)


@pytest.mark.parametrize("end", ["chunk", "connection"])
def test_a_connection_that_breaks_off_is_tried_again_and_nothing_of_it_counts(end: Any) -> None:
    with upstream(replace(HALF, end=end), replace(HELLO, end=end)) as server:
        reply, [half, retry, *whole] = asked(model(server, attempts=2))
    assert (reply.text, reply.finish_reason, reply.usage) == ("Hello", "stop", Usage(7, 2))
    assert (half, retry[0], whole) == (("text", "Half a re"), "retry", [("text", "Hel"), ("text", "lo")])
    assert "gave no reply" in retry[1]
    assert server.requests[0]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("said", "parameter"),
    [
        ("Unsupported parameter", "stream_options"),
        ("stream_options: Extra inputs are not permitted", None),
        ("Your organization must be verified to stream: unsupported value", "stream"),
    ],
)
def test_a_server_that_does_not_stream_is_asked_for_whole_replies(said: str, parameter: str | None) -> None:
    with upstream(Answer.of({"error": {"message": said, "param": parameter}}, 400), WHOLE) as server:
        one = model(server)
        for _ in range(2):
            reply, _heard = asked(one)
            assert reply.text == "Hello"
            assert "not_applied" not in reply.extra
            assert not {"stream", "stream_options"} & server.requests[-1].keys()
    assert len(server.got) == 3


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"code": 429, "message": "slow down"}, RateLimited, True),
        ({"code": 400, "message": "too long"}, RequestRejected, False),
        ({"code": "server_error", "message": "oh"}, ModelError, True),
        ("oh", ModelError, True),
    ],
)
def test_an_error_among_the_events_is_the_one_it_would_be_before_them(error: Any, kind: Any, retryable: bool) -> None:
    broken = Answer.events(chunk("Half"), {"error": error}, "[DONE]")
    with upstream(broken) as server, pytest.raises(kind) as caught:
        asked(model(server))
    assert caught.value.retryable == retryable


def test_what_comes_whole_all_the_same_is_read() -> None:
    with upstream(WHOLE) as server:
        reply, heard = asked(model(server))
    assert (reply.text, heard) == ("Hello", [])
    once = Once(lambda: None)  # and a model of one's own need not know of events
    assert DirectAgent(model=ScriptedModel(["42"])).run("?", hooks=[once]).answer == "42"
    assert once.heard == ["", ""]  # that the call begins and ends


@pytest.mark.parametrize("event", [{}, [], "x", {"choices": 3}, {"choices": [[]]}, {"choices": [{"delta": 5}]}])
def test_events_of_another_shape_are_a_providers_error(event: Any) -> None:
    with upstream(Answer.events(json.dumps(event))) as server, pytest.raises(ModelError):
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
    with upstream(GOES_ON) as server:
        run = start_live(DirectAgent(model=model(server), hooks=[Once(piece.set)]), "?", show=False)
        assert piece.wait(60)
        run.stop()
        outcome = run.result(60)
        assert server.gone.wait(60)
    assert (outcome.stop, outcome.answer) == ("interrupted", None)  # what was shown is no reply


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
def test_ctrl_c_hangs_up_and_what_was_heard_is_on_record() -> None:
    def press() -> None:
        threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()

    once, trace = Once(press), Trace()
    with upstream(GOES_ON) as server:
        with pytest.raises(Interrupted) as caught:
            DirectAgent(model=model(server)).run("?", trace=trace, hooks=[once])
        assert server.gone.wait(60)
    outcome = caught.value.outcome
    found = (outcome.stop, outcome.answer, outcome.usage.calls, outcome.usage.output_tokens)
    assert found == ("interrupted", None, 1, None)
    (error,) = [event for event in trace.events if event["event"] == "model_error"]
    assert error["text"]
    assert "".join(once.heard).startswith(error["text"])


# -- how events are read


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_pieces_may_be_cut_anywhere(size: int) -> None:
    end = b"".join(Answer.events(*END).pieces)
    first, second = Answer.events(chunk("Größe"), chunk("!")).pieces
    data = b"event: x\r\n" + first + b": a comment\n\n" + second + end
    assert len(list(events_of(data))) == 4
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    with upstream(Answer(pieces, headers=EVENT_STREAM)) as server:
        reply, heard = asked(model(server))
    assert (reply.text, heard) == ("Größe!", [("text", "Größe"), ("text", "!")])


def calls_in(*pieces: dict[str, Any]) -> list[tuple[str, ...]]:
    body = joined([{"choices": [{"delta": {"tool_calls": [{"index": 0, **piece}]}}]} for piece in pieces])
    return [(call["id"], *call["function"].values()) for call in body["choices"][0]["message"]["tool_calls"]]


def test_calls_with_the_same_index_and_other_ids_are_several() -> None:
    """As some servers send them; a call goes on where its id is repeated, or left out."""
    begun = {"id": "a", "function": {"name": "f", "arguments": '{"x'}}
    more = {"function": {"arguments": '": 1'}}, {"id": "a", "function": {"arguments": "}"}}
    other = {"id": "b", "function": {"name": "g", "arguments": "{}"}}
    assert calls_in(begun, *more, other) == [("a", "f", '{"x": 1}'), ("b", "g", "{}")]


@pytest.mark.parametrize("names", [["look_up", "look_up"], ["look", "look_up"], ["look_", "up"], ["look_up", ""]])
def test_a_name_that_is_sent_again_is_the_same_name(names: list[str]) -> None:
    pieces = [{"id": "a", "function": {"name": name, "arguments": "{"}} for name in names]
    assert calls_in(*pieces) == [("a", "look_up", "{{")]


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
