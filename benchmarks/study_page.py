"""How long a comparison and a study's page take: 9 arms on 100 tasks, with scripted rows and no model.

    python benchmarks/study_page.py [--arms 9] [--tasks 100] [--repeat 3]

Each figure is the minimum of the repetitions, in seconds of CPU time (one thread does the work); imports are not in it,
and a comparison that was made before may be quicker, so repeat the whole for figures to report (`--repeat 1`). The page
is written without pages of traces.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlm_loop import DirectAgent, Suite, Task
from rlm_loop.models import ScriptedModel
from rlm_loop.study import Study, compare, load_study


def made(folder: Path, arms: int, tasks: int) -> None:
    """A finished study: its rows are those of one scripted episode, with another result and other tokens each."""
    suite = Suite("numbers", [Task(f"t{i}", f"What is {i}?", i) for i in range(tasks)])
    agents: dict[str, Any] = {
        f"arm-{k}": DirectAgent(model=ScriptedModel(["1"] * tasks), system=f"Arm {k}.") for k in range(arms)
    }
    Study("bench", agents, suite).run(folder, progress=False)
    path, draw = folder / "results.jsonl", random.Random(7)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows = [row for row in lines if "arm" in row]
    for row in rows:
        row["resolved"] = draw.random() < 0.3 + 0.05 * int(row["arm"].removeprefix("arm-"))
        row["input_tokens"] = int(800 * draw.lognormvariate(0, 0.4))
        row["output_tokens"] = int(90 * draw.lognormvariate(0, 0.4))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def least(work: Callable[[], Any], repeat: int) -> float:
    times: list[float] = []
    for _ in range(repeat):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=9)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    from rlm_loop.report.study import write_study_page

    with tempfile.TemporaryDirectory() as at:
        small, folder = Path(at) / "small", Path(at) / "study"
        made(small, 2, 10)  # so that what is imported is not measured
        write_study_page(small, Path(at) / "small.html", traces=False)
        made(folder, given.arms, given.tasks)
        results = load_study(folder)
        compared = least(lambda: compare(results, results.arms[0]), given.repeat)
        page = least(lambda: write_study_page(folder, Path(at) / "report.html", traces=False), given.repeat)
    print(f"{given.arms} arms x {given.tasks} tasks: compare {compared:.2f} s, page {page:.2f} s")


if __name__ == "__main__":
    main()
