"""smolagents' CodeAgent on tasks of the comparison: same model, same limits, same scorer.

    pip install smolagents==1.26.0
    python experiments/peers/smolagents_code_agent.py

smolagents keeps its own prompts, loop and Python interpreter; only the model behind it is ours, so every token is
counted by the same llama.cpp.  Each task appends a line to the results, and a second run goes on where the first
stopped.  The suite `function-repair` is left out: its `check()` lives in our REPL.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from smolagents import ChatMessage, CodeAgent, MessageRole, TokenUsage  # type: ignore[import-not-found]
from smolagents import Model as SmolagentsModel
from smolagents.monitoring import LogLevel  # type: ignore[import-not-found]

from rlm_loop.messages import Prompt, say
from rlm_loop.models import LocalModel
from rlm_loop.tasks import Attempt, Task

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import suite_named


class Ours(SmolagentsModel):
    """smolagents' view of a model of ours; `spent` sums what was asked of it."""

    def __init__(self, model: LocalModel, max_tokens: int) -> None:
        super().__init__(model_id=model.name, flatten_messages_as_text=True)
        self._model, self._max_tokens = model, max_tokens
        self.spent = {"calls": 0, "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "first_input_tokens": 0}

    def generate(self, messages: Any, stop_sequences: list[str] | None = None, **rest: Any) -> ChatMessage:
        body = self._prepare_completion_kwargs(messages=messages, stop_sequences=stop_sequences, **rest)
        said = tuple(say(m["role"], m["content"], "task") for m in body["messages"])
        reply = self._model.complete(Prompt(said, stop=tuple(body.get("stop", ()))), max_tokens=self._max_tokens)
        usage = reply.usage
        assert usage is not None
        assert usage.input_tokens is not None
        assert usage.output_tokens is not None
        self.spent["first_input_tokens"] = self.spent["first_input_tokens"] or usage.input_tokens
        self.spent["calls"] += 1
        self.spent["input_tokens"] += usage.input_tokens
        self.spent["output_tokens"] += usage.output_tokens
        self.spent["cached_tokens"] += usage.cached_tokens or 0
        counted = TokenUsage(usage.input_tokens, usage.output_tokens)
        return ChatMessage(role=MessageRole.ASSISTANT, content=reply.text, token_usage=counted)


def attempt(task: Task, model: LocalModel, steps: int, max_tokens: int) -> dict[str, Any]:
    """One task; the current folder holds its files."""
    ours = Ours(model, max_tokens)
    agent = CodeAgent(
        tools=[], model=ours, max_steps=steps, additional_authorized_imports=["*"], verbosity_level=LogLevel.OFF
    )
    start = time.perf_counter()
    result = agent.run(task.question, return_full_result=True)
    answered = result.state == "success"  # without an answer in time, smolagents asks once more, outside the limit
    score = task.score(Attempt(answer=result.output, answered=answered))
    return {
        "task": task.id,
        "resolved": score.resolved,
        "reason": score.reason,
        "answered": answered,
        "answer": repr(result.output)[:300],
        **ours.spent,
        "seconds": round(time.perf_counter() - start, 1),
    }


def one_folder(tasks: Sequence[Task], folder: Path) -> None:
    """The files of all tasks in one folder: smolagents' interpreter works in the current one, which threads share."""
    for task in tasks:
        for name, content in task.files.items():
            data = content.encode() if isinstance(content, str) else content
            path = folder / name
            if path.exists() and path.read_bytes() != data:
                raise ValueError(f"tasks have different files called {name}; run them one at a time with --slots 1")
            path.write_bytes(data)


def main() -> None:
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=here / "smolagents.jsonl", help="where the lines are appended")
    parser.add_argument("--suites", default="computation,tables", help="computation, tables, or both")
    parser.add_argument("--tasks", type=int, default=12, help="of the test split of each suite, the first so many")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=400)
    parser.add_argument("--slots", type=int, default=4, help="tasks side by side")
    options = parser.parse_args()
    out = options.out.resolve()
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    seen = {row["task"] for row in done}
    model = LocalModel(context_size=16384, slots=options.slots)
    todo = [
        (suite, task)
        for suite in options.suites.split(",")
        for task in suite_named(suite, "test").tasks[: options.tasks]
        if task.id not in seen
    ]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.slots) as pool, out.open("a") as file:
        one_folder([task for _, task in todo], Path(folder))
        os.chdir(folder)
        jobs = {pool.submit(attempt, task, model, options.steps, options.max_tokens): suite for suite, task in todo}
        for job in as_completed(jobs):
            row = {"suite": jobs[job], **job.result()}
            done.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            said = "resolved" if row["resolved"] else f"not resolved: {row['reason']}"
            print(row["task"], said, f"{row['seconds']} s", file=sys.stderr)
        os.chdir(out.parent)
    for suite in options.suites.split(","):
        rows = [r for r in done if r["suite"] == suite]
        mean = {k: round(sum(r[k] for r in rows) / len(rows)) for k in ("input_tokens", "output_tokens", "seconds")}
        print(f"{suite}: {sum(r['resolved'] for r in rows)} of {len(rows)} resolved; a task: {mean}")


if __name__ == "__main__":
    main()
