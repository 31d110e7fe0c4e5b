"""Every agent at every provider, through the real LiteLLM and through our own clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from anthropic_messages import AnthropicMessages  # pyright: ignore
from lazy import needs
from ollama_server import Ollama  # pyright: ignore
from openai_chat import OpenAIChat  # pyright: ignore
from players import ANSWER, PLAYERS, QUESTION  # pyright: ignore
from serving import CACHE_READ, CACHE_WRITE, INPUT, OUTPUT, REASONING, Provider, serving  # pyright: ignore

from rlm_loop.messages import Usage
from rlm_loop.models import LiteLLMModel, Model, OllamaModel, OpenAICompatibleModel, RetryPolicy

pytestmark = [
    pytest.mark.slow,
    needs("litellm", extra="litellm"),
    pytest.mark.filterwarnings("ignore"),  # LiteLLM's own
]


def lite(name: str, path: str = "") -> Callable[[Provider], Model]:
    asked: dict[str, Any] = {"api_key": "sk-test", "temperature": 0.0, "seed": 0, "retry": RetryPolicy(attempts=1)}
    return lambda server: LiteLLMModel(name, api_base=server.address + path, **asked)


def own(name: str) -> Callable[[Provider], Model]:
    return lambda server: OpenAICompatibleModel(
        name, f"{server.address}/v1", api_key="sk-test", retry=RetryPolicy(attempts=1), name=f"own:{name}"
    )


def ollama(server: Provider) -> Model:
    return OllamaModel("llama3.1", server.address, retry=RetryPolicy(attempts=1))


@dataclass(frozen=True)
class Place:
    """A provider, a client, what a call is found to cost, and which settings come in another way or not at all."""

    provider: Callable[[], Provider]
    model: Callable[[Provider], Model]
    usage: tuple[int | None, ...]
    """Read and written from a cache, and thought."""
    not_applied: frozenset[str] = frozenset()


def reasoning(**more: Any) -> Callable[[], Provider]:
    return lambda: OpenAIChat(reasoning=True, **more)


CLASSIC, THINKING = (CACHE_READ, None, 0), (CACHE_READ, None, REASONING)
LEFT_OUT = frozenset({"stop", "temperature", "seed"})
RENAMED = LEFT_OUT | {"max_tokens"}
PLACES = {
    "openai, litellm": Place(OpenAIChat, lite("openai/gpt-4o-mini", "/v1"), CLASSIC),
    "openai, own": Place(OpenAIChat, own("gpt-4o-mini"), CLASSIC),
    "objects, own": Place(lambda: OpenAIChat(arguments_as_objects=True), own("some"), CLASSIC),
    "reasoning, litellm": Place(reasoning(), lite("openai/gpt-5-nano", "/v1"), THINKING, LEFT_OUT),
    "reasoning o, litellm": Place(reasoning(), lite("openai/o3-mini", "/v1"), THINKING, LEFT_OUT),
    "reasoning of tomorrow, litellm": Place(reasoning(), lite("openai/tomorrow", "/v1"), THINKING, RENAMED),
    "reasoning, own": Place(reasoning(), own("gpt-5-nano"), THINKING, RENAMED),
    "reasoning in words, own": Place(reasoning(names_parameters=False), own("tomorrow"), THINKING, RENAMED),
    "anthropic, litellm": Place(
        AnthropicMessages, lite("anthropic/claude-haiku-4-5"), (CACHE_READ, CACHE_WRITE, 0), frozenset({"seed"})
    ),
    "ollama, litellm": Place(Ollama, lite("ollama_chat/llama3.1"), (None, None, None)),
    "ollama, own": Place(Ollama, ollama, (None, None, None)),
}


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
