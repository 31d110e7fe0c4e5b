"""Every agent at every provider, through the real LiteLLM and through our own clients.

Who looks on while a reply is written changes nothing: the same run, row for row, with and without streaming.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lazy import needs

from rlm_loop import Outcome
from rlm_loop.messages import Usage
from rlm_loop.models import Model
from tests.providers.anthropic_messages import AnthropicMessages
from tests.providers.ollama_server import Ollama
from tests.providers.openai_chat import OpenAIChat
from tests.providers.players import ANSWER, PLAYERS, QUESTION, lite, ollama, own
from tests.providers.serving import CACHE_READ, CACHE_WRITE, INPUT, OUTPUT, REASONING, Provider, serving

pytestmark = [needs("litellm", extra="litellm"), pytest.mark.filterwarnings("ignore")]  # LiteLLM's own


@dataclass(frozen=True)
class Place:
    """A provider, a client, what a call is found to cost, and which settings come in another way or not at all."""

    provider: Callable[[], Provider]
    model: Callable[[Provider], Model]
    usage: tuple[int | None, ...]
    """Read and written from a cache, and thought."""
    not_applied: frozenset[str] = frozenset()


CLASSIC, THINKING, CACHING = (CACHE_READ, None, 0), (CACHE_READ, None, REASONING), (CACHE_READ, CACHE_WRITE, 0)
LEFT_OUT = frozenset({"stop", "temperature", "seed"})
RENAMED = LEFT_OUT | {"max_tokens"}
THINKER = partial(OpenAIChat, reasoning=True)
PLACES = {
    "openai, litellm": Place(OpenAIChat, lite("openai/gpt-4o-mini", "/v1"), CLASSIC),
    "openai, own": Place(OpenAIChat, own, CLASSIC),
    "objects, own": Place(partial(OpenAIChat, arguments_as_objects=True), own, CLASSIC),
    "reasoning, litellm": Place(THINKER, lite("openai/gpt-5-nano", "/v1"), THINKING, LEFT_OUT),
    "reasoning o, litellm": Place(THINKER, lite("openai/o3-mini", "/v1"), THINKING, LEFT_OUT),
    "reasoning of tomorrow, litellm": Place(THINKER, lite("openai/tomorrow", "/v1"), THINKING, RENAMED),
    "reasoning, own": Place(THINKER, own, THINKING, RENAMED),
    "reasoning in words, own": Place(partial(THINKER, names_parameters=False), own, THINKING, RENAMED),
    "anthropic, litellm": Place(AnthropicMessages, lite("anthropic/claude-haiku-4-5"), CACHING, frozenset({"seed"})),
    "ollama, litellm": Place(Ollama, lite("ollama_chat/llama3.1"), (None, None, None)),
    "ollama, own": Place(Ollama, ollama, (None, None, None)),
}


@pytest.mark.slow
@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("place", PLACES)
def test_every_agent_answers_at_every_provider(place: str, player: str) -> None:
    where, who = PLACES[place], PLAYERS[player]
    with serving(where.provider(), *who.says) as server:
        outcome = who.agent(where.model(server)).run(QUESTION)
    assert outcome.answer in (ANSWER, str(ANSWER)), server.refused
    assert outcome.stop == "answered"
    assert server.says == []
    read, written, thought = where.usage
    one = Usage(INPUT, OUTPUT, read, cache_write_tokens=written, reasoning_tokens=thought)
    wanted = {"temperature", "seed", "max_tokens"} | ({"stop"} if player == "react" else set())
    for turn, body in zip(outcome.turns, server.requests, strict=True):
        refused = turn.index == 1 and bool(who.says[0].refusal) and not isinstance(server, Ollama)
        assert (turn.reply.finish_reason == "content_filter") == refused
        assert turn.reply.usage == replace(one, cost=turn.reply.usage.cost if turn.reply.usage else None)
        left = set(turn.reply.extra.get("not_applied", ()))
        assert left == where.not_applied & wanted
        assert server.given(body) == wanted - (left - {"max_tokens"})  # nothing is left out in silence


#: What differs between any two runs: times, ids, and where a server is.
PASSING = {"seconds", "at", "time", "ts", "run", "created", "created_at", "elapsed", "working_seconds"}


class Heard:
    """A hook that looks on: what it heard of each call, its text and what it calls."""

    def __init__(self) -> None:
        self.replies: list[dict[str, str]] = []

    def on_text(self, kind: str, text: str) -> None:
        if kind == "begin":
            self.replies.append({"text": "", "call": ""})
        elif kind in ("text", "call"):
            self.replies[-1][kind] += text


def run(place: str, player: str, path: Path, hooks: tuple[object, ...]) -> tuple[Outcome, list[Any], list[Any]]:
    """A run, its trace without what passes, and the requests that were sent."""
    where, who = PLACES[place], PLAYERS[player]
    with serving(where.provider(), *who.says) as server:
        outcome = who.agent(where.model(server)).run(QUESTION, trace=path, hooks=hooks)
        events = [json.loads(line.replace(server.address, "http://server")) for line in path.read_text().splitlines()]
    assert server.says == []
    return outcome, [without(event) for event in events], server.requests


def without(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without(v) for k, v in value.items() if k not in PASSING}
    return [without(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("player", ["tool loop", "lean", "a refusal at first"])
@pytest.mark.parametrize("place", [name for name in PLACES if "litellm" not in name])
def test_a_streamed_run_is_the_same_run(place: str, player: str, tmp_path: Path) -> None:
    heard = Heard()
    plain, rows, sent = run(place, player, tmp_path / "plain.jsonl", ())
    streamed, rows_again, sent_again = run(place, player, tmp_path / "streamed.jsonl", (heard,))
    assert not any(body.get("stream") for body in sent)
    assert all(body.get("stream") for body in sent_again)
    for body in sent_again:
        body.pop("stream_options", None)
    assert [{**body, "stream": None} for body in sent] == [{**body, "stream": None} for body in sent_again]
    assert rows_again == rows
    assert (streamed.answer, streamed.stop, streamed.usage) == (plain.answer, plain.stop, plain.usage)
    assert streamed.ledger.by_cause() == plain.ledger.by_cause()
    for turn, said in zip(streamed.turns, heard.replies, strict=True):
        names = [line.split()[0] for line in said["call"].split("\n") if line]
        assert (said["text"], names) == (turn.reply.text, [call.name for call in turn.reply.tool_calls])
