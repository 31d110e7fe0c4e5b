"""Inspect's side of `study_throughput.py`: run with the Python of an environment that has `inspect_ai`.

A sample is one episode of its `basic_agent`: `--turns` calls of its mock model, all but the last a call of a tool that
runs a trivial cell in the same process, and the last its submission.  The log is written as Inspect writes it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import statistics
import tempfile
import time
from importlib.metadata import version

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import basic_agent
from inspect_ai.tool import tool


@tool
def python():
    async def execute(code: str) -> str:
        """Run a cell.

        Args:
            code: the cell
        """
        await asyncio.sleep(0)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, {})
        return printed.getvalue()

    return execute


def rate(episodes: int, turns: int, samples: int) -> float:
    """Episodes a second; `samples` are under way at a time."""

    def answer(messages, tools, choice, config) -> ModelOutput:
        said = sum(isinstance(m, ChatMessageAssistant) for m in messages)
        name, arguments = "submit", {"answer": "3"}
        if said < turns - 1:
            name, arguments = "python", {"code": f"x = {said}\nprint(x)"}
        output = ModelOutput.for_tool_call("mockllm/model", name, arguments)
        output.usage = ModelUsage(input_tokens=10, output_tokens=1)  # else it counts with a tokenizer that it downloads
        return output

    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    dataset = [Sample("Count.", target="3", id=i) for i in range(episodes)]
    task = Task(dataset=dataset, solver=basic_agent(tools=[python()]), scorer=includes())
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        begin = time.perf_counter()
        log = eval(task, model=model, log_dir=folder, display="none", max_samples=samples, max_connections=samples)[0]
        spent = time.perf_counter() - begin
        calls = {sum(e.event == "model" for e in s.events) for s in log.samples or []}
    if log.status != "success" or calls != {turns}:
        said = log.error.message if log.error else ""
        raise SystemExit(f"inspect_ai: {log.status}, {calls} model calls an episode and not {turns}; {said}")
    return episodes / spent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    rate(8, options.turns, 8)
    found = {}
    for samples in (1, 10):
        rates = [rate(options.episodes, options.turns, samples) for _ in range(options.times)]
        label = f"inspect_ai {version('inspect_ai')}, in-process tool"
        found[f"{label}, {samples} at a time"] = statistics.median(rates)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
