"""Prompts are short, counted with the local model's own tokenizer, and its prefix cache is used over turns."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from rlm_loop import Budget, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.accounting import Account, Ledger
from rlm_loop.agents.metered import Metered
from rlm_loop.dialects.injectors import Nudge
from rlm_loop.messages import Message, Prompt, Span
from rlm_loop.models import LocalModel, ModelNotFound, Reply, ScriptedModel, Usage
from rlm_loop.models.weights import path
from rlm_loop.traces import Trace

pytestmark = pytest.mark.slow

CODE = ["```python\nx = 6 * 7\nprint(x)\n```", "```python\nprint(x + 1)\n```", "```python\nfinal_answer = x\n```"]
CALLS = [
    '{"name": "python", "arguments": {"code": "print(42)"}}',
    '{"name": "python", "arguments": {"code": "print(43)"}}',
    '{"name": "final_answer", "arguments": {"answer": 42}}',
]


class Counted:
    """A scripted model with the tokenizer of a local one, so that what is counted is exact and nothing is random."""

    def __init__(self, replies: list[str], tokenizer: LocalModel) -> None:
        self._script = ScriptedModel(replies)
        self._tokenizer = tokenizer
        self.name = tokenizer.name

    def measure(self, prompt: Any) -> Any:
        return self._tokenizer.measure(prompt)

    def complete(self, prompt: Any, *, max_tokens: int | None = None) -> Reply:
        said = self._script.complete(prompt)
        tokens = sum(p.tokens for p in self.measure(prompt))
        return Reply(said.text, said.tool_calls, said.finish_reason, Usage(tokens, 1, 0))


@pytest.fixture(scope="module", params=["smollm2-135m", "qwen2.5-coder-1.5b"])
def tokenizer(request: pytest.FixtureRequest) -> LocalModel:
    try:
        path(request.param)
    except ModelNotFound:
        pytest.skip(f"{request.param} is not here: rlm-loop models pull {request.param}")
    return LocalModel(request.param, context_size=4096, threads=1)


def overhead(outcome: Any) -> list[int]:
    """What each later call's prompt has more than the one before, without the model's own text and the results."""
    texts = [
        sum(r.tokens for r in c.rows if r.cause in ("assistant", "repl_output", "tool_result", "error"))
        for c in outcome.ledger.calls
    ]
    whole = [c.usage.input_tokens for c in outcome.ledger.calls]
    return [w2 - w1 - (t2 - t1) for w1, w2, t1, t2 in zip(whole, whole[1:], texts, texts[1:], strict=False)]


def test_the_code_loop_is_short(tokenizer: LocalModel) -> None:
    outcome = ToolLoopAgent(model=Counted(CODE, tokenizer)).run("What is 6 times 7?")
    assert outcome.answer == 42
    first = outcome.ledger.calls[0]
    assert first.exact
    assert sum(r.tokens for r in first.rows if r.cause == "system") <= 100
    assert max(overhead(outcome)) <= 11


def test_the_lean_loop_adds_nothing_to_its_results(tokenizer: LocalModel) -> None:
    outcome = LeanAgent(model=Counted(CALLS, tokenizer)).run("What is 6 times 7?")
    assert outcome.answer == 42
    assert max(overhead(outcome)) <= 11  # role markers alone
    assert not [r for r in outcome.ledger.rows if r.cause.startswith("scaffold:")]


def test_react_adds_what_its_injectors_say_every_turn(tokenizer: LocalModel) -> None:
    lean = LeanAgent(model=Counted(CALLS, tokenizer)).run("What is 6 times 7?")
    react = ReActAgent(model=Counted(CALLS, tokenizer), form="calls").run("What is 6 times 7?")
    nudged = LeanAgent(model=Counted(CALLS, tokenizer), injectors=(Nudge(),)).run("What is 6 times 7?")
    added = react.ledger.by_cause()
    once, thought = added["scaffold:initiator"] // 3, added["scaffold:thought"]
    assert 60 <= once <= 120  # about 90 once
    # the thought prompt is said before each of three replies and stays in the history: 1 + 2 + 3 times
    assert 25 * 6 <= thought <= 55 * 6  # about 40 a turn
    assert react.usage.input_tokens == (lean.usage.input_tokens or 0) + added["scaffold:initiator"] + thought
    assert (nudged.usage.input_tokens or 0) > (lean.usage.input_tokens or 0)


def test_tokens_processed_anew_are_what_the_turn_added() -> None:
    """With llama.cpp's prefix cache each call evaluates what it has not seen: the result and the role markers."""
    try:
        path("smollm2-135m")
    except ModelNotFound:
        pytest.skip("smollm2-135m is not here: rlm-loop models pull smollm2-135m")
    model = LocalModel("smollm2-135m", context_size=2048, threads=1, max_tokens=24)
    metered = Metered(model, Account(Budget()), Ledger(), Trace())
    prompt = Prompt.ask("Write one short sentence about the sea.")
    for turn in range(1, 5):
        reply = metered.complete(prompt, turn=turn)
        said = Message("assistant", (Span(reply.text, "assistant"),), turn=turn)
        prompt += [said, Message("user", (Span(f"Now another, number {turn}.", "tool_result"),), turn=turn)]
    calls = metered.ledger.calls
    for before, call in itertools.pairwise(calls):
        assert call.usage.input_tokens is not None
        assert call.usage.cached_tokens is not None
        anew = call.usage.input_tokens - call.usage.cached_tokens
        own = sum(r.tokens for r in call.rows if r.cause == "assistant" and r.origin_turn == before.turn)
        grown = call.usage.input_tokens - (before.usage.input_tokens or 0)
        # what the model wrote itself is in its cache already, but for the token that ended it
        assert anew <= grown
        assert anew >= grown - own - 1
        rows_anew = sum(r.tokens - (r.cached or 0) for r in call.rows)
        assert rows_anew == anew
