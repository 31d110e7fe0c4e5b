"""The finding of this study, from its rows: tables and sentences into README.md, and the figure by turn.

python experiments/scaffold_length/finding.py [--folder runs/scaffold_length]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.style import caption, finish, legend_above, marks, percent_axis, sheet, style
from rlm_loop.report.tables.table import Table
from rlm_loop.study import Results, StudyError
from rlm_loop.study.statistics import mean, newcombe_interval, paired_table

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import write_finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
BASE = "none"
Row = Mapping[str, Any]


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

    def per_hundred(self, gain: float) -> float | None:
        """Points (of 100) that 100 more tokens bought; `None` where an arm adds none."""
        return 100 * gain / (self.added / 100) if self.added > 0 else None


def valid(row: Row) -> bool:
    """The first action was a call whose tool and arguments passed the schema (`parcels.NextAction`)."""
    return (row["value"] or 0.0) >= 0.5


def right(row: Row) -> bool:
    return bool(row["resolved"])


def bought(results: Results) -> list[Bought]:
    """Every arm at every turn, on the chains that both it and the arm without a frame finished."""
    if BASE not in results.arms:
        raise StudyError(f"these results have no arm {BASE!r}, against which all others are held")
    at: dict[tuple[str, int], dict[int, Row]] = {}
    for row in results.complete_pairs:
        at.setdefault((row["arm"], row["facts"]["turn"]), {})[row["facts"]["chain"]] = row
    found: list[Bought] = []
    for (arm, turn), mine in at.items():
        base = at.get((BASE, turn), {})
        both = sorted(mine.keys() & base.keys())
        here, there = [mine[c] for c in both], [base[c] for c in both]
        if both:
            tokens = [(mean(r["input_tokens"] for r in rows) or 0.0) for rows in (here, there)]
            gains = [_difference(here, there, measure) for measure in (valid, right)]
            rates = [sum(map(measure, here)) / len(both) for measure in (valid, right)]
            found.append(Bought(arm, turn, len(both), tokens[0] - tokens[1], rates[0], rates[1], gains[0], gains[1]))
    return sorted(found, key=lambda b: (results.arms.index(b.arm), b.turn))


def _difference(
    here: Sequence[Row], there: Sequence[Row], measure: Callable[[Row], bool]
) -> tuple[float, float, float]:
    mine, base = [float(measure(r)) for r in here], [float(measure(r)) for r in there]
    low, high = newcombe_interval(*paired_table(mine, base))
    return (sum(mine) - sum(base)) / len(mine), float(low), float(high)


def table(found: Sequence[Bought]) -> Table:
    """One line an arm and turn."""
    lines = [
        [
            b.arm,
            str(b.turn),
            f"{b.added:,.0f}",
            f"{b.valid:.0%}",
            f"{b.right:.0%}",
            "" if b.arm == BASE else _gain(b.right_gain),
            _rate(b.per_hundred(b.valid_gain[0])),
            _rate(b.per_hundred(b.right_gain[0])),
        ]
        for b in found
    ]
    columns = ["arm", "turn", "tokens added", "valid", "right", "right, against none [95 %]"]
    columns += ["valid / 100 tokens", "right / 100 tokens"]
    n = max((b.n for b in found), default=0)
    notes = [f"{n} chains a line. The last two columns: points that 100 more prompt tokens came with."]
    return Table("What a frame costs and buys at the next action", columns, lines, notes, labels=2)


def _gain(gain: tuple[float, float, float]) -> str:
    return "{:+.0f} [{:+.0f}, {:+.0f}]".format(*(100 * g for g in gain))


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f}"


def finding(results: Results) -> str:
    """What was declared, as sentences, and the table by turn."""
    said = "\n".join(f"- {sentence}" for sentence in results.compare().sentences())
    return "\n\n".join([said, table(bought(results)).to_markdown()])


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
                percent_axis(axes.yaxis)
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
