"""A small study that has been run, whose arms are crossed with two factors and make sub-calls in two turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlm_loop import Suite, Task, ToolLoopAgent
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models import Model
from rlm_loop.study import Study
from rlm_loop.tasks import Attempt, Score

ASKS = """```python
try:
    found = [llm_query(f"piece {n}") for n in range(3)]
except Exception as error:
    found = ["4", "5", "6"]
print(found)
```"""
ENDS = "```python\nfinal_answer = sum(map(int, found))\n```"


class Asks(Model):
    """Asks for three pieces, then adds up what they are; its reply depends on the prompt alone."""

    name = "local:scripted"

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        last = prompt.messages[-1].text
        text = ENDS if len(prompt.messages) > 2 else last[-1] if last.startswith("piece") else ASKS
        return Reply(text, usage=Usage(sum(len(m.text) for m in prompt.messages), len(text)))


def judge(attempt: Attempt) -> Score:
    return Score(str(attempt.answer) == "3", float(str(attempt.answer) == "3"), "")


def crossed_study(folder: Path, **options: Any) -> Path:
    """Two tasks, one base arm, two depths by three limits of tokens."""
    tasks = tuple(Task(f"t{i}", f"What do the pieces of t{i} come to?", judge) for i in range(2))
    arms = {"code": ToolLoopAgent(model=Asks())}
    factors = {"max_depth": [0, 1], "max_tokens": [50, 100, 200]}
    Study("crossed", arms, Suite("toy", tasks), factors=factors, question="Q?", **options).run(folder, False)
    return folder
