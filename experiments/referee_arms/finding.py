"""The finding of this study, from its results: tables into README.md, and a figure; others' rows are in FOLDER/peers.

python experiments/referee_arms/finding.py [--folder runs/referee_arms]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from rlm_loop.report import Table, resolve_rates
from rlm_loop.study import Analysis, Results, load_study, statistics
from rlm_loop.study.compare.contrast import Contrast

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.referee_arms.study import pairs
from experiments.shared import episode_of, in_points, in_times, verdicts, write_finding

HERE = Path(__file__).resolve().parent
#: Each other framework's loop, and the one of ours that acts in the same way.
OTHERS = (("smolagents-code", "code"), ("smolagents-tools", "lean"))
#: The changes of the rules that end a run.
LOOSE, STRICT = "[repeated=none]", "[malformed=1]"


def finding(results: Results) -> str:
    """Tables, as Markdown."""
    every = joined(results)
    there = [pair for pair in OTHERS if set(pair) <= set(every.arms)]
    return "\n\n".join(
        [
            changes(every, [*pairs(results.arms), *there]),
            ended(results),
        ]
    )


def joined(results: Results) -> Results:
    """The rows of our arms and, where they were run, those of the other frameworks."""
    folder = Path(results.folder) / "peers"
    if not (folder / "study.json").is_file():
        return results
    return replace(results, rows=[*results.rows, *load_study(folder).rows])


def changes(results: Results, compared: Sequence[tuple[str, str]]) -> str:
    """What is shown, and one row for each declared pair: what the change did to tasks resolved and prompt tokens."""
    found = [contrasts(results, arm, base) for arm, base in compared]
    adjusted = statistics.holm([resolved.p for resolved, _ in found])
    rows = [[of.arm, of.baseline, in_points(of), in_times(tokens)] for of, tokens in found]
    columns = ["arm", "against", "points resolved (95 %)", "times the tokens (95 %)"]
    shown = [
        f"{of.arm} and {of.baseline}" for (of, _), p in zip(found, adjusted, strict=True) if p is not None and p < 0.05
    ]
    least = min(p for p in adjusted if p is not None)
    said = (
        f"Of the {len(found)} declared claims, that two arms resolve differently many tasks, "
        f"{len(shown) or 'none'} {'is' if len(shown) < 2 else 'are'} shown{': ' if shown else ''}{', '.join(shown)} "
        f"(McNemar's exact test, least p after Holm: {least:.2f})."
    )
    return said + "\n\n" + Table("What each change did", columns, rows, labels=2).to_markdown()


def ended(results: Results) -> str:
    """The runs that a rule ended, and what the same loop resolves of the same tasks where the rule is more lenient."""
    rows: list[list[str]] = []
    found = verdicts(results)
    for stop, change, more in (("repeated", "", LOOSE), ("malformed", STRICT, "")):
        for loop in loops_of(results):
            arm, lenient = loop + change, loop + more
            over = [episode_of(row)[1:] for row in results.rows if (row["arm"], row["stop"]) == (arm, stop)]
            resolved = [sum(found.get((of, *task), False) for task in over) for of in (arm, lenient)]
            rows.append([arm, *map(str, (len(over), *resolved))])
    columns = ["arm", "ended runs", "resolved", "resolved by a milder rule"]
    return Table("Runs ended by `repeated`, and by `malformed` where it is 1", columns, rows).to_markdown()


def loops_of(results: Results) -> list[str]:
    """The loops of which there is an arm under each rule."""
    return [arm for arm in results.arms if {arm + LOOSE, arm + STRICT} <= set(results.arms)]


def contrasts(results: Results, arm: str, base: str) -> tuple[Contrast, Contrast]:
    """An arm against one other, in tasks resolved and prompt tokens; the family is adjusted over all pairs later."""
    plan = Analysis(baseline=base, family=(), missing="worst")
    by_measure = {c.measure: c for c in results.only(base, arm).compare(analysis=plan).contrasts}
    return by_measure["resolved"], by_measure["input_tokens"]


def figure(results: Results) -> Figure:
    """What each arm resolved, those of other frameworks too."""
    return resolve_rates(joined(results))


if __name__ == "__main__":
    write_finding(HERE, finding, figure)
