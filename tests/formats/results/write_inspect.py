"""Writes the logs of Inspect in `files/`, each to a folder of its own: `python write_inspect.py FOLDER`.

It needs inspect_ai and no network.

A scripted model adds a number to itself, six times.  `plain` is wrong four times and calls no tool; `tools` is wrong
once, calls a tool first and reads from a cache; `epochs` is `tools` in two epochs; `failing` raises once and is
partly right once.
"""

from __future__ import annotations

import sys
from typing import Any

from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ModelAPI, ModelOutput, ModelUsage, modelapi
from inspect_ai.scorer import Score, Target, accuracy, includes, scorer
from inspect_ai.solver import TaskState, generate, use_tools
from inspect_ai.tool import tool

WRONG = {"plain": {1, 2, 3, 4}, "tools": {4}, "failing": {5}}


@modelapi(name="scripted")
class Scripted(ModelAPI):
    async def generate(self, input: list[Any], tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        kind, n = self.model_name, int(next(m for m in input if m.role == "user").text.split()[2])
        if kind == "failing" and n == 2:
            raise RuntimeError("no answer from the provider")
        if kind == "tools" and not any(isinstance(m, ChatMessageAssistant) for m in input):
            output = ModelOutput.for_tool_call(kind, "add", {"x": n, "y": n}, tool_call_id="call")
            output.usage = ModelUsage(input_tokens=40, output_tokens=9, total_tokens=65, input_tokens_cache_read=16)
            return output
        output = ModelOutput.from_content(kind, f"It is {n + n if n not in WRONG[kind] else 'hard to say'}.")
        output.usage = ModelUsage(input_tokens=30 + n, output_tokens=7, total_tokens=37 + n)
        return output


@tool
def add() -> Any:
    async def execute(x: int, y: int) -> int:
        """Add two numbers.

        Args:
            x: First number.
            y: Second number.
        """
        return x + y

    return execute


@scorer(metrics=[accuracy()])
def half() -> Any:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value="P" if target.text == "6" else "C")

    return score


@task
def sums(other: bool = False) -> Task:
    samples = [Sample(id=f"sum-{n}", input=f"What is {n} plus {n} ?", target=str(n + n)) for n in range(6)]
    scorers = [includes(), half()] if other else includes()
    return Task(dataset=samples, solver=[use_tools(add()), generate()], scorer=scorers)


if __name__ == "__main__":
    plain = {"display": "none", "max_samples": 1, "log_model_api": False}
    for name, model, more in (
        ("plain", "plain", {}),
        ("tools", "tools", {}),
        ("epochs", "tools", {"epochs": 2}),
        ("failing", "failing", {"fail_on_error": False}),
        ("as_json", "plain", {"log_format": "json"}),
    ):
        options = {**plain, **more, "log_dir": f"{sys.argv[1]}/{name}", "metadata": {"written": name}}
        eval(sums(name == "failing"), model=f"scripted/{model}", **options)
