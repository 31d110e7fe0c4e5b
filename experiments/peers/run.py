"""Every framework on the same tasks with our local model, through the meter: what it resolves and what it spends.

    python experiments/peers/run.py --model local --tasks 6 [--jobs 4] [--peers rlms]

One row a framework and task is added to `results/tasks.jsonl`; a second run goes on where the first stopped.  Each has
its own prompts and loop, `--steps` model calls, replies of `--max-tokens` tokens at temperature 0.  Those that
call functions get one tool, `python` for computations; for bugs all get a shell in the checkout.  All frameworks meet a
task before the next one starts; with `--jobs` several of them share the machine (tokens stay what they are, but for
what batching may change in a text; seconds then are those of a shared machine).
"""

from __future__ import annotations

import argparse
import ast
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import Any

from build import CACHE, python_of
from contenders import HERE, Contender, chosen
from driving import drive
from records import append, rows_of
from tables import tasks_table

from rlm_loop.meter import metered_endpoint
from rlm_loop.models import LocalModel, Model, get_model
from rlm_loop.report import write_between
from rlm_loop.tasks import Attempt, Task
from rlm_loop.workspace import Workspace

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import suite_named

RESULTS = HERE / "results" / "tasks.jsonl"

#: How an answer reaches us from a loop that has nothing but a shell.
BY_SHELL = "\n\nSubmit with `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo ANSWER`, the answer in its place."
LIMIT = 1800.0
"""Seconds for one task, before its driver is ended."""


def job_of(one: Contender, task: Task, url: str, options: argparse.Namespace) -> dict[str, Any]:
    """The job of one task: the question is the same for all."""
    repairs = task.workspace is not None
    by_shell = one.name.startswith("mini_") and not repairs
    return {
        "url": url,
        "key": f"key-{one.name}",
        "model": "metered",
        "task": task.question + (BY_SHELL if by_shell else ""),
        "observation": "",
        "tool": "shell" if repairs else "python",
        "steps": options.steps,
        "max_tokens": options.max_tokens,
        "temperature": 0.0,
        "seed": 0,
        "small": True,
    }


def attempt(one: Contender, task: Task, model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """One task by one framework, scored."""
    began = time.perf_counter()
    with metered_endpoint(model) as url, tempfile.TemporaryDirectory(prefix="peer-task-") as made:
        space = task.workspace() if task.workspace is not None else None
        folder = Path(made) if space is None else space.root
        try:
            done = drive(one, job_of(one, task, url, options), options.cache, folder, LIMIT)
            artifact = space.diff() if isinstance(space, Workspace) else None
        except RuntimeError as error:
            done, artifact = {"answer": None, "error": str(error)}, None
        finally:
            if space is not None:
                space.close()
        spent = url.meter.times()
    score = task.score(Attempt(value_of(done.get("answer")), artifact, answered=done.get("answer") is not None))
    return {
        "resolved": score.resolved,
        "reason": score.reason[:200],
        "answered": done.get("answer") is not None,
        "answer": str(done.get("answer"))[:200],
        "error": done.get("error"),
        "calls": len(spent),
        "input_tokens": int(spent["input_tokens"].fillna(0).sum()),
        "output_tokens": int(spent["output_tokens"].fillna(0).sum()),
        "seconds": round(time.perf_counter() - began, 1),
    }


def value_of(answer: Any) -> Any:
    """The answer as a value where its text is a plain literal: every driver sends text."""
    try:
        return ast.literal_eval(answer.strip()) if isinstance(answer, str) else answer
    except (ValueError, SyntaxError):
        return answer.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="local")
    parser.add_argument("--suites", default="computation", help="computation, humaneval-repair, or both with a comma")
    parser.add_argument("--tasks", type=int, default=6, help="the first so many of the test split of each suite")
    parser.add_argument("--peers", default="", help="names, separated by commas (default: all)")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1, help="frameworks at a time, each with a slot of a local model")
    parser.add_argument("--window", type=int, default=16384, help="of a local model and each job, in tokens")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the environments")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    local = options.model.split(":")[0] == "local"
    name = options.model.removeprefix("local:") or "local"
    model = LocalModel(name, context_size=options.window, slots=options.jobs) if local else get_model(options.model)
    done = {(row["suite"], row["task"], row["peer"]) for row in rows_of(options.out)}
    waiting = [
        (suite, task, one)
        for suite in options.suites.split(",")
        for task in suite_named(suite, "test").tasks[: options.tasks]
        for one in chosen(options.peers)
        if (suite, task.id, one.name) not in done
    ]
    for one in chosen(options.peers):
        if not one.ours:
            with suppress(RuntimeError):  # said in each of its rows
                python_of(one, options.cache)  # made here, so that no two make the same one

    def finish(suite: str, task: Task, one: Contender) -> None:
        row = attempt(one, task, model, options)
        with writing:
            append(options.out, {"peer": one.name, "suite": suite, "task": task.id, "model": model.name, **row})
            print(f"{task.id} {one.name}: {row['reason']} ({row['seconds']} s)", file=sys.stderr)

    writing = threading.Lock()
    with ThreadPoolExecutor(options.jobs) as pool:
        running = [pool.submit(finish, *each) for each in waiting]
        try:
            for ended in as_completed(running):
                ended.result()
        finally:  # Ctrl-C, or a fault of ours: what runs is kept, the rest is left to the next run
            pool.shutdown(cancel_futures=True)
    table = tasks_table(rows_of(options.out))
    if options.out == RESULTS:
        write_between(HERE / "tables.md", "tasks", table)
    print(table)


if __name__ == "__main__":
    main()
