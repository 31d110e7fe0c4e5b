"""How many episodes a study runs in a second, the model excluded: what the harness, and not the model, is able to do.

    python benchmarks/study_throughput.py [--episodes 200] [--turns 5] [--times 3] [--only in-process]

A scripted model answers at once.  An episode is `--turns` turns of the code loop, each a trivial cell, with budget,
ledger and a trace on disk; its row is written by the study as always.  Each figure is the median of `--times` studies,
with cells in this process (RestrictedPython) or in a process of its own for each episode, one episode after the other
or several in threads.  Measure on a quiet machine: a busy neighbour halves these figures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget, Suite, Task, ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Outcome
from rlm_loop.study import Study
from rlm_loop.tasks.base import Attempt, Score


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


def rate(episodes: int, turns: int, repl: str, jobs: int, folder: Path) -> float:
    """Episodes a second of one study."""
    begin = time.perf_counter()
    found = study(episodes, turns, repl).run(folder, False, jobs=jobs)
    spent = time.perf_counter() - begin
    if len(found) != episodes or found.crashed or {r["steps"] for r in found.rows} != {turns}:
        raise SystemExit(f"{len(found)} of {episodes} episodes: {[r['error'] for r in found.crashed][:1]}")
    return episodes / spent


def measure(jobs: int, repl: str, options: argparse.Namespace) -> float:
    """The median of several studies, after a short one that is not counted."""
    rates: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.times + 1):
            count = options.episodes if number else 8
            rates.append(rate(count, options.turns, repl, jobs, Path(folder) / str(number)))
    return statistics.median(rates[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--episodes", type=int, default=200, help="of each study (default 200)")
    parser.add_argument("--turns", type=int, default=5, help="of each episode (default 5)")
    parser.add_argument("--times", type=int, default=3, help="studies of each kind (default 3)")
    parser.add_argument("--only", default="", choices=["", "in-process", "subprocess"], help="one kind of cells")
    options = parser.parse_args()
    print(f"{options.episodes} episodes of {options.turns} turns, median of {options.times}; {os.cpu_count()} cores")
    for kind, repl in (("in-process", "restricted"), ("subprocess", "plain")):
        for jobs in (1, 2, 4):
            if options.only in ("", kind):
                found = measure(jobs, repl, options)
                print(f"{f'{kind} cells, {jobs} at a time':<48}{found:>8.1f} episodes/s", flush=True)


if __name__ == "__main__":
    main()
