"""Reading a study while it runs: an interval after every task that stays honest however often one looks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rlm_loop.study.compare.contrast import MEASURES
from rlm_loop.study.compare.pair_keys import PairKey, complete_and_incomplete, pair_key
from rlm_loop.study.compare.pairs import POLICIES, Paired, Policy
from rlm_loop.study.errors import StudyError
from rlm_loop.study.frames import frame_of
from rlm_loop.study.plan.analysis import Analysis, read
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("model", "arm", "baseline", "measure", "tasks", "task", "estimate", "low", "high", "decision")


def sequential(
    results: Results,
    arm: str,
    baseline: str | None = None,
    *,
    measure: str = "resolved",
    margin: float | None = None,
    missing: Policy | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """One row after each task, in the order of running: the estimate, its always-valid interval, and the decision.

    Baseline, `margin` and `missing` are as the study declared them (`Analysis`), where they are not given.  A study may
    be stopped at the first row whose `decision` is not "go on", and the interval of that row reported; an ordinary
    interval looked at after every task would be wrong far more often than 1 in 20.  The price is width.  An
    observation is one task, the mean over its seeds; it counts once both arms were tried on every seed that any task
    has: what is under way is not there yet.  For "resolved" the estimate is the difference of the rates
    (`bounded_sequence`), else the geometric mean ratio (`symmetric_sequence`: no bound before the 7th task, and exact
    where log-ratios are symmetric, as those of two arms that are alike).  Missing pairs follow `missing` ("worst" or
    "drop"; for ratios only "drop", as the worst ratio is not known before the end).  Tasks count as independent and are
    taken to come in an order that has nothing to do with how they turn out.  Raises `StudyError` for an unknown arm,
    measure or policy, and for a measure of which a task has 0.
    """
    plan = read(results.lock) or Analysis()
    margin = plan.margin if margin is None else margin
    missing = missing or ("drop" if plan.missing == "drop" else "worst")
    base = baseline or results.baseline
    for name in (arm, base):
        if name not in results.arms:
            raise StudyError(f"there is no arm {name!r}; there are {', '.join(results.arms)}")
    if measure not in MEASURES:
        raise StudyError(f"there is no measure {measure!r}; there are {', '.join(MEASURES)}")
    if missing not in POLICIES or missing == "bounds":
        raise StudyError("a sequence knows the policies 'worst' and 'drop' for missing pairs; use one of them")
    rows = [r for m in results.models for r in _of_model(results, m, arm, base, measure, margin, missing, alpha)]
    return frame_of(rows, COLUMNS)


def _of_model(
    results: Results, model: str, arm: str, base: str, measure: str, margin: float, missing: Policy, alpha: float
) -> Iterable[dict[str, Any]]:
    from rlm_loop.study.statistics import bounded_sequence, symmetric_sequence

    tasks = _tasks(results, model, arm, base)
    units = [u for of in tasks.values() for u in of]
    pairs = Paired(results.rows, units, "task").pairs(arm, base, measure)
    value = dict(zip(units, (_one(h, t, measure, missing) for h, t in zip(pairs.here, pairs.there)), strict=True))
    seen = {t: [v for u in of if (v := value[u]) is not None] for t, of in tasks.items()}
    kept = [(t, sum(vs) / len(vs)) for t, vs in seen.items() if vs]
    values = [v for _, v in kept]
    if not values:
        return
    rate = measure == "resolved"
    low, high = bounded_sequence(values, alpha) if rate else symmetric_sequence(values, alpha)
    total, best = 0.0, (-math.inf, math.inf)
    for n, ((task, v), lo, hi) in enumerate(zip(kept, low.tolist(), high.tolist(), strict=True), 1):
        total += v
        best = (max(best[0], lo), min(best[1], hi))
        yield {
            "model": model,
            "arm": arm,
            "baseline": base,
            "measure": measure,
            "tasks": n,
            "task": task[1],
            "estimate": _shown(total / n, rate),
            "low": _shown(best[0], rate) if best[0] > -math.inf else None,
            "high": _shown(best[1], rate) if best[1] < math.inf else None,
            "decision": _decision(*best, rate=rate, margin=margin),
        }


def _shown(value: float, rate: bool) -> float:
    return value if rate else math.exp(value)


def _tasks(results: Results, model: str, arm: str, base: str) -> dict[tuple[str, str], list[PairKey]]:
    """The units of each task that has all its seeds of both arms, in the order in which the tasks were completed."""
    there = {u for u in complete_and_incomplete(results.rows, (arm, base))[0] if u[0] == model}
    rows = sorted(
        (r for r in results.rows if r["arm"] in (arm, base) and pair_key(r) in there), key=lambda r: str(r["started"])
    )
    last: dict[tuple[str, str], dict[PairKey, None]] = {}
    for row in rows:
        of = last.pop((row["suite"], row["task"]), {})
        last[row["suite"], row["task"]] = {**of, pair_key(row): None}
    most = max((len(of) for of in last.values()), default=0)
    return {t: list(of) for t, of in last.items() if len(of) == most}


def _one(here: float | None, there: float | None, measure: str, missing: Policy) -> float | None:
    if here is None or there is None:
        if measure != "resolved" or missing == "drop":
            return None
        here, there = here or 0.0, 1.0 if there is None else there
    if measure == "resolved":
        return here - there
    if not here or not there:
        raise StudyError(
            f"a task with 0 {measure} has no ratio to read in sequence; choose another measure, or `compare`"
        )
    return math.log(here / there)


def _decision(low: float, high: float, *, rate: bool, margin: float) -> str:
    if rate and margin:
        points = f"{100 * margin:g} points fewer"
        return f"no more than {points}" if low > -margin else f"more than {points}" if high < -margin else "go on"
    return "more" if low > 0 else "less" if high < 0 else "go on"
