"""A comparison in words and tables: effects with their intervals, suite by suite, and tasks that flip."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rlm_loop.report.tables.table import Table
from rlm_loop.study import Comparison, Contrast
from rlm_loop.study.compare.contrast import p_value, percent
from rlm_loop.study.compare.suites import SuiteEffect

_NAMES = {"resolved": "tasks resolved", "input_tokens": "prompt tokens"}


def percent_of(value: float | None) -> str:
    """A share in percent; a dash where it is not known."""
    return "-" if value is None else f"{100 * value:.1f} %"


def points(value: float | None) -> str:
    """A difference of shares in points of 100, with its sign."""
    return "-" if value is None else f"{100 * value:+.1f}".replace("-", "\N{MINUS SIGN}")


def with_interval(of: Contrast | SuiteEffect, usual: float, brackets: str = "[]") -> str:
    """A difference in points, or a ratio, with its interval (of few pairs it may have no end); a dash if not known.

    `usual` is the level that is said where it stands; another one is said behind the interval.
    """
    if of.estimate is None:
        return "-"
    confidence = of.confidence if isinstance(of, Contrast) else usual
    level = "" if math.isclose(confidence, usual) else f"; {percent(confidence)}"
    say = points if isinstance(of, SuiteEffect) or of.effect == "difference" else "{:.2f}".format
    ends = "no interval" if of.low is None or of.high is None else f"{say(of.low)} to {say(of.high)}{level}"
    return f"{say(of.estimate)} {brackets[0]}{ends}{brackets[1]}"


def levels(intervals: Iterable[tuple[str, str, float]]) -> str:
    """Say the level of intervals, given as arm, measure and level, and of which it is another one."""
    known = {f"{arm} in {measure.replace('_', ' ')}": level for arm, measure, level in intervals}
    least = min(known.values(), default=0.95)
    wider = [f"{name}: {percent(level)}" for name, level in known.items() if level > least]
    return f"{percent(least)} intervals" + (f" ({', '.join(wider)})" if wider else "")


def effect_table(compared: Comparison) -> Table:
    """A row for each arm and measure: means, the effect with its interval, and p where a claim was declared."""
    shown = [c for c in compared.contrasts if c.estimate is not None or c.measure in compared.family]
    usual = 1 - compared.alpha
    rows = [
        [
            c.model,
            c.arm,
            measure_name(c.measure),
            _mean(c, c.value),
            _mean(c, c.baseline_value),
            with_interval(c, usual),
            *([p_value(c.p_holm) if c.p_holm is not None else "-", _verdict(c, compared)] if compared.family else []),
            f"{c.pairs - c.missing:,} of {c.pairs:,}",
        ]
        for c in shown
    ]
    heads = ["model", "arm", "measure", "arm's", "baseline's", f"effect [{percent(usual)} CI]"]
    heads += [*(["p", "shown"] if compared.family else []), "pairs"]
    notes = _effect_notes(shown, compared)
    return Table(f"Arms against {compared.baseline}", heads, rows, notes, 3).without_same("model")


def measure_name(name: str) -> str:
    """The name of a column of rows for a reader."""
    return _NAMES.get(name, name.replace("_", " "))


def _mean(contrast: Contrast, value: float | None) -> str:
    if value is None or contrast.effect == "difference":
        return percent_of(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"


def _verdict(c: Contrast, compared: Comparison) -> str:
    if c.p_holm is None:
        return "described"
    return "not judged" if compared.exploratory else "yes" if c.holds else "no"


def _effect_notes(shown: Sequence[Contrast], compared: Comparison) -> list[str]:
    claims = dict.fromkeys(f"{measure_name(c.measure)}: {c.claim}" for c in shown if c.measure in compared.family)
    judged = (
        f"p belongs to the claim ({'; '.join(claims)}), adjusted after Holm over all of them, and the interval has the "
        "level at which Holm's procedure judged it, named where it is another than the head's. Described: no claim, so "
        "no p and a plain interval. A dash is not known."
    )
    unknown = [n for n in dict.fromkeys(c.measure for c in compared.contrasts) if n not in {c.measure for c in shown}]
    return [
        judged + (" Not judged: the comparison is exploratory." if compared.exploratory else "")
        if claims
        else "Nothing was declared, so no claim is judged and no p is given; intervals are plain ones.",
        f"Rates differ in points of 100, all else by the ratio of the arm to {compared.baseline}.",
        *([f"Not known for enough pairs: {', '.join(map(measure_name, unknown))}."] if unknown else []),
    ]


def comparison_html(compared: Comparison) -> str:
    """A comparison in a notebook: its sentences, and the effects as a table."""
    said = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in compared.sentences())
    return said + effect_table(compared).to_html()


def suite_effects(compared: Comparison) -> Table | None:
    """A row for each arm and suite; `None` where there is one suite."""
    effects, usual = compared.suites, 1 - compared.alpha
    if len({e.suite for e in effects}) < 2:
        return None
    rows: list[list[str]] = []
    for e in effects:
        figures = [
            percent_of(e.rate),
            percent_of(e.baseline_rate),
            with_interval(e, usual),
            f"{e.gained:,}",
            f"{e.lost:,}",
        ]
        rows.append([e.model, e.arm, e.suite or "(none)", f"{e.pairs - e.missing:,}", *figures])
    difference = f"difference [{percent(usual)} CI]"
    heads = ["model", "arm", "suite", "pairs", "arm's", "baseline's", difference, "gained", "lost"]
    notes = ["Intervals are not adjusted for the number of suites."]
    return Table("By suite", heads, rows, notes, 3).without_same("model")


def flip_table(compared: Comparison, most: int = 20) -> Table | None:
    """The pairs that just one of two arms resolved, `most` of them; `None` where there are none."""
    if not compared.flips:
        return None
    rows = [[f.arm, "gained" if f.gained else "lost", f.suite, f.task, str(f.seed)] for f in compared.flips]
    heads = ["arm", f"against {compared.baseline}", "suite", "task", "seed"]
    whole = Table("Tasks that flip", heads, rows, labels=len(heads)).without_same("suite", "seed")
    return replace(whole, rows=whole.rows[:most], notes=[f"and {len(rows) - most:,} more"] if len(rows) > most else [])
