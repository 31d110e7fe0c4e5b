"""The finding of this study, from its results: tables and sentences into README.md, and a figure.

python experiments/noise_floor/finding.py [--folder runs/noise_floor]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from rlm_loop.report import Table, arm_table, resolve_rates
from rlm_loop.study import Results
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.study.statistics import wilson_by_cluster

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import write_finding

HERE = Path(__file__).resolve().parent
Verdicts = dict[tuple[str, str, int], bool]


def finding(results: Results) -> str:
    """Tables and sentences, as Markdown."""
    return "\n\n".join(
        [
            components(results),
            twice(results),
            spans(results),
            arm_table(results).to_markdown(),
            "![Tasks resolved by loop and wording, with intervals](figures/finding.png)",
        ]
    )


def components(results: Results) -> str:
    """The variance of "resolved" by task, wording, run and loop: a mixed model of a 0 or 1 for each episode."""
    from rlm_loop.study.statistics.variance import variance_components  # which needs statsmodels

    found = variance_components(frame(results), outcome="resolved", groups=("task", "wording", "run", "loop"))
    columns = [str(c) for c in found.columns]
    rows = [[_cell(value) for value in row] for row in found.itertuples(index=False)]
    notes = ["A wording is one of its loop, a run one pass of a wording; what is left over is of single episodes."]
    return Table("Variance of resolved (primary)", columns, rows, notes).to_markdown()


def frame(results: Results) -> Any:
    """One row an episode that has a verdict, with what it belongs to; a wording is named with its loop."""
    import pandas as pd

    return pd.DataFrame(
        {
            "task": [f"{suite_task}" for _, suite_task, _ in verdicts(results)],
            "loop": [loop_of(arm) for arm, _, _ in verdicts(results)],
            "wording": [arm for arm, _, _ in verdicts(results)],
            "run": [f"{arm}/{seed}" for arm, _, seed in verdicts(results)],
            "resolved": [float(verdict) for verdict in verdicts(results).values()],
        }
    )


def verdicts(results: Results) -> Verdicts:
    """By arm, task (with its suite) and seed: whether it was resolved, where that is known."""
    known = ((row, is_resolved(row)) for row in results.rows)
    return {(r["arm"], f"{r['suite']}/{r['task']}", r["seed"]): v for r, v in known if v is not None}


def loop_of(arm: str) -> str:
    return arm.rpartition("-w")[0]


def rerun_pairs(results: Results) -> list[tuple[tuple[str, str, int], bool, bool]]:
    """Arm, task and seed of each first run, its verdict, and that of the same arm and task run again."""
    found = verdicts(results)
    first, *others = sorted({seed for _, _, seed in found})
    return [
        (key, found[key], found[key[0], key[1], other])
        for key in found
        for other in others
        if key[2] == first and (key[0], key[1], other) in found
    ]


def twice(results: Results) -> str:
    """The noise floor: how often the same arm ends otherwise on the same task when it is run again."""
    found, pairs = verdicts(results), rerun_pairs(results)
    rows: list[list[str]] = []
    for loop in dict.fromkeys(loop_of(arm) for arm, _, _ in found):
        mine = [(key[1], a != b) for key, a, b in pairs if loop_of(key[0]) == loop]
        low, high = wilson_by_cluster([float(d) for _, d in mine], [task for task, _ in mine])
        moved = sum(d for _, d in mine)
        totals = [
            abs(sum(a - b for key, a, b in pairs if key[0] == arm)) for arm in results.arms if loop_of(arm) == loop
        ]
        rows.append(
            [loop, f"{moved} of {len(mine)}", f"{100 * low:.0f}-{100 * high:.0f}%", f"{max(totals, default=0)}"]
        )
    columns = ["loop", "ends otherwise", "95 % CI", "most that an arm's total moved"]
    notes = ["The same arm, task and settings, run twice; at temperature 0 only batching can make a difference."]
    return Table("The same arm twice", columns, rows, notes).to_markdown()


def spans(results: Results) -> str:
    """How far apart the totals of runs, wordings and loops lie, in tasks of one pass."""
    found = verdicts(results)
    totals: dict[str, dict[str, dict[int, int]]] = {}
    for (arm, _, seed), verdict in found.items():
        by_seed = totals.setdefault(loop_of(arm), {}).setdefault(arm, {})
        by_seed[seed] = by_seed.get(seed, 0) + verdict
    rows: list[list[str]] = []
    means: dict[str, float] = {}
    for loop, arms in totals.items():
        each = {arm: sum(seeds.values()) / len(seeds) for arm, seeds in arms.items()}
        means[loop] = sum(each.values()) / len(each)
        rows.append([loop, f"{means[loop]:.1f}", f"{min(each.values()):.1f}", f"{max(each.values()):.1f}"])
    apart = max(means.values()) - min(means.values())
    widest = max(float(high) - float(low) for _, _, low, high in rows)
    said = f"The loops' means lie {apart:.1f} tasks apart, the wordings of one loop up to {widest:.1f}."
    table = Table("Tasks resolved in a pass", ["loop", "mean", "least wording", "best wording"], rows)
    return f"{said}\n\n{table.to_markdown()}"


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def figure(results: Results) -> Figure:
    """What each loop resolved in each wording, both runs together."""
    return resolve_rates(results)


if __name__ == "__main__":
    write_finding(HERE, finding, figure)
