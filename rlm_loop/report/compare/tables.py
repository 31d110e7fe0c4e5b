"""What a comparison found: the difference and its interval first; then what it cost, suite by suite, and which tasks.

Nothing here is a claim: the one p is that of the exact McNemar test, called by its name.
"""

from __future__ import annotations

import math
from dataclasses import replace

from rlm_loop.report.tables.contrasts import figure, measure_name, percent_of, points, with_interval
from rlm_loop.report.tables.table import Table
from rlm_loop.study import Comparison, Contrast
from rlm_loop.study.compare.contrast import about, p_equals, percent
from rlm_loop.study.compare.planning import pairs_to_show
from rlm_loop.study.compare.sentences import differs_by_suite

#: A difference that many would like to be able to see, as a share.
_WORTH = 0.05


def said(compared: Comparison) -> list[str]:
    """For each arm: the difference of the rates with its interval, the pairs that flip, and what it would take."""
    found: list[str] = []
    for contrast in compared.contrasts:
        if contrast.measure == "resolved":
            found += _of_arm(contrast, compared)
    if compared.left_out:
        found.append(f"{compared.left_out:,} pairs are left out, as not every arm was tried on them.")
    return found


def _of_arm(c: Contrast, compared: Comparison) -> list[str]:
    units = f"{c.pairs:,} pairs of task and seed, {c.tasks:,} tasks" if c.pairs != c.tasks else f"{c.tasks:,} tasks"
    of = units + (f" with {c.model}" if c.model else "")
    if c.estimate is None:
        return [f"Of {c.arm} and {c.baseline} no pair has a score ({of})."]
    flips = [f for f in compared.flips if (f.model, f.arm) == (c.model, c.arm)]
    gained = sum(f.gained for f in flips)
    rates = f"{c.arm} resolves {percent_of(c.value)}, {c.baseline} {percent_of(c.baseline_value)}"
    test = "exact McNemar test" + ("" if c.clusters == c.used else f" by {c.clustered_by}")
    p = p_equals(c.p_difference if c.p_difference is not None else 1.0)
    told = [
        f"{rates}: {points(c.estimate)} points ({percent(c.confidence)} interval {points(c.low)} to "
        f"{points(c.high)}), on {of}.",
        f"{c.arm} alone resolves {gained:,}, {c.baseline} alone {len(flips) - gained:,}; {test}: {p}.",
    ]
    if c.missing:
        told.append(f"{c.missing:,} of {c.pairs:,} pairs lack a score; {_MISSING[compared.missing]}.")
    return [*told, _needed(c, compared)]


_MISSING = {
    "worst": "each counts against the arm",
    "drop": "they are left out, which is fair only if they are missing by chance",
    "bounds": "the interval covers the worst and the best that they could be",
}


def _needed(c: Contrast, compared: Comparison) -> str:
    seeds = max(1, round(c.pairs / max(c.tasks, 1)))
    worth = pairs_to_show(c, _WORTH, alpha=compared.alpha)
    each = f" with {seeds} seeds each" if seeds > 1 else ""
    wanted = "no number of tasks" if worth is None else f"about {about(math.ceil(worth / seeds))} tasks{each}"
    plan = next((p for p in compared.plans if (p.model, p.arm, p.measure) == (c.model, c.arm, c.measure)), None)
    if plan is None or not c.estimate:
        like = ""
    elif plan.needed is None:
        like = "; one like this, on no number of tasks"
    else:
        more = f", {about(plan.more_tasks)} more than here" if plan.more_tasks else ", no more than here"
        like = f"; one like this, on about {about(math.ceil(plan.needed / seeds))}{more}"
    return f"A new study shows a difference of 5 points with a chance of 80 % on {wanted}{like}."


def measure_table(compared: Comparison, *, rates: bool = True) -> Table:
    """A row for each arm and measure that is known: means, and the difference or ratio with its interval."""
    told = [c for c in compared.contrasts if rates or c.measure != "resolved"]
    shown = [c for c in told if c.estimate is not None]
    rows = [
        [
            c.model,
            c.arm,
            measure_name(c.measure),
            figure(c, c.value),
            figure(c, c.baseline_value),
            with_interval(c),
            f"{c.pairs - c.missing:,}",
        ]
        for c in shown
    ]
    share = percent(1 - compared.alpha)
    heads = ["model", "arm", "measure", "arm's", "baseline's", f"effect [{share} CI]", "pairs"]
    unknown = [n for n in dict.fromkeys(c.measure for c in told) if n not in {c.measure for c in shown}]
    notes = [
        "Rates differ in points of 100. "
        * rates
        + "An effect on tokens, cost, time or steps is how many times as much the arm uses, "
        f"{' or '.join(sorted({c.estimand for c in shown if c.effect == 'ratio'})) or 'not known here'}."
    ]
    notes.append(compared.noise)
    if unknown:
        notes.append(f"Not known for enough pairs: {', '.join(map(measure_name, unknown))}.")
    return Table(f"Against {compared.baseline}", heads, rows, notes, 3).without_same("model")


def suite_table(compared: Comparison) -> Table | None:
    """A row for each arm and suite; `None` where there is one suite."""
    effects = compared.suites
    if len({e.suite for e in effects}) < 2:
        return None
    rows = [
        [
            e.model,
            e.arm,
            e.suite or "(none)",
            f"{e.pairs - e.missing:,}",
            percent_of(e.rate),
            percent_of(e.baseline_rate),
            with_interval(e),
            f"{e.gained:,}",
            f"{e.lost:,}",
        ]
        for e in effects
    ]
    share = percent(1 - compared.alpha)
    heads = ["model", "arm", "suite", "pairs", "arm's", "baseline's", f"difference [{share} CI]", "gained", "lost"]
    notes = [*interaction_notes(compared), "Intervals are not adjusted for the number of suites.", compared.noise]
    return Table("By suite", heads, rows, notes, 3).without_same("model")


def interaction_notes(compared: Comparison) -> list[str]:
    """Of each arm whether its difference depends on the suite; nothing where there is one."""
    return [f"{i.arm} {differs_by_suite(i)}" for i in compared.interactions]


def flip_table(compared: Comparison, most: int = 20) -> Table | None:
    """The pairs that just one of two arms resolved, `most` of them; `None` where there are none."""
    if not compared.flips:
        return None
    rows = [[f.arm, "gained" if f.gained else "lost", f.suite, f.task, str(f.seed)] for f in compared.flips]
    heads = ["arm", f"against {compared.baseline}", "suite", "task", "seed"]
    whole = Table("Tasks that flip", heads, rows, labels=len(heads)).without_same("suite", "seed")
    return replace(whole, rows=whole.rows[:most], notes=[f"and {len(rows) - most:,} more"] if len(rows) > most else [])
