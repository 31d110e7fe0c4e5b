"""Four ways to end the line about a data frame, in three loops at equal effort; see README.md.

python experiments/context_line/study.py FOLDER [--model local] [--tasks 8] goes on where an earlier call stopped, and
prints the table.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import LOOPS, first_tasks
from rlm_loop import Budget
from rlm_loop.study import Study
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.traces import read

ENDINGS = {
    "head": ". Read it with code, such as context.head()",
    "copy": ". The first line of code is df = context.copy()",
    "none": "",
    "each": ". Start each block of code with df = context.copy()",
}


def study(ending: str = "each", model: Any = "local", tasks: int = 8) -> Study:
    """The three loops on the first dev tasks of both table suites."""
    same: dict[str, Any] = {"model": model, "budget": Budget(steps=8), "max_tokens": 500}
    suites = first_tasks({"frames": tasks, "tables": tasks}, "dev")
    arms = {name: loop(**same) for name, loop in LOOPS.items()}
    return Study(f"context_line-{ending}", arms, suites)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare endings of the line about a data frame.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="local")
    parser.add_argument("--tasks", type=int, default=8, help="of each suite")
    options = parser.parse_args()
    print("| ending | loop | resolved | NameError | KeyError |\n|---|---|--:|--:|--:|")
    for ending, text in ENDINGS.items():
        with patch("rlm_loop.repl.contexts.frame.START", text):
            results = study(ending, options.model, options.tasks).run(options.folder / ending, False)
        for arm in results.arms:
            rows = [row for row in results.rows if row["arm"] == arm]
            texts = [str(read(options.folder / ending / row["trace"]).of("turn")) for row in rows]
            errors = [sum(f"{error}: " in text for text in texts) for error in ("NameError", "KeyError")]
            resolved = sum(bool(is_resolved(row)) for row in rows)
            print(f"| {ending} | {arm} | {resolved} of {len(rows)} | {errors[0]} | {errors[1]} |")


if __name__ == "__main__":
    main()
