"""A comparison as one HTML page: the differences, what they cost, and every task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rlm_loop.report.compare.tables import interaction_notes, measure_table, said
from rlm_loop.report.run.judged import state
from rlm_loop.report.run.sealed import sealed
from rlm_loop.report.study.episodes import LEGEND, EpisodeCell, Episodes, TaskRow, task_name
from rlm_loop.report.tables.contrasts import percent_of, with_interval
from rlm_loop.study import Comparison
from rlm_loop.study.compare.contrast import percent
from rlm_loop.study.compare.pair_keys import by_episode, complete_and_incomplete, is_resolved

_DOT = " \N{MIDDLE DOT} "


class IntervalBar(NamedTuple):
    """A difference with its interval, in words and from 0 to 100 along an axis; `zero` is where there is none."""

    label: str
    pairs: str
    rates: str
    words: str
    apart: str
    low: float | None
    middle: float
    high: float
    zero: float
    whole: bool


def compare_page(compared: Comparison, notes: Sequence[str] = (), *, title: str = "") -> str:
    """The page of a comparison, complete in itself: it asks the network for nothing.

    `notes` are those of how results were read (`load_sources`).  Whatever a model or a tool wrote is shown as text.
    """
    arms = list(dict.fromkeys([compared.baseline, *(c.arm for c in compared.contrasts)]))
    groups = _tasks(compared, arms)
    models = {unit[0] for unit in complete_and_incomplete(compared.rows)[0]}
    apart = sum(task.apart for tasks in groups.values() for task in tasks)
    heads = ["Differences", "Tokens and cost", "Tasks", "Methods"]
    idents = {"Tokens and cost": "use", "Tasks": "episodes"}
    return sealed(
        "compare/page.html",
        "study/study.css",
        "compare/compare.css",
        "study/study.js",
        title=title or f"{' and '.join(arms[1:])} against {arms[0]}",
        contents=[(idents.get(head, head.lower()), head) for head in heads],
        said=said(compared),
        notes=list(notes),
        bars=_bars(compared),
        tests=interaction_notes(compared),
        level=percent(1 - compared.alpha),
        measures=measure_table(compared, rates=False),
        arms=arms,
        episodes=Episodes(arms, list(groups.items()), f"{LEGEND}.", f"{apart:,} where arms differ"),
        models=", ".join(sorted(m for m in models if m)),
        methods=compared.methods,
    )


def _bars(compared: Comparison) -> list[IntervalBar]:
    """Each arm suite by suite, then over all of them, along one axis."""
    suites = compared.suites if len({e.suite for e in compared.suites}) > 1 else []
    rates = [contrast for contrast in compared.contrasts if contrast.measure == "resolved"]
    ends = [v for of in (*rates, *suites) for v in (of.low, of.high, 0.0) if v is not None]
    first, last = (min(ends) - 0.02, max(ends) + 0.02) if ends else (-1.0, 1.0)

    def at(value: float) -> float:
        return round(100 * (value - first) / (last - first), 2)

    def bar(label: str, pairs: int, of: Any, gained: int, lost: int, whole: bool) -> IntervalBar:
        rate, there = (of.value, of.baseline_value) if whole else (of.rate, of.baseline_rate)
        both = f"{percent_of(rate)} : {percent_of(there)}"
        if of.estimate is None or of.low is None or of.high is None:
            return IntervalBar(label, f"{pairs:,}", both, "not known", "", None, 0, 0, at(0), whole)
        words = with_interval(of)
        gains = f"+{gained:,} \N{MINUS SIGN}{lost:,}"
        return IntervalBar(
            label, f"{pairs:,}", both, words, gains, at(of.low), at(of.estimate), at(of.high), at(0), whole
        )

    models = len({c.model for c in compared.contrasts}) > 1
    bars: list[IntervalBar] = []
    for contrast in rates:
        flips = [f.gained for f in compared.flips if (f.model, f.arm) == (contrast.model, contrast.arm)]
        label = contrast.arm + (f", {contrast.model}" if models else "")
        for e in suites:
            if (e.model, e.arm) == (contrast.model, contrast.arm):
                bars.append(
                    bar(f"{label} on {e.suite or '(no suite)'}", e.pairs - e.missing, e, e.gained, e.lost, False)
                )
        label += ", pooled by pairs" if contrast.shares else ""
        bars.append(bar(label, contrast.pairs - contrast.missing, contrast, sum(flips), len(flips) - sum(flips), True))
    return bars


def _tasks(compared: Comparison, arms: Sequence[str]) -> dict[str, list[TaskRow]]:
    """The tasks by suite, arm by arm."""
    rows, (units, _) = by_episode(compared.rows), complete_and_incomplete(compared.rows)
    models, seeds = ({u[i] for u in units} for i in (0, 3))
    groups: dict[str, list[TaskRow]] = {}
    for unit in units:
        of = [rows.get((arm, unit)) for arm in arms]
        cells = [EpisodeCell(state(row), ", ".join(_figures(row or {}))) for row in of]
        group = _DOT.join(part for part in (unit[0] if len(models) > 1 else "", unit[1]) if part)
        apart = len({is_resolved(row) for row in of}) > 1
        groups.setdefault(group, []).append(TaskRow(task_name(unit, len(seeds) > 1), apart, cells))
    return groups


def _figures(row: Mapping[str, Any]) -> Iterator[str]:
    for name, word in (
        ("input_tokens", "tokens in"),
        ("output_tokens", "tokens out"),
        ("tokens", "tokens"),
        ("steps", "steps" if row.get("steps") != 1 else "step"),
    ):
        if row.get(name) is not None:
            yield f"{row[name]:,} {word}"
    if row.get("seconds") is not None:
        yield f"{row['seconds']:.1f} s"
    if row.get("cost"):
        yield f"${row['cost']:.4f}"
    if row.get("error"):
        yield str(row["error"])
