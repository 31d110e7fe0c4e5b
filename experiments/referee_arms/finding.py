"""The finding of this study, from its results: tables into README.md, and a figure; others' rows are in FOLDER/peers.

python experiments/referee_arms/finding.py [--folder runs/referee_arms]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from rlm_loop.report import Table, arm_table, resolve_rates
from rlm_loop.study import Analysis, Results, load_study, statistics
from rlm_loop.study.compare.contrast import Contrast

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.referee_arms.study import NEUTRAL, pairs
from experiments.shared import episode_of, verdicts, write_finding

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
            order(results),
            ended(results),
            neutral(results),
            arm_table(every, "direct").to_markdown(),
            "![Tasks resolved by each arm, with intervals](figures/finding.png)",
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
    rows = [
        [
            resolved.arm,
            resolved.baseline,
            str(resolved.pairs),
            _difference(resolved),
            "" if p is None else f"{p:.3f}",
            _ratio(tokens),
        ]
        for (resolved, tokens), p in zip(found, adjusted, strict=True)
    ]
    columns = ["arm", "against", "n", "points resolved", "p Holm", "prompt tokens, ratio"]
    notes = [
        f"Points with 95 % intervals, p by McNemar's exact test after Holm over the {len(found)} pairs; tokens are "
        "described (geometric mean of the pairs' ratios) and not claimed. Missing pairs: worst case."
    ]
    shown = [
        f"{of.arm} and {of.baseline}" for (of, _), p in zip(found, adjusted, strict=True) if p is not None and p < 0.05
    ]
    said = (
        f"Of the {len(found)} declared claims, that two arms resolve differently many tasks, "
        f"{len(shown) or 'none'} {'is' if len(shown) < 2 else 'are'} shown{': ' if shown else ''}{', '.join(shown)}."
    )
    return said + "\n\n" + Table("What each change did", columns, rows, notes, 2).to_markdown()


def order(results: Results) -> str:
    """What the loops resolve under each rule, as one sentence; described and not claimed."""
    found, loops = verdicts(results), loops_of(results)
    totals = {
        c: [sum(v for (arm, *_), v in found.items() if arm == loop + c) for loop in loops] for c in ("", LOOSE, STRICT)
    }
    each = "; ".join(f"{change or 'as they are'} {', '.join(map(str, of))}" for change, of in totals.items())
    return f"Tasks resolved by {', '.join(loops)}: {each} (described, not claimed)."


def ended(results: Results) -> str:
    """The runs that a rule ended, and what the same loop resolves of the same tasks where the rule is more lenient."""
    rows: list[list[str]] = []
    found = verdicts(results)
    for stop, change, more in (("repeated", "", LOOSE), ("malformed", STRICT, "")):
        for loop in loops_of(results):
            arm, lenient = loop + change, loop + more
            over = [episode_of(row)[1:] for row in results.rows if (row["arm"], row["stop"]) == (arm, stop)]
            resolved = [sum(found.get((of, *task), False) for task in over) for of in (arm, lenient)]
            rows.append([arm, stop, *map(str, (len(over), *resolved))])
    columns = ["arm", "stop", "runs", "resolved", "resolved where the rule is more lenient"]
    notes = ["More lenient: [repeated=none] for the stop `repeated`, the loop as it is for [malformed=1]."]
    return Table("The runs that a rule ended", columns, rows, notes, 2).to_markdown()


def loops_of(results: Results) -> list[str]:
    """The loops of which there is an arm under each rule."""
    return [arm for arm in results.arms if {arm + LOOSE, arm + STRICT} <= set(results.arms)]


def contrasts(results: Results, arm: str, base: str) -> tuple[Contrast, Contrast]:
    """An arm against one other, in tasks resolved and prompt tokens; the family is adjusted over all pairs later."""
    plan = Analysis(baseline=base, family=(), missing="worst")
    by_measure = {c.measure: c for c in results.only(base, arm).compare(analysis=plan).contrasts}
    return by_measure["resolved"], by_measure["input_tokens"]


def neutral(results: Results) -> str:
    """What the neutral messages were, by the ledger: tokens of each in a run."""
    lines: list[str] = []
    for name, text in NEUTRAL.items():
        rows = [row for row in results.rows if row["arm"] == f"lean[says={name}]" and row["by_cause"]]
        said = [row["by_cause"].get(f"scaffold:says_{name}", 0) for row in rows]
        mean = statistics.mean([float(n) for n in said])
        tokens = "no run" if mean is None else f"{mean:.1f} tokens a run, {max(said)} at most"
        lines.append(f"- `{name}` says {text!r} after every turn: {tokens}.")
    return "\n".join(lines)


def _difference(c: Contrast) -> str:
    if c.estimate is None or c.low is None or c.high is None:
        return "not known"
    return f"{100 * c.estimate:+.0f} ({100 * c.low:.0f} to {100 * c.high:.0f})"


def _ratio(c: Contrast) -> str:
    if c.estimate is None or c.low is None or c.high is None:
        return "not known"
    return f"{c.estimate:.2f} ({c.low:.2f} to {c.high:.2f})"


def figure(results: Results) -> Figure:
    """What each arm resolved, those of other frameworks too."""
    return resolve_rates(joined(results))


if __name__ == "__main__":
    write_finding(HERE, finding, figure)
