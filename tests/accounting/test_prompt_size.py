"""Prompts are short, counted with the local model's own tokenizer."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from rlm_loop import LeanAgent, ToolLoopAgent
from rlm_loop.messages import Prompt
from rlm_loop.models import LocalModel, Model, ModelNotFound, Reply, Usage
from tests.agents.replies import written

pytestmark = pytest.mark.slow

CODE = ["```python\nx = 6 * 7\nprint(x)\n```", "```python\nprint(x + 1)\n```", "```python\nfinal_answer = x\n```"]
CALLS = [written("python", code="print(42)"), written("python", code="print(43)"), written("final_answer", answer=42)]


class Counted(Model):
    """Scripted replies with the tokenizer of a local model, so that what is counted is exact and nothing is random."""

    def __init__(self, replies: list[str], tokenizer: LocalModel) -> None:
        self._replies = itertools.cycle(replies)
        self.name, self.measure = tokenizer.name, tokenizer.measure

    def complete(self, prompt: Any, *, max_tokens: int | None = None) -> Reply:
        return Reply(next(self._replies), usage=Usage(sum(p.tokens for p in self.measure(prompt)), 1, 0))


@pytest.fixture(scope="module", params=["smollm2-135m", "qwen2.5-coder-1.5b"])
def tokenizer(request: pytest.FixtureRequest) -> LocalModel:
    model = LocalModel(request.param, context_size=4096, threads=1)
    try:
        model.measure(Prompt.ask("Here?"))
    except ModelNotFound as error:
        pytest.skip(str(error))
    return model


def test_the_code_loop_is_short_and_the_lean_one_adds_nothing_to_its_results(tokenizer: LocalModel) -> None:
    code = ToolLoopAgent(model=Counted(CODE, tokenizer)).run("What is 6 times 7?")
    lean = LeanAgent(model=Counted(CALLS, tokenizer)).run("What is 6 times 7?")
    own = ("assistant", "repl_output", "tool_result", "error")
    for outcome in (code, lean):
        assert (outcome.answer, outcome.ledger.calls[0].exact) == (42, True)
        frames = [sum(r.tokens for r in call.rows if r.cause not in own) for call in outcome.ledger.calls]
        assert max(after - before for before, after in itertools.pairwise(frames)) <= 11  # role markers alone
    assert sum(r.tokens for r in code.ledger.calls[0].rows if r.cause == "system") <= 100
    assert not [r for r in lean.ledger.rows if r.cause.startswith("scaffold:")]
