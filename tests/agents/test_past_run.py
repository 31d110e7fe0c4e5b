"""A recorded run reads back as what it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop import DirectAgent, LeanAgent, Outcome, ToolLoopAgent
from rlm_loop.agents import outcome_of
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import Model, ScriptedModel
from rlm_loop.traces import read

RUNS = [
    (DirectAgent, ["Paris"]),
    (
        ToolLoopAgent,
        ["Look.\n```python\nprint(len(context))\n```", "```python\n1/0\n```", "```python\nfinal_answer = 7\n```"],
    ),
    (ToolLoopAgent, ["", "", ""]),
    (LeanAgent, ['{"name": "nothing", "arguments": {}}', '{"name": "final_answer", "arguments": {"answer": 5}}']),
]


class WithoutTokenizer(Model):
    """A model that reports its prompt tokens and cannot count them beforehand, as most providers."""

    name = "local:uncounted"

    def __init__(self, inner: ScriptedModel) -> None:
        self._inner = inner

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        return self._inner.complete(prompt, max_tokens=max_tokens)


@pytest.mark.parametrize("counting", [True, False])
@pytest.mark.parametrize(("agent", "replies"), RUNS)
def test_what_was_recorded_reads_back_equal(agent: type, replies: list[str], counting: bool, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    model = ScriptedModel(replies, name="local:scripted")
    asked = model if counting else WithoutTokenizer(model)
    live: Outcome = agent(model=asked).run("What?", context="abc", trace=file)
    past = outcome_of(read(file), trace=str(file))
    assert past.turns == live.turns
    assert past.ledger.calls == live.ledger.calls
    assert all(call.exact is counting for call in past.ledger.calls)
    assert past.usage == live.usage
    for name in ("answer", "stop", "reason", "answer_form", "question", "model", "agent", "over_budget", "steps"):
        assert getattr(past, name) == getattr(live, name)


def test_a_run_without_an_end_says_so(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    DirectAgent(model=ScriptedModel(["Paris"])).run("What?", trace=file)
    kept = [line for line in file.read_text().splitlines() if '"event":"run_end"' not in line]
    file.write_text("\n".join(kept) + "\n")
    past = outcome_of(read(file))
    assert past.stop == "failed"
    assert "no end" in past.reason
    assert past.steps == 1
