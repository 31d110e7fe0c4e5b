"""What the study supports, in sentences, with the comparison behind them as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.report.compare.tables import suite_table
from rlm_loop.report.study.estimates import beside_effects
from rlm_loop.report.tables.table import Table
from rlm_loop.study import Results, StudyError
from rlm_loop.study.compare.comparison import Comparison, compare
from rlm_loop.study.compare.contrast import p_value, percent

#: What each policy does with a pair of which one side is missing, in words for the reader.
POLICIES: Mapping[str, str] = {
    "worst": "A missing pair counts in the way that is worst for the arm that is compared with the baseline.",
    "drop": "Missing pairs are dropped: this is fair only if what is missing has nothing to do with the arms.",
    "bounds": "Each interval covers both the best and the worst that the missing pairs could have been.",
}
_MEASURES = {"resolved": "tasks resolved", "input_tokens": "prompt tokens"}

Rows = list[dict[str, Any]]


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
        *beside_effects(compared),
        power_table(compared),
    ]
    policy = POLICIES.get(compared.missing, compared.missing)
    return Findings(compared, tables, policy)


def effects_table(compared: Comparison) -> Table:
    """A row for each arm and measure: the effect, its interval, and the one p that belongs to that interval."""
    rows: Rows = compared.frame().to_dict("records")
    shown = [r for r in rows if _known(r["estimate"]) or r["measure"] in compared.family]
    several = len({r["model"] for r in rows}) > 1
    cells = [
        [
            *([str(r["model"])] if several else []),
            str(r["arm"]),
            _measure(r),
            _figure(r["value"], r),
            _figure(r["baseline_value"], r),
            _effect(r, compared),
            *([_p(r["p_holm"]), _verdict(r)] if compared.family else []),
            f"{r['pairs'] - r['missing']:,} of {r['pairs']:,}",
        ]
        for r in shown
    ]
    share = percent(1 - compared.alpha)
    columns = ["arm", "measure", "arm's", "baseline's", f"effect [{share} CI]", *["p", "shown"] * bool(compared.family)]
    heads = [*(["model"] if several else []), *columns, "pairs"]
    return Table(f"Arms against {compared.baseline}", heads, cells, _effect_notes(shown, compared), 3 if several else 2)


def _verdict(row: Mapping[str, Any]) -> str:
    return "described" if row["p_holm"] != row["p_holm"] else "yes" if row["holds"] else "no"


def _effect_notes(rows: Rows, compared: Comparison) -> list[str]:
    claims = dict.fromkeys(f"{_measure(r)}: {r['claim']}" for r in rows if r["measure"] in compared.family)
    ways: dict[str, list[str]] = {}
    for row in rows:
        ways.setdefault(str(row["method"]), []).append(_measure(row))
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
    rows: Rows = compared.power().to_dict("records")
    claimed = compared.family or tuple(_MEASURES)
    several = len({r["model"] for r in rows}) > 1
    cells = [
        [
            *([str(r["model"])] if several else []),
            str(r["arm"]),
            _measure(r),
            str(r["claim"]),
            str(r["assuming"]),
            f"{100 * r['power_now']:.0f} %" if _known(r["power_now"]) else "-",
            f"{r['needed']:,.0f}" if _known(r["needed"]) else "never",
            f"{r['more_tasks']:,.0f}" if _known(r["more_tasks"]) else "never",
        ]
        for r in rows
        if r["measure"] in claimed
    ]
    heads = [*(["model"] if several else []), "arm", "measure", "claim", "if the truth is", "power now"]
    notes = [
        "Power now: the chance that a new study of this size shows the claim. Needed: pairs for a chance of 80 %, "
        "before Holm's adjustment, which takes somewhat more."
    ]
    return Table("What it would take", [*heads, "pairs needed", "more tasks"], cells, notes, 5 if several else 4)


def _measure(row: Mapping[str, Any]) -> str:
    name = str(row["measure"])
    return _MEASURES.get(name, name.replace("_", " "))


def _known(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == value


def _figure(value: Any, row: Mapping[str, Any]) -> str:
    if not _known(value):
        return "-"
    if row["effect"] == "difference":
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"


def _effect(row: Mapping[str, Any], compared: Comparison) -> str:
    as_rate = row["effect"] == "difference"
    numbers = [row[name] for name in ("estimate", "low", "high")]
    middle, low, high = ("-" if not _known(v) else f"{100 * v:+.1f}" if as_rate else f"{v:.2f}" for v in numbers)
    if "-" in (middle, low, high):  # of few pairs the interval may have no upper end
        return middle if middle == "-" else f"{middle} [not known]".replace("-", "\N{MINUS SIGN}")
    level = "" if math.isclose(row["confidence"], 1 - compared.alpha) else f"; {percent(row['confidence'])}"
    return f"{middle} [{low} to {high}{level}]".replace("-", "\N{MINUS SIGN}")


def _p(value: Any) -> str:
    return p_value(value) if _known(value) else "-"
