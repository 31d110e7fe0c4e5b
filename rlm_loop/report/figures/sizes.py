"""What the arms of a study resolve, and what they spend, by the size of the context: a table and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.labels import write_at_ends
from rlm_loop.report.figures.style import caption, finish, marks, matplotlib_or_say, percent_axis, sheet, style
from rlm_loop.report.tables.study_tables import count, decimal, provenance_line, rate
from rlm_loop.report.tables.table import Table
from rlm_loop.study import Results, StudyError
from rlm_loop.study.compare.pairs import rate_of
from rlm_loop.study.statistics import mean, total
from rlm_loop.tasks.long_context.plan import size_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class SizePoint:
    """One arm at one size of context, over the tasks that every arm was tried on.

    `n` counts those with a verdict, `low` and `high` are the 95 % interval of the rate (see `pairs.rate_of`).  Tokens
    (in and out together), calls and seconds are means a task, sub-calls included; `None` where one is not known.
    """

    arm: str
    size: int
    n: int
    resolved: int
    low: float
    high: float
    tokens: float | None
    calls: float | None
    seconds: float | None

    @property
    def rate(self) -> float:
        return self.resolved / self.n


def by_size(results: Results) -> list[SizePoint]:
    """Arms in their order, sizes ascending.  Raises `StudyError` where no row says how large its context was."""
    rows = [r for r in results.complete_pairs if r.get("facts", {}).get("size")]
    if not rows:
        raise StudyError("no finished task of this study says how large its context was; use suites of long contexts")
    points: list[SizePoint] = []
    for arm in results.arms:
        for size in sorted({r["facts"]["size"] for r in rows}):
            mine = [r for r in rows if r["arm"] == arm and r["facts"]["size"] == size]
            resolved, n, low, high = rate_of(mine)
            if n:
                tokens = [total((r["input_tokens"], r["output_tokens"])) for r in mine]
                spent = (mean(tokens), mean(r["calls"] for r in mine), mean(r["seconds"] for r in mine))
                points.append(SizePoint(arm, size, n, resolved, low, high, *spent))
    return points


def size_table(results: Results) -> Table:
    """One row a size and arm."""
    points = sorted(by_size(results), key=lambda p: (p.size, results.arms.index(p.arm)))
    rows = [
        [
            size_name(p.size),
            p.arm,
            str(p.n),
            str(p.resolved),
            rate(p.rate, p.low, p.high),
            count(p.tokens),
            decimal(p.calls),
            decimal(p.seconds),
        ]
        for p in points
    ]
    columns = ["size", "arm", "n", "resolved", "rate [95 % CI]", "tokens", "calls", "seconds"]
    notes = [
        "Size: characters of the context. Tokens (in and out), calls and seconds are means a task, sub-calls included.",
        provenance_line(results),
    ]
    return Table(f"By size of context: {results.name}", columns, rows, notes, labels=2)


def size_figure(results: Results) -> Figure:
    """Two panels over the size of the context: the rate of resolved tasks, and tokens a task."""
    matplotlib_or_say()
    from matplotlib.ticker import LogFormatter

    points = by_size(results)
    arms = list(dict.fromkeys(p.arm for p in points))
    drawn = marks(arms)
    with style():
        made = sheet(9.0, 3.6)
        left, right = made.subplots(1, 2)
        for index, arm in enumerate(arms):
            mine = [p for p in points if p.arm == arm]
            # arms that agree lie on each other: each is moved aside a little
            sizes = [p.size * 1.05 ** (index - 1) for p in mine]
            look = {**drawn[arm].look, "label": arm}
            rates = [100 * p.rate for p in mine]
            bars = [[100 * (p.rate - p.low) for p in mine], [100 * (p.high - p.rate) for p in mine]]
            left.errorbar(sizes, rates, yerr=bars, capsize=3, linewidth=1.2, **look)
            known = [(size, p.tokens) for size, p in zip(sizes, mine, strict=True) if p.tokens]
            right.plot([size for size, _ in known], [tokens for _, tokens in known], linewidth=1.2, **look)
        _finish(left, "a   Tasks resolved", sorted({p.size for p in points}))
        left.set_ylim(-3, 103)
        percent_axis(left.yaxis)
        _finish(right, "b   Tokens a task, in + out", sorted({p.size for p in points}))
        right.set_yscale("log")
        right.yaxis.set_major_formatter("{x:,.0f}")
        right.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.0, 0.4)))  # labels between decades where few
        caption(made, f"{results.provenance['model']}; bars are 95 % Wilson intervals")
        last = {p.arm: p.tokens for p in points if p.tokens}
        write_at_ends(made, right, [(arm, drawn[arm].colour, tokens) for arm, tokens in last.items()])
    made.set_label(_told(points))
    return made


def _finish(axes: Any, title: str, sizes: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(list(sizes), [size_name(s) for s in sizes])
    axes.set_xticks([], minor=True)
    finish(axes, title, "characters of context (log scale)")


def _told(points: Sequence[SizePoint]) -> str:
    lines = [
        f"{p.arm} at {size_name(p.size)}: {p.resolved} of {p.n}, "
        f"{'unknown' if p.tokens is None else f'{p.tokens:,.0f}'} tokens a task"
        for p in points
    ]
    return f"Tasks resolved and tokens a task, by the size of the context in characters. {'; '.join(lines)}."
