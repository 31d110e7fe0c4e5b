"""Draws the figures of docs/reports.md from the committed results.

python docs/figures/draw.py            # all of them, into docs/figures/
python docs/figures/draw.py rates      # one
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlm_loop.report import figures
from rlm_loop.report.figures.overhead import mean_session
from rlm_loop.study import Results, load_study

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def study(name: str) -> Results:
    return load_study(ROOT / "experiments" / name / "results")


DRAWN: dict[str, Callable[[], Any]] = {
    "rates": lambda: figures.resolve_rates(study("lean_vs_react")),
    "pareto": lambda: figures.resolve_against_tokens(study("lean_vs_react")),
    "causes": lambda: figures.stacked_causes(study("lean_vs_react")),
    "differences": lambda: figures.paired_differences(study("lean_vs_react"), baseline="react-text"),
    "overhead": lambda: figures.overhead_by_turn(
        mean_session(study("lean_vs_react").only("lean", "react-text"), tasks=12)
    ),
}


def main(names: list[str]) -> int:
    for name in names or list(DRAWN):
        for path in figures.save(DRAWN[name](), HERE / f"{name}.png"):
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
