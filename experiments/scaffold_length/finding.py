"""The finding of this study, from its rows: tables and sentences into README.md, and the figure by turn.

python experiments/scaffold_length/finding.py [--folder runs/scaffold_length]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.report import Table
from rlm_loop.report.figures import marks, style
from rlm_loop.report.figures.style import PERCENT, caption, finish, legend_above, sheet
from rlm_loop.study import Results, StudyError
from rlm_loop.study.statistics import mean, newcombe_interval, paired_table

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import write_finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
BASE = "none"
Row = Mapping[str, Any]
#: A turn and a chain.
Place = tuple[int, int]


@dataclass(frozen=True)
class Bought:
    """What an arm costs and buys at a turn, against the arm without a frame, on the same chains.

    `added` are prompt tokens a call; `valid` and `right` are shares of the chains, `valid_gain` and `right_gain` the
    paired differences, each with Newcombe's interval.
    """

    arm: str
    turn: int
    n: int
    added: float
    valid: float
    right: float
    valid_gain: tuple[float, float, float]
    right_gain: tuple[float, float, float]


def valid(row: Row) -> bool:
    """The first action was a call whose tool and arguments passed the schema (`parcels.NextAction`)."""
    return (row["value"] or 0.0) >= 0.5


def right(row: Row) -> bool:
    return bool(row["resolved"])


def bought(results: Results) -> list[Bought]:
    """Every arm at every turn, on the chains that both it and the arm without a frame finished."""
    at = by_place(results)
    turns = dict.fromkeys(place[0] for rows in at.values() for place in rows)
    found = [
        against(arm, turn, *({p: r for p, r in rows.items() if p[0] == turn} for rows in (mine, at[BASE])))
        for arm, mine in at.items()
        for turn in turns
    ]
    return sorted((b for b in found if b.n), key=lambda b: (results.arms.index(b.arm), b.turn))


def by_place(results: Results) -> dict[str, dict[Place, Row]]:
    """The rows of each arm, by turn and chain."""
    if BASE not in results.arms:
        raise StudyError(f"these results have no arm {BASE!r}, against which all others are held")
    at: dict[str, dict[Place, Row]] = {arm: {} for arm in results.arms}
    for row in results.complete_pairs:
        at[row["arm"]][row["facts"]["turn"], row["facts"]["chain"]] = row
    return at


def against(arm: str, turn: int, mine: Mapping[Place, Row], base: Mapping[Place, Row]) -> Bought:
    """What `mine` costs and buys against `base`, where both were run."""
    both = sorted(mine.keys() & base.keys())
    here, there = [mine[p] for p in both], [base[p] for p in both]
    tokens = [(mean(r["input_tokens"] for r in rows) or 0.0) for rows in (here, there)]
    rates = [mean(map(measure, here)) or 0.0 for measure in (valid, right)]
    gains = [_difference(here, there, measure) for measure in (valid, right)] if both else [(0.0, 0.0, 0.0)] * 2
    return Bought(arm, turn, len(both), tokens[0] - tokens[1], rates[0], rates[1], gains[0], gains[1])


def _difference(
    here: Sequence[Row], there: Sequence[Row], measure: Callable[[Row], bool]
) -> tuple[float, float, float]:
    mine, base = [float(measure(r)) for r in here], [float(measure(r)) for r in there]
    low, high = newcombe_interval(*paired_table(mine, base))
    return (sum(mine) - sum(base)) / len(mine), float(low), float(high)


def overall(results: Results) -> Table:
    """One line an arm, all turns together, and what the words of a frame do beyond its length (against its filler)."""
    at = by_place(results)
    lines: list[list[str]] = []
    for arm, mine in at.items():
        of = against(arm, 0, mine, at[BASE])
        filler = at.get(f"{arm.removesuffix('-x1')}-filler") if arm.endswith("-x1") else None
        gains = ["" if arm == BASE else _gain(of.right_gain)]
        gains += [_gain(against(arm, 0, mine, filler).right_gain) if filler else ""]
        lines.append([arm, f"{of.added:,.0f}", f"{of.valid:.0%}", f"{of.right:.0%}", *gains])
    columns = ["arm", "tokens added", "valid", "right", "right, against none"]
    notes = ["Points with 95 % intervals, which take the pairs of a chain as independent and so are too narrow."]
    return Table("All turns together", [*columns, "right, against its filler"], lines, notes)


def _gain(gain: tuple[float, float, float]) -> str:
    return "{:+.0f} [{:+.0f}, {:+.0f}]".format(*(100 * g for g in gain))


def finding(results: Results) -> str:
    """The table of all turns, and what of the declared claims is shown."""
    claims = [c for c in results.compare().contrasts if c.p_holm is not None]
    shown = {of: sum(c.holds for c in claims if c.measure == of) for of in ("resolved", "input_tokens")}
    arms = len(results.arms) - 1
    said = (
        f"Declared claims that are shown (Holm over {len(claims)}): another share of right actions than {BASE} in "
        f"{shown['resolved']} of {arms} arms, more prompt tokens in {shown['input_tokens']} of {arms}."
    )
    return overall(results).to_markdown() + "\n" + said


def by_turn(results: Results) -> Figure:
    """Valid and right next actions against the arm without a frame, by turn; one column a frame."""
    found = [b for b in bought(results) if b.arm != BASE]
    frames = list(dict.fromkeys(b.arm.rpartition("-")[0] for b in found))
    turns = sorted({b.turn for b in found})
    sizes = list(dict.fromkeys(b.arm.rpartition("-")[2] for b in found))
    drawn = marks(sizes)
    with style():
        made = sheet(max(5.0, 3.1 * len(frames)), 5.4)
        panels: Any = made.subplots(2, len(frames), sharex=True, sharey=True, squeeze=False)
        handles: dict[str, Any] = {}
        for across, frame in enumerate(frames):
            for down, (what, gain_of) in enumerate(GAINS.items()):
                axes = panels[down][across]
                axes.axhline(0, color="#555555", linewidth=0.8)
                for place, size in enumerate(sizes):
                    mine = [b for b in found if b.arm == f"{frame}-{size}"]
                    gains = [gain_of(b) for b in mine]
                    at = [turns.index(b.turn) + 0.12 * (place - (len(sizes) - 1) / 2) for b in mine]
                    bars = [[100 * (g[0] - g[1]) for g in gains], [100 * (g[2] - g[0]) for g in gains]]
                    look = {"color": drawn[size].colour, "marker": drawn[size].marker, "linestyle": drawn[size].line}
                    handles[size] = axes.errorbar(
                        at, [100 * g[0] for g in gains], yerr=bars, capsize=2, linewidth=1.1, label=size, **look
                    )
                finish(axes, f"{frame}: {what}", "turn" if down else "")
                axes.set_xticks(range(len(turns)), [str(t) for t in turns])
                axes.yaxis.set_major_formatter(PERCENT)
        legend_above(made, list(handles.values()))
        caption(made, "Points against no frame, on the same chains; bars are 95 % intervals of the paired difference")
    made.set_label("; ".join(f"{b.arm} at turn {b.turn}: right {_gain(b.right_gain)} points" for b in found))
    return made


GAINS: Mapping[str, Callable[[Bought], tuple[float, float, float]]] = {
    "valid": lambda b: b.valid_gain,
    "right": lambda b: b.right_gain,
}

if __name__ == "__main__":
    write_finding(HERE, finding, by_turn)
