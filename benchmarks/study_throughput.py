"""How many episodes a study runs in a second, the model excluded: what the harness, and not the model, is able to do.

    python benchmarks/study_throughput.py [--episodes 200] [--turns 5] [--times 3] [--only in-process,dask]
                                          [--inspect PYTHON] [--json FILE]

A scripted model answers at once.  An episode is `--turns` turns of the code loop, each a trivial cell, with budget,
ledger and a trace on disk; its row is written by the study as always.  Starting the workers is not in the figures:
each executor runs a few episodes first.  Each figure is the median of `--times` studies.  What is measured:

- `in-process` cells (RestrictedPython in the worker itself): one after the other, in threads and in processes;
- `subprocess` cells (a process of its own for each episode's REPL, `plain`, started anew or forked from a zygote);
- `dask`: one worker process of a Dask cluster on this machine, and two, with subprocess cells and in-process ones;
- `inspect`: the same episodes as an Inspect task with its own mock model (`mockllm`), a tool call a turn, where
  `--inspect` names the Python of an environment with `inspect_ai` (it pins other versions, so it has its own).

Measure on a quiet machine: a busy neighbour halves these figures.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget, Suite, Task, ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Outcome
from rlm_loop.repl.host.zygote import Zygote
from rlm_loop.study import Study, executor_of
from rlm_loop.tasks.base import Attempt, Score

INSPECT = Path(__file__).with_name("study_throughput_inspect.py")


@dataclass(frozen=True)
class Scripted:
    """A code loop with a script of its own for each episode."""

    agent: ToolLoopAgent
    turns: int

    def settings(self) -> dict[str, Any]:
        return {**self.agent.settings(), "turns": self.turns}

    def attempt(self, task: Task, *, trace: Any = None) -> Outcome:
        cells = [f"```python\nx = {i}\nprint(x)\n```" for i in range(self.turns - 1)]
        model = ScriptedModel([*cells, "```python\nfinal_answer = x\n```"])
        return replace(self.agent, model=model).attempt(task, trace=trace)


def score(attempt: Attempt) -> Score:
    return Score(attempt.answer is not None, 1.0)


def study(episodes: int, turns: int, repl: Any) -> Study:
    agent = ToolLoopAgent(model="local", repl=repl, budget=Budget(steps=None))
    tasks = tuple(Task(f"t{i}", "Count.", score) for i in range(episodes))
    return Study("throughput", {"code": Scripted(agent, turns)}, Suite("count", tasks))


def rate(episodes: int, turns: int, repl: Any, executor: Executor | None, jobs: int | None, folder: Path) -> float:
    """Episodes a second of one study."""
    begin = time.perf_counter()
    found = study(episodes, turns, repl).run(folder, False, executor=executor, jobs=jobs)
    spent = time.perf_counter() - begin
    if len(found) != episodes or found.crashed or {r["steps"] for r in found.rows} != {turns}:
        raise SystemExit(f"{len(found)} of {episodes} episodes: {[r['error'] for r in found.crashed][:1]}")
    return episodes / spent


@contextlib.contextmanager
def place(where: str | None) -> Generator[Executor | None]:
    if where is None:
        yield None
        return
    with executor_of(where) as executor:
        yield executor


def measure(where: str | None, repl: Any, options: argparse.Namespace) -> float:
    """The median of several studies on one executor, after a short one that is not counted."""
    rates: list[float] = []
    with tempfile.TemporaryDirectory() as folder, place(where) as executor:
        for number in range(options.times + 1):
            count = options.episodes if number else 8
            rates.append(rate(count, options.turns, repl, executor, None, Path(folder) / str(number)))
    return statistics.median(rates[1:])


def inspect_rates(options: argparse.Namespace) -> dict[str, float]:
    given = ["--episodes", str(options.episodes), "--turns", str(options.turns), "--times", str(options.times)]
    done = subprocess.run([options.inspect, str(INSPECT), *given], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"inspect_ai failed: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--episodes", type=int, default=200, help="of each study (default 200)")
    parser.add_argument("--turns", type=int, default=5, help="of each episode (default 5)")
    parser.add_argument("--times", type=int, default=3, help="studies of each kind (default 3)")
    parser.add_argument("--only", default="", help="in-process, subprocess, dask, inspect; separated by commas")
    parser.add_argument("--inspect", help="the Python of an environment with inspect_ai")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    wanted = {word for word in options.only.split(",") if word}
    rates: dict[str, float] = {}

    def note(kind: str, name: str, of: Callable[[], float]) -> None:
        if not wanted or kind in wanted:
            rates[name] = of()
            print(f"{name:<48}{rates[name]:>8.1f} episodes/s", flush=True)

    print(f"{options.episodes} episodes of {options.turns} turns, median of {options.times}; {os.cpu_count()} cores")
    kinds = {"in-process": ("restricted", (None, "threads:2", "processes:2"))}
    kinds["subprocess"] = ("plain", (None, "threads:2", "threads:4", "processes:2"))
    for kind, (repl, places) in kinds.items():
        for where in places:
            label = f"{kind} cells, {where or 'one after the other'}"
            note(kind, label, lambda w=where, r=repl: measure(w, r, options))
    if not wanted or "subprocess" in wanted:
        with Zygote() as zygote:
            note("subprocess", "forked cells, threads:2", lambda: measure("threads:2", zygote.repl, options))
    for name, repl in (("subprocess", "plain"), ("in-process", "restricted")):
        for workers in (1, 2):
            label = f"Dask, {name} cells, {workers} worker process{'es' if workers > 1 else ''}"
            note("dask", label, lambda w=workers, r=repl: measure(f"dask:{w}", r, options))
        one, two = (rates.get(f"Dask, {name} cells, {k}") for k in ("1 worker process", "2 worker processes"))
        if one and two:
            print(f"{f'Dask, {name} cells, from one to two':<48}{two / one:>8.2f} x")
    if options.inspect and (not wanted or "inspect" in wanted):
        for name, value in inspect_rates(options).items():
            note("inspect", name, lambda v=value: v)
    if options.json:
        figures = {"python": sys.version.split()[0], "cores": os.cpu_count(), "episodes_per_second": rates}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
