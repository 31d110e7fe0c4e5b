"""An arm against another in one measure: the estimate, its interval and its p values, missing pairs included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlm_loop.study import statistics
from rlm_loop.study.compare.pairs import Pairs, Policy

#: What a ratio is.
GEOMETRIC = "geometric mean of the pairs' ratios"
#: Of fewer tasks (clusters) a ratio has no interval: where one run in ten uses seven times as much, an interval of 12
#: tasks that is to cover 95 % covers 85 %, since a third of the studies has no such run in it.
FEWEST_OF_RATIO = 20


@dataclass(frozen=True)
class Effect:
    """An effect, its interval and p.  `estimate`, `low` and `high` are a "difference" or a "ratio" (`effect`).

    `p` belongs to the claim, `p_difference` to "the arms are alike"; `discordant` is the share of pairs that just one
    arm resolved.
    """

    estimate: float
    low: float
    high: float
    p: float
    p_difference: float
    value: float | None
    baseline_value: float | None
    method: str
    discordant: float = 0.0


def rate_effect(pairs: Pairs, policy: Policy, margin: float, alpha: float, level: float) -> Effect | None:
    """The difference of the resolve rates; `None` where no pair is known.

    Worst case: a missing attempt of the arm is not resolved and one of the baseline is; the best case is the reverse.
    The interval is that of 1 - `level`, and excludes what is claimed against just where `p` is at most `level`.
    """
    if len(pairs) == pairs.missing:
        return None
    if not pairs.missing:
        return _rate(pairs.known(), margin, alpha, level)
    worst_case, best_case = (
        _rate(pairs.filled(here, there), margin, alpha, level) for here, there in ((0.0, 1.0), (1.0, 0.0))
    )
    complete = _rate(pairs.known(), margin, alpha, level) if policy == "bounds" else None
    return _over(worst_case, best_case, complete, one_sided=margin > 0)


def _rate(pairs: Pairs, margin: float, alpha: float, level: float) -> Effect:
    codes, least = statistics.codes_of(pairs.clusters), 0.0 - margin

    def interval(at: float) -> tuple[float, float]:
        found = statistics.paired_difference(pairs.here, pairs.there, codes, at)
        return float(found[1]), float(found[2])

    def excludes(at: float) -> bool:
        low, high = interval(at)
        return low > least or (not margin and high < 0)

    _, wins, losses, _ = statistics.paired_table(pairs.here, pairs.there)
    both, here, lost, rest = (float(x) for x in statistics.effective_table(pairs.here, pairs.there, codes, alpha))
    n, size = len(pairs), both + here + lost + rest
    p_difference = tested = statistics.mcnemar(pairs.here, pairs.there, codes)
    test = "exact McNemar test"
    if margin:
        test = "exact score test of non-inferiority"
        tested = statistics.noninferiority(here, lost, size, margin)
    p = statistics.smallest_level(tested, excludes)
    low, high = interval(level)
    if p > level:  # what is not shown is in the interval too
        low, high = min(low, least), high if margin else max(high, 0.0)
    return Effect(
        estimate=float((wins - losses) / n),
        low=low,
        high=high,
        p=p,
        p_difference=p_difference,
        value=statistics.mean(pairs.here),
        baseline_value=statistics.mean(pairs.there),
        method=f"Newcombe interval, {test}",
        discordant=float(wins + losses) / n,
    )


def ratio_effect(pairs: Pairs, policy: Policy, level: float) -> Effect | None:
    """Compute how many times as much the arm uses: the geometric mean of the ratios of the pairs.

    `None` where fewer than two pairs are known, or a value is 0, of which there is no ratio.  A use of tokens has no
    worst case: a missing pair takes the least favourable pair seen in the comparison (no better than a ratio of 1), and
    in the best case the most favourable one (no worse than 1).
    """
    known = pairs.known()
    both = list(zip(known.here, known.there, strict=True))
    if len(both) < 2 or not all(h and t for h, t in both):
        return None
    logs = [math.log(h or 1.0) - math.log(t or 1.0) for h, t in both]
    complete = _ratio(logs, known, level)
    if not pairs.missing:
        return complete
    lost = pairs.at([i for i, of in enumerate(zip(pairs.here, pairs.there, strict=True)) if None in of])
    wide = replace(known, clusters=[*known.clusters, *lost.clusters])
    worst_case, best_case = (
        _ratio([*logs, *[put] * len(lost)], wide, level) for put in (max(0.0, *logs), min(0.0, *logs))
    )
    return _over(worst_case, best_case, complete if policy == "bounds" else None, null=1.0)


def _ratio(logs: Sequence[float], pairs: Pairs, level: float) -> Effect:
    codes = statistics.codes_of(pairs.clusters)
    estimate, low, high = (math.exp(x) for x in statistics.mean_interval(logs, codes, level))
    if len(set(pairs.clusters)) < FEWEST_OF_RATIO:
        low = high = math.nan
    p = statistics.mean_p(logs, codes)
    return Effect(
        estimate=estimate,
        low=low,
        high=high,
        p=p,
        p_difference=p,
        value=statistics.mean(pairs.known().here),
        baseline_value=statistics.mean(pairs.known().there),
        method=f"{GEOMETRIC}, BCa bootstrap and inverted sign flips, sign-flip permutation test",
    )


def _over(
    worst_case: Effect, best_case: Effect, complete: Effect | None, *, null: float = 0.0, one_sided: bool = False
) -> Effect:
    """Join the effects of two completions into one.

    A claim in one direction is that of the worst case.  A difference has to be there in both: its p is the larger one,
    and 1 where they point in different directions, and its interval covers both.
    """
    opposite = (worst_case.estimate - null) * (best_case.estimate - null) <= 0
    p_difference = 1.0 if opposite else max(worst_case.p_difference, best_case.p_difference)
    if one_sided and complete is None:
        return replace(worst_case, p_difference=p_difference)
    every = [e for e in (worst_case, best_case, complete) if e is not None]
    return replace(
        complete or worst_case,
        low=min(e.low for e in every),
        high=max(e.high for e in every),
        p=1.0 if opposite and not one_sided else max(e.p for e in every),
        p_difference=p_difference,
    )
