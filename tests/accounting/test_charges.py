"""What a trace keeps of the ledger: enough to restore it, and no more than what each call added."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop import Budget, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.replay import ledger_of
from rlm_loop.traces import read

STEPS = [
    (ToolLoopAgent, "```python\nprint(1)\n```"),
    (LeanAgent, '{"name": "python", "arguments": {"code": "print(1)"}}'),
    (ReActAgent, 'Thought: on.\nAction: python\nAction Input: {"code": "print(1)"}'),
]


@pytest.mark.parametrize(("agent", "step"), STEPS)
def test_a_whole_trace_is_linear_in_turns(agent: type, step: str, tmp_path: Path) -> None:
    sizes: list[int] = []
    for turns in (10, 20, 30):
        file = tmp_path / f"{turns}.jsonl"
        budget = Budget(steps=turns, tool_failures=None)
        model = ScriptedModel([step.replace("1", str(i)) for i in range(100, 100 + turns)], name="local:s")
        live = agent(model=model, budget=budget).run("Count.", trace=file)  # nothing is left out
        assert live.steps == turns
        assert ledger_of(read(file)).calls == live.ledger.calls
        sizes.append(file.stat().st_size)
    # figures grow by a digit here and there: a tenth is far less than another turn's rows would add
    assert sizes[2] - sizes[1] < 1.1 * (sizes[1] - sizes[0])
