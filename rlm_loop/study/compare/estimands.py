"""How much more an arm uses, asked in three ways: task by task, in all, and for each task that it resolves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.accounting.prices import ANY, Price
from rlm_loop.study import statistics
from rlm_loop.study.compare.contrast import Judged
from rlm_loop.study.compare.effects import ratio_effect, totals_effect
from rlm_loop.study.compare.pair_keys import PairKey, by_episode, complete_and_incomplete, is_resolved
from rlm_loop.study.compare.pairs import Paired
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.store.rows import Row

if TYPE_CHECKING:
    from rlm_loop.study.statistics.clusters import Floats

#: What all runs took, over how many of them resolved their task.
PER_RESOLVED = "ratio of what a resolved task takes"


@dataclass(frozen=True)
class Estimate:
    """How many times as much of `quantity` the arm takes as the baseline, in the sense of `estimand`.

    `value` and `baseline_value` are what the arms take: the means of a task (for `effects.GEOMETRIC` and `TOTALS`), for
    `PER_RESOLVED` all that the arm's runs took, over how many it resolved (`None` where it resolved none).  `low` and
    `high` are the ends of the interval of 1 - alpha, `None` where there is none; `pairs` are complete, `missing` not.
    """

    model: str
    arm: str
    baseline: str
    quantity: str
    estimand: str
    value: float | None
    baseline_value: float | None
    estimate: float | None
    low: float | None
    high: float | None
    pairs: int
    missing: int


def estimates(
    rows: Sequence[Row],
    comparison: Judged,
    cluster: str | None = None,
    prices: Price | Mapping[str, Price] | None = None,
) -> list[Estimate]:
    """Tokens (in and out) and cost of each model and arm, each in all three senses; what is not known is left out.

    The cost is that of the rows, or of their tokens at `prices`, one for all models or by model (`"*"`: any other):
    tokens read from a cache and written to one have the prices of these where the row knows how many there were, and
    the full price where it does not.  Each pair counts the same; of missing pairs nothing is said but their number.
    """
    every, _ = complete_and_incomplete(rows)
    priced = [{**row, "tokens": _tokens(row), "cost": _cost(row, prices)} for row in rows]
    found: list[Estimate] = []
    for model, arm in dict.fromkeys((c.model, c.arm) for c in comparison.contrasts):
        units = [u for u in every if u[0] == model]
        paired = Paired(priced, units, cluster)
        for quantity in ("tokens", "cost"):
            pairs = paired.pairs(arm, comparison.baseline, quantity)
            known = pairs.known()
            named = (model, arm, comparison.baseline, quantity)
            if not any(known.there) or not any(known.here):
                continue
            asked = (ratio_effect(known, "drop", comparison.alpha), totals_effect(pairs, comparison.alpha))
            effects = {e.estimand: e for e in asked if e is not None}  # task by task there is none where a pair has a 0
            for estimand, e in effects.items():
                figures = (e.value, e.baseline_value, e.estimate, e.low, e.high)
                found.append(_estimate(named, estimand, *figures, len(known), pairs.missing))
            found.append(_per_resolved(named, priced, units, pairs.clusters, comparison.alpha))
    return found


def _per_resolved(
    named: tuple[str, str, str, str],
    rows: Sequence[Row],
    units: Sequence[PairKey],
    clusters: Sequence[str],
    alpha: float,
) -> Estimate:
    """Crashes count with what they took, and as not resolved."""
    _, arm, baseline, quantity = named
    of_episode = by_episode(rows)
    kept: list[tuple[float, float, float, float]] = []
    labels: list[str] = []
    for unit, label in zip(units, clusters, strict=True):
        here, there = of_episode.get((arm, unit)), of_episode.get((baseline, unit))
        four = [_get(here, quantity), is_resolved(here), _get(there, quantity), is_resolved(there)]
        if None not in four:
            kept.append((float(four[0] or 0), float(four[1] or 0), float(four[2] or 0), float(four[3] or 0)))
            labels.append(label)
    columns = list(zip(*kept, strict=True))
    spent, resolved, spent_there, resolved_there = (sum(c) for c in columns) if columns else (0.0,) * 4
    value, baseline_value = statistics.ratio(spent, resolved), statistics.ratio(spent_there, resolved_there)
    low = high = math.nan
    if value is not None and baseline_value:
        low, high = statistics.percentile_interval(columns, statistics.codes_of(labels), _each_resolved, alpha)
    estimate = None if value is None else statistics.ratio(value, baseline_value)
    return _estimate(named, PER_RESOLVED, value, baseline_value, estimate, low, high, len(kept), len(units) - len(kept))


def _each_resolved(sums: Floats) -> Floats:
    spent, resolved, spent_there, resolved_there = sums.T
    return (spent / resolved) / (spent_there / resolved_there)


def _estimate(named: tuple[str, str, str, str], estimand: str, *figures: float | None) -> Estimate:
    value, there, estimate, low, high, pairs, missing = (
        None if f is None or not math.isfinite(f) else f for f in figures
    )
    return Estimate(*named, estimand, value, there, estimate, low, high, int(pairs or 0), int(missing or 0))


def _get(row: Row | None, quantity: str) -> float | None:
    return None if row is None else row.get(quantity)


def _tokens(row: Row) -> float | None:
    return row["tokens"] if row.get("tokens") is not None else total_tokens(row)


def _cost(row: Row, prices: Price | Mapping[str, Price] | None) -> Any:
    """What an episode cost; `None` where its tokens, or the price of its model, are not known."""
    if prices is None:
        return row.get("cost")
    price = prices if isinstance(prices, Price) else prices.get(row["model"], prices.get(ANY))
    read, written = row["input_tokens"], row["output_tokens"]
    if price is None or read is None or written is None:
        return None
    cached, put = row.get("cached_tokens") or 0, row.get("cache_write_tokens") or 0
    return price.of_input(read, cached, put) + written * price.output / 1e6
