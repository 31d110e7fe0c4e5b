"""One arm against another in one measure: the estimate, its interval and its p values, missing pairs included."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rlm_loop.study import statistics
from rlm_loop.study.pairs import Pairs, Policy

Fill = Callable[[float | None, float | None], tuple[float, float]]


@dataclass(frozen=True)
class Effect:
    """What was found.  `estimate`, `low` and `high` are on the scale of `effect` ("difference" or "ratio").

    `p` belongs to the claim, `p_difference` to "the arms are alike"; `spread` is the standard deviation of a pair
    (of the log-ratio, for a ratio), by cluster; `discordant` the share of pairs that just one arm resolved, and
    `design` by what factor clustering widens the variance.
    """

    estimate: float
    low: float
    high: float
    p: float
    p_difference: float
    value: float
    baseline_value: float
    method: str
    spread: float = 0.0
    discordant: float = 0.0
    design: float = 1.0


def rate_effect(pairs: Pairs, policy: Policy, margin: float, alpha: float) -> Effect | None:
    """The difference of the resolve rates; `None` where no pair is known.

    Worst case: a missing attempt of the arm is not resolved and one of the baseline is; the best case is the reverse.
    """
    if len(pairs) == pairs.missing:
        return None
    if policy == "drop" or not pairs.missing:
        return _rate(pairs.known(), margin, alpha)
    against, favour = (
        _rate(_filled(pairs, fill), margin, alpha) for fill in (_resolved(0.0, 1.0), _resolved(1.0, 0.0))
    )
    return _over(
        against, favour, _rate(pairs.known(), margin, alpha) if policy == "bounds" else None, claim_is_worst=True
    )


def _resolved(here: float, there: float) -> Fill:
    return lambda h, t: (here if h is None else h, there if t is None else t)


def _filled(pairs: Pairs, fill: Fill) -> Pairs:
    both = [fill(h, t) for h, t in zip(pairs.here, pairs.there, strict=True)]
    return replace(pairs, here=[h for h, _ in both], there=[t for _, t in both])


def _rate(pairs: Pairs, margin: float, alpha: float) -> Effect:
    codes = statistics.codes_of(pairs.clusters)  # before the import: it says what to install
    from rlm_loop.study.statistics.rates import effective_table

    estimate, low, high = statistics.paired_difference(pairs.here, pairs.there, codes, alpha)
    _, only_here, only_there, _ = statistics.paired_table(pairs.here, pairs.there)
    table = [float(x) for x in effective_table(pairs.here, pairs.there, codes, alpha)]
    p_difference = statistics.mcnemar(pairs.here, pairs.there, codes)
    n, size = len(pairs), sum(table)
    return Effect(
        estimate=float(estimate),
        low=float(low),
        high=float(high),
        p=statistics.noninferiority(table[1], table[2], size, margin) if margin else p_difference,
        p_difference=p_difference,
        value=_mean(pairs.here),
        baseline_value=_mean(pairs.there),
        method=("Newcombe interval, " + ("exact score test of non-inferiority" if margin else "exact McNemar test")),
        discordant=float(only_here + only_there) / n,
        design=n / size if size else 1.0,
    )


def ratio_effect(pairs: Pairs, policy: Policy, alpha: float) -> Effect | None:
    """The geometric mean of the ratios of the arms, task by task; `None` where fewer than two pairs are known.

    A use of tokens has no worst case: a missing pair takes the least favourable ratio seen in the comparison (no
    better than 1), and in the best case the most favourable one (no worse than 1).
    """
    known = pairs.known()
    if len(known) < 2 or 0 in (*known.here, *known.there):
        return None
    logs = [math.log(h or 1) - math.log(t or 1) for h, t in zip(known.here, known.there, strict=True)]
    complete = _ratio(logs, known, alpha)
    if policy == "drop" or not pairs.missing:
        return complete
    lost = [c for h, t, c in zip(pairs.here, pairs.there, pairs.clusters, strict=True) if h is None or t is None]
    wide = replace(known, clusters=[*known.clusters, *lost])
    against, favour = (
        replace(
            _ratio([*logs, *[put] * len(lost)], wide, alpha),
            value=complete.value,
            baseline_value=complete.baseline_value,
        )
        for put in (max(0.0, *logs), min(0.0, *logs))
    )
    return _over(against, favour, complete if policy == "bounds" else None, null=1.0)


def _ratio(logs: Sequence[float], pairs: Pairs, alpha: float) -> Effect:
    codes = statistics.codes_of(pairs.clusters)
    mean, low, high = (float(x) for x in statistics.mean_interval(logs, codes, alpha))
    p = float(statistics.sign_flip(logs, codes))
    variance = float(statistics.variance_of_mean(logs, codes))
    return Effect(
        estimate=math.exp(mean),
        low=math.exp(low),
        high=math.exp(high),
        p=p,
        p_difference=p,
        value=_mean(pairs.here),
        baseline_value=_mean(pairs.there),
        method="geometric mean of paired ratios, BCa bootstrap and inverted sign flips, sign-flip permutation test",
        spread=math.sqrt(variance * len(logs)),  # not a number for one cluster, of which no spread is known
    )


def _over(
    against: Effect, favour: Effect, complete: Effect | None, *, null: float = 0.0, claim_is_worst: bool = False
) -> Effect:
    """One effect of two completions: a p is the larger of both, and 1 where they point in different directions."""
    opposite = (against.estimate - null) * (favour.estimate - null) <= 0
    p_difference = 1.0 if opposite else max(against.p_difference, favour.p_difference)
    p = against.p if claim_is_worst else p_difference
    if complete is None:
        return replace(against, p=p, p_difference=p_difference)
    low, high = min(against.low, favour.low), max(against.high, favour.high)
    return replace(complete, low=low, high=high, p=p, p_difference=p_difference)


def _mean(values: Sequence[float | None]) -> float:
    known = [v for v in values if v is not None]
    return sum(known) / len(known)
