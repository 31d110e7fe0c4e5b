"""The finding of this study, from its results: tables and sentences into README.md, and a figure.

python experiments/noise_floor/finding.py [--folder runs/noise_floor]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from rlm_loop.report import Table
from rlm_loop.report.figures.style import PAGE, caption, finish, marks, sheet, style
from rlm_loop.study import Results
from rlm_loop.study.compare.contrast import p_value
from rlm_loop.study.statistics import wilson_by_cluster

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.noise_floor.study import PLAN
from experiments.shared import verdicts, write_finding

HERE = Path(__file__).resolve().parent


def finding(results: Results) -> str:
    """Tables and sentences, as Markdown."""
    return "\n\n".join([components(results), twice(results), spans(results)])


def components(results: Results) -> str:
    """The variance of "resolved" by task, wording, run and loop: a mixed model of a 0 or 1 for each episode."""
    from experiments.noise_floor.variance import variance_components  # which needs statsmodels

    found = variance_components(frame(results), outcome="resolved", groups=("task", "wording", "run", "loop"))
    rows = [
        [one.component, one.note, f"{one.variance:.4f}", f"{one.low:.4f} to {one.high:.4f}", f"{100 * one.share:.1f}%"]
        for one in found.itertuples(index=False)
    ]
    columns = ["component", "note", "variance", "95 % interval", "share"]
    table = Table("Variance of resolved (primary)", columns, rows, labels=2).without_same("note")
    of = dict(zip(found["component"], found["variance"], strict=True))
    chance = of.get("wording", 0.0) + of.get("run", 0.0)
    larger = "larger than" if of.get("loop", 0.0) > chance else "not larger than"
    return (
        f"The loop's variance is {larger} that of wording and run together: {of.get('loop', 0.0):.4f} and "
        f"{chance:.4f}. {claims(results)}\n\n{table.to_markdown()}"
    )


def claims(results: Results) -> str:
    """How many of the declared claims are shown: that an arm and the arm of reference differ."""
    declared = [c for c in results.compare(analysis=PLAN).contrasts if c.p_holm is not None]
    shown = sum(c.holds for c in declared) or "none"
    least = min(c.p_holm for c in declared if c.p_holm is not None)
    return (
        f"Of the {len(declared)} declared claims, that an arm and {PLAN.baseline} differ in how many tasks they "
        f"resolve, {shown} {'is' if shown in ('none', 1) else 'are'} shown (the least p after Holm: {p_value(least)})."
    )


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
    return Table("The same arm twice", columns, rows).to_markdown()


def passes(results: Results) -> dict[str, dict[str, list[int]]]:
    """By loop and arm, how many tasks each pass resolved."""
    found = verdicts(results)
    seeds = sorted({seed for _, _, seed in found})
    totals: dict[str, dict[str, list[int]]] = {}
    for arm in results.arms:
        counts = [sum(v for (of, _, s), v in found.items() if (of, s) == (arm, seed)) for seed in seeds]
        totals.setdefault(loop_of(arm), {})[arm] = counts
    return totals


def means_of_wordings(results: Results) -> dict[str, list[float]]:
    """By loop, the mean of each wording's passes."""
    return {loop: [_mean(of) for of in arms.values()] for loop, arms in passes(results).items()}


def apart(results: Results) -> str:
    """How far apart the means of loops and of the wordings of one loop lie."""
    each = means_of_wordings(results)
    means = [_mean(of) for of in each.values()]
    widest = max(max(of) - min(of) for of in each.values())
    tasks = len({task for _, task, _ in verdicts(results)})
    return (
        f"of {tasks} tasks the means of the loops lie {max(means) - min(means):.1f} apart, the wordings of one loop up "
        f"to {widest:.1f}."
    )


def spans(results: Results) -> str:
    """What each loop resolves in a pass, in its mean and in its least and best wording."""
    rows = [
        [loop, f"{_mean(of):.1f}", f"{min(of):.1f}", f"{max(of):.1f}"]
        for loop, of in means_of_wordings(results).items()
    ]
    table = Table("Tasks resolved in a pass", ["loop", "mean", "least wording", "best wording"], rows)
    return f"In a pass, {apart(results)}\n\n{table.to_markdown()}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def figure(results: Results) -> Figure:
    """A line for each wording from one pass to the other, in tasks resolved; the mean of each loop behind its own."""
    totals = passes(results)
    drawn = marks(list(totals))
    tasks = len({task for _, task, _ in verdicts(results)})
    with style():
        made = sheet(PAGE, 4.2)
        axes: Any = made.subplots()
        place, ticks = 0.0, dict[str, float]()
        for loop, arms in totals.items():
            mark, mean = drawn[loop], _mean([_mean(of) for of in arms.values()])
            axes.vlines(mean, place - 0.4, place + len(arms) - 0.6, color=mark.colour, alpha=0.35, linewidth=6)
            for arm, of in arms.items():
                axes.plot(of, [place] * len(of), color=mark.colour, marker=mark.marker, linewidth=1.3, zorder=3)
                ticks[arm], place = place, place + 1
            place += 0.6
        axes.set_yticks(list(ticks.values()), list(ticks))
        axes.set_ylim(place - 1, -0.8)
        axes.set_xlim(0, tasks)
        finish(axes, "Tasks resolved in a pass", f"of {tasks} tasks", grid="x")
        caption(made, "A line joins the two passes of a wording, one mark where they resolved as many; the broad line "
                "is the mean of the loop.")  # fmt: skip
    return made


if __name__ == "__main__":
    write_finding(HERE, finding, figure)
