"""What the study supports, in sentences, with the comparison behind them as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlm_loop.report.compare.tables import suite_table
from rlm_loop.report.tables.contrasts import NAMES, figure, measure_name, with_interval
from rlm_loop.report.tables.table import Table
from rlm_loop.study import Contrast, Results, StudyError
from rlm_loop.study.compare.comparison import Comparison, compare
from rlm_loop.study.compare.contrast import p_value, percent

#: What each policy does with a pair of which one side is missing, in words for the reader.
POLICIES: Mapping[str, str] = {
    "worst": "A missing pair counts in the way that is worst for the arm that is compared with the baseline.",
    "drop": "Missing pairs are dropped: this is fair only if what is missing has nothing to do with the arms.",
    "bounds": "Each interval covers both the best and the worst that the missing pairs could have been.",
}


@dataclass(frozen=True)
class Findings:
    """A comparison, its tables, and `policy`: in words what becomes of missing pairs."""

    compared: Comparison
    tables: Sequence[Table]
    policy: str


def findings_of(results: Results, baseline: str) -> Findings:
    """Compare every other arm with the baseline.  Raises `StudyError` where this cannot be computed."""
    if len(results.arms) < 2:
        raise StudyError("There is one arm, so there is nothing to compare it with.")
    compared = compare(results, baseline)
    suites = suite_table(compared)
    tables = [
        *([suites] if suites else []),
        effects_table(compared),
        power_table(compared),
    ]
    policy = POLICIES.get(compared.missing, compared.missing)
    return Findings(compared, tables, policy)


def effects_table(compared: Comparison) -> Table:
    """A row for each arm and measure: the effect, its interval, and the one p that belongs to that interval."""
    shown = [c for c in compared.contrasts if c.estimate is not None or c.measure in compared.family]
    cells = [
        [
            c.model,
            c.arm,
            measure_name(c.measure),
            figure(c, c.value),
            figure(c, c.baseline_value),
            with_interval(c, level=_level(c, compared)),
            *([_p(c), _verdict(c)] if compared.family else []),
            f"{c.pairs - c.missing:,} of {c.pairs:,}",
        ]
        for c in shown
    ]
    share = percent(1 - compared.alpha)
    heads = ["model", "arm", "measure", "arm's", "baseline's", f"effect [{share} CI]"]
    heads += [*(["p", "shown"] if compared.family else []), "pairs"]
    title, notes = f"Arms against {compared.baseline}", _effect_notes(shown, compared)
    return Table(title, heads, cells, notes, 3).without_same("model")


def _level(c: Contrast, compared: Comparison) -> str:
    return "" if math.isclose(c.confidence, 1 - compared.alpha) else f"; {percent(c.confidence)}"


def _p(c: Contrast) -> str:
    return "-" if c.p_holm is None else p_value(c.p_holm)


def _verdict(c: Contrast) -> str:
    return "described" if c.p_holm is None else "yes" if c.holds else "no"


def _effect_notes(rows: Sequence[Contrast], compared: Comparison) -> list[str]:
    claims = dict.fromkeys(f"{measure_name(c.measure)}: {c.claim}" for c in rows if c.measure in compared.family)
    ways: dict[str, list[str]] = {}
    for c in rows:
        ways.setdefault(c.method, []).append(measure_name(c.measure))
    methods = "; ".join(f"{', '.join(dict.fromkeys(of))}: {method}" for method, of in ways.items())
    judged = (
        f"p belongs to the claim ({'; '.join(claims)}), adjusted after Holm over all of them, and the interval has the "
        "level at which Holm's procedure judged it, named where it is another than the head's. Described: no claim, so "
        "no p and a plain interval. A dash is not known."
    )
    return [
        judged
        if claims
        else "Nothing was declared, so no claim is judged and no p is given; intervals are plain ones.",
        f"Rates differ in points of 100, all else by the ratio of the arm to {compared.baseline}. {methods}.",
    ]


def power_table(compared: Comparison) -> Table:
    """A row for each claim and what the truth may be: the power of a study of this size, and the pairs needed."""
    cells = [
        [
            plan.model,
            plan.arm,
            measure_name(plan.measure),
            plan.claim,
            plan.assuming,
            f"{100 * plan.power_now:.0f} %",
            *("never" if n is None else f"{n:,}" for n in (plan.needed, plan.more_tasks)),
        ]
        for plan in compared.plans
        if plan.measure in (compared.family or NAMES)
    ]
    heads = ["model", "arm", "measure", "claim", "if the truth is", "power now", "pairs needed", "more tasks"]
    notes = [
        "Power now: the chance that a new study of this size shows the claim. Needed: pairs for a chance of 80 %, "
        "before Holm's adjustment, which takes somewhat more."
    ]
    return Table("What it would take", heads, cells, notes, 5).without_same("model")
