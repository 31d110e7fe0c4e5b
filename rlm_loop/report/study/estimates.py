"""Tables beside the effects: what each estimand says, cost and outcome together, and whether doses were delivered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlm_loop.report.tables.table import Table
from rlm_loop.study.compare.contrast import percent

if TYPE_CHECKING:
    from rlm_loop.study.compare.comparison import Comparison
    from rlm_loop.study.compare.estimands import Estimate


def estimates_table(compared: Comparison) -> Table | None:
    """A row for each arm, quantity and estimand; `None` where nothing is known of what a run takes."""
    found = compared.estimates()
    if not found:
        return None
    rows = [
        [
            e.model,
            e.arm,
            e.quantity,
            e.estimand,
            _amount(e.value, e.quantity),
            _amount(e.baseline_value, e.quantity),
            _ratio(e),
            f"{e.pairs:,} of {e.pairs + e.missing:,}",
        ]
        for e in found
    ]
    heads = [
        "model",
        "arm",
        "of",
        "estimand",
        "arm's",
        "baseline's",
        f"ratio [{percent(1 - compared.alpha)} CI]",
        "pairs",
    ]
    notes = [
        "Three questions: how many times as much on a task (each task counts the same), in all (dear tasks count "
        "more), and for each task that it resolves (what failed is paid for too). Tokens in and out; each pair counts "
        "the same, whatever the suite. Described, not tested."
    ]
    return Table("What the arms take, by estimand", heads, rows, notes, 4).without_same("model")


def joint_table(compared: Comparison) -> Table | None:
    """A row an arm: in how many resamples of the tasks it is cheaper, no worse, and both."""
    found = [c for c in compared.clouds if c.both is not None]
    if not found:
        return None
    rows = [[c.model, c.arm, *(_percent(share) for share in (c.cheaper, c.no_worse, c.both))] for c in found]
    heads = ["model", "arm", "fewer tokens", "resolves no fewer", "both"]
    note = (
        f"Of {found[0].spent.size:,} resamples of the tasks, whole clusters and the same ones for every arm, those in "
        f"which the arm takes fewer tokens (in and out) than {compared.baseline} and resolves at least as many. No p."
    )
    return Table("Cheaper and no worse", heads, rows, [note], 2).without_same("model")


def delivery_table(compared: Comparison) -> Table | None:
    """A row for each injector in which an arm differs from the baseline; `None` where none does."""
    found = compared.deliveries
    if not found:
        return None
    rows = [[d.model, d.arm, d.injector, f"{d.delivered:,} of {d.runs:,}", _percent(d.share)] for d in found]
    heads = ["model", "arm", "injector", "runs with a token of it", "share"]
    note = "A run that ends before an injector speaks is a run without it: the effect is that of both kinds of runs."
    return Table("Doses delivered", heads, rows, [note], 3).without_same("model")


def beside_effects(compared: Comparison) -> Sequence[Table]:
    """All of these that the study has numbers for."""
    made = (estimates_table(compared), joint_table(compared), delivery_table(compared))
    return [table for table in made if table is not None]


def _amount(value: float | None, quantity: str) -> str:
    if value is None:
        return "-"
    return f"${value:.4g}" if quantity == "cost" else f"{value:,.0f}"


def _ratio(e: Estimate) -> str:
    if e.estimate is None:
        return "-"
    if e.low is None:
        return f"{e.estimate:.2f} [not known]"
    return f"{e.estimate:.2f} [{e.low:.2f} to {'no end' if e.high is None else f'{e.high:.2f}'}]"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"
