"""What goes wrong at providers: settings that they do not take, rates, replies of odd shapes, windows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from lazy import needs

from rlm_loop import LeanAgent
from rlm_loop.messages import Prompt
from rlm_loop.models import Model, RateLimited, RequestRejected
from rlm_loop.models.remote import refused
from rlm_loop.report import step_text
from rlm_loop.study import Study
from rlm_loop.tasks import Score, Suite, Task
from rlm_loop.traces import read
from tests.providers.anthropic_messages import AnthropicMessages
from tests.providers.ollama_server import Ollama
from tests.providers.openai_chat import OpenAIChat
from tests.providers.players import PLAYERS, QUESTION, TOOLS, lite, ollama, own
from tests.providers.serving import OUTPUT, Provider, Said, serving

pytestmark = [needs("litellm", extra="litellm"), pytest.mark.filterwarnings("ignore")]  # LiteLLM's own


def test_what_is_not_taken_is_said_once_and_kept_in_the_trace(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    file = str(tmp_path / "t.jsonl")
    react = PLAYERS["react"]
    with serving(OpenAIChat(reasoning=True)) as server:
        for _ in range(2):
            server.says = list(react.says)
            outcome = react.agent(own(server, name="said-once")).run(QUESTION, trace=file)
            assert "not applied: " in step_text(outcome.turns[0])
        assert len(server.refused) == 2 * 4  # each object learns once; every later request goes through
    told = [r.getMessage().partition(":")[0] for r in caplog.records if r.levelno == logging.WARNING]
    names = {"stop", "temperature", "seed", "max_tokens"}
    assert sorted(told) == sorted(f"said-once does not take {name}" for name in names)
    for _, _, reply in read(file).replies():
        assert set(reply.extra["not_applied"]) == names


@pytest.mark.parametrize(
    ("said", "sent", "parameter", "expected"),
    [
        ("property 'seed' is unsupported", ["stop", "seed"], None, ["seed"]),
        ("openai does not support parameters: ['stop', 'seed']", ["stop", "seed"], None, ["stop", "seed"]),
        # what a user can mend is said to the user
        ("max_tokens is too large: 100000. This model supports at most 16384", ["max_tokens"], "max_tokens", []),
        ("max_tokens: 9000 is not valid, it must be at most 4096", ["max_tokens"], None, []),
        ("Unsupported: max_tokens. Use max_completion_tokens", ["max_tokens", "seed"], None, ["max_tokens"]),
        ('{"detail":[{"loc":["body","seed"],"msg":"Extra inputs"}]}', ["seed", "stop"], None, ["seed"]),
        ("the prompt is too long; please stop", ["stop"], None, []),
        ("tools are not supported", ["stop", "temperature"], None, []),
        ("Invalid content: not allowed", ["stop"], "messages.[2].content", []),
        ("Unsupported parameter: 'seed'", ["stop"], "seed", []),
    ],
)
def test_what_a_refusal_is_about(said: str, sent: list[str], parameter: str | None, expected: list[str]) -> None:
    assert refused(said, sent, parameter) == expected


def test_a_row_of_a_study_says_what_was_not_applied(tmp_path: Any) -> None:
    with serving(OpenAIChat(reasoning=True), *PLAYERS["direct"].says) as server:
        suite = Suite("s", (Task("t", QUESTION, lambda _: Score(True)),))
        [row] = Study("s", {"direct": PLAYERS["direct"].agent(own(server))}, suite).run(tmp_path, False).rows
    renamed = {"max_tokens": "sent as max_completion_tokens"}
    assert row["not_applied"] == {**renamed, "seed": "left out", "temperature": "left out"}


def test_a_reply_schema_that_is_not_taken_is_left_out() -> None:
    said = Said('{"name": "final_answer", "arguments": {"answer": 5}}')
    with serving(OpenAIChat(), said) as server:
        outcome = LeanAgent(model=own(server), tools=TOOLS, presentation="constrained").run(QUESTION)
    assert outcome.answer == 5
    assert outcome.turns[0].reply.extra["not_applied"] == {"response_format": "left out"}


OPENAI_SLOW = {"error": {"message": "slow", "type": "x", "code": "rate_limit_exceeded"}}
ANTHROPIC_SLOW = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
SLOW = pytest.mark.slow  # LiteLLM takes seconds to import


@pytest.mark.parametrize(
    ("provider", "model", "body"),
    [
        pytest.param(OpenAIChat, lite("openai/gpt-4o-mini", "/v1"), OPENAI_SLOW, marks=SLOW),
        pytest.param(AnthropicMessages, lite("anthropic/claude-haiku-4-5"), ANTHROPIC_SLOW, marks=SLOW),
        (OpenAIChat, own, OPENAI_SLOW),
        (Ollama, ollama, {"error": "server busy, please try again"}),
    ],
)
def test_a_rate_limit_says_how_long_to_wait(
    provider: Callable[[], Provider], model: Callable[[Provider], Model], body: Any
) -> None:
    with serving(provider()) as server:
        server.troubles = [(429, {"Retry-After": "17"}, body)] * 2  # Ollama is asked for its window first
        with pytest.raises(RateLimited) as caught:
            model(server).complete(Prompt.ask("hi"))
    assert caught.value.retry_after == 17


def test_a_window_grows_with_the_prompt_and_never_beyond_the_model() -> None:
    with serving(Ollama(length=20_000), *map(Said, "abc")) as server:
        model = ollama(server)
        for size in (10, 30_000, 10):
            model.complete(Prompt.ask("x" * size), max_tokens=500)
        asked = [(r["options"]["num_ctx"], r["options"]["num_predict"]) for r in server.requests]
        assert asked == [(8192, 500), (16384, 500), (16384, 500)]
        with pytest.raises(RequestRejected, match="20,000"):
            model.complete(Prompt.ask("x" * 70_000))
        assert model.window == 20_000
        assert server.truncated == []


def test_a_server_that_does_not_state_its_window_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent one was asked twice before the first request: 40 s where a run had two."""
    monkeypatch.setattr("rlm_loop.models.ollama.QUICK", 0.01)
    released = threading.Event()

    class Silent(Ollama):
        questions = 0

        def lookup(self, path: str, body: Any) -> Any:
            if path == "/api/show":
                self.questions += 1
                released.wait(60)
            return super().lookup(path, body)

    with serving(Silent(), Said("a"), Said("b")) as server:
        model = ollama(server)
        assert (model.window, model.window) == (None, None)
        assert [model.complete(Prompt.ask("x")).text for _ in range(2)] == ["a", "b"]
        released.set()
        assert (server.questions, model.window) == (1, None)


@pytest.mark.parametrize(
    ("provider", "given", "window", "says"),
    [
        (Ollama(old=True), {"context_size": 2000}, 2000, "context_size=2000"),
        (Ollama(), {"options": {"num_ctx": 2000}}, 2000, "context_size=2000"),
        (Ollama(memory=4096), {}, 8192, "exceeds the context length"),
    ],
)
def test_a_prompt_beyond_the_window_is_refused_and_not_cut(
    provider: Ollama, given: Any, window: int, says: str
) -> None:
    with serving(provider, Said("a")) as server:
        model = ollama(server, **given)
        assert model.complete(Prompt.ask("x")).text == "a"
        assert server.requests[-1]["options"]["num_ctx"] == window
        with pytest.raises(RequestRejected, match=says):
            model.complete(Prompt.ask("x" * 20_000))
        assert server.truncated == []


class Thinking(AnthropicMessages):
    def answer(self, said: Said, body: Any) -> Any:
        answer = super().answer(said, body)
        answer["content"].insert(0, {"type": "thinking", "thinking": "hm, hm", "signature": "c2ln"})
        return answer


@SLOW
def test_thinking_that_the_provider_does_not_count_is_not_known() -> None:
    with serving(Thinking(), Said("a")) as server:
        reply = lite("anthropic/claude-haiku-4-5")(server).complete(Prompt.ask("x"))
    usage: Any = reply.usage
    assert (reply.text, usage.output_tokens, usage.reasoning_tokens) == ("a", OUTPUT, None)


def test_a_key_of_openai_is_not_sent_to_ollama(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    with serving(Ollama(), Said("a")) as server:
        ollama(server).complete(Prompt.ask("x"))
        assert [h.get("authorization") for h in server.headers] == [None, None]


def test_what_ollama_does_not_say_is_not_known() -> None:
    with serving(Ollama(counts_what_it_reads=False), Said("a")) as server:
        usage: Any = ollama(server).complete(Prompt.ask("x")).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (None, OUTPUT, None)


def test_a_model_of_ollama_without_tools_says_so() -> None:
    with serving(Ollama(capabilities=("completion",))) as server, pytest.raises(RequestRejected, match="tools"):
        LeanAgent(model=ollama(server), tools=TOOLS).run(QUESTION)
