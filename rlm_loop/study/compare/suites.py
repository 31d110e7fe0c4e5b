"""The difference of two arms suite by suite, and whether it is the same in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlm_loop.study import statistics
from rlm_loop.study.compare.contrast import Judged
from rlm_loop.study.compare.effects import rate_effect
from rlm_loop.study.compare.pair_keys import PairKey, complete_and_incomplete
from rlm_loop.study.compare.pairs import Paired, Pairs
from rlm_loop.study.store.rows import Row


@dataclass(frozen=True)
class SuiteEffect:
    """One arm against the baseline on one suite.

    `pairs` counts units (task x seed), `missing` those without a value of one of the two, which are treated as in the
    whole comparison.  `rate` and `baseline_rate` are shares, `estimate`, `low` and `high` their difference with its
    interval (Newcombe, by cluster), `None` where no pair is known; `gained` and `lost` count the pairs that just one
    of the two resolved.  The intervals are not adjusted for there being several suites.
    """

    model: str
    arm: str
    baseline: str
    suite: str
    tasks: int
    pairs: int
    missing: int
    gained: int
    lost: int
    rate: float | None = None
    baseline_rate: float | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Interaction:
    """Whether the difference of an arm is the same in all suites: p by `heterogeneity_p`, of complete pairs.

    `lowest` and `highest` are the suites with the smallest and the largest difference.
    """

    model: str
    arm: str
    baseline: str
    suites: int
    lowest: str
    highest: str
    p: float


def suite_effects(rows: Sequence[Row], comparison: Judged, cluster: str | None = None) -> list[SuiteEffect]:
    """One effect for each model, arm and suite of a comparison, on the units that it compares."""
    return [
        _effect(model, arm, suite, pairs, units, comparison)
        for model, arm, by_suite in _asked(rows, comparison, cluster)
        for suite, (units, pairs) in by_suite.items()
    ]


def interactions(rows: Sequence[Row], comparison: Judged, cluster: str | None = None) -> list[Interaction]:
    """One test for each model and arm; none where there is one suite."""
    found: list[Interaction] = []
    for model, arm, by_suite in _asked(rows, comparison, cluster):
        known = {suite: pairs.known() for suite, (_, pairs) in by_suite.items() if len(pairs.known())}
        if len(known) < 2:
            continue
        differences = {suite: [(h or 0.0) - (t or 0.0) for h, t in zip(p.here, p.there)] for suite, p in known.items()}
        labels = [(suite, c) for suite, p in known.items() for c in p.clusters]
        p = statistics.heterogeneity_p(
            [d for of in differences.values() for d in of],
            statistics.codes_of(labels),
            statistics.codes_of([suite for suite, _ in labels]),
        )
        ordered = sorted(differences, key=lambda suite: sum(differences[suite]) / len(differences[suite]))
        found.append(Interaction(model, arm, comparison.baseline, len(known), ordered[0], ordered[-1], p))
    return found


def _asked(
    rows: Sequence[Row], comparison: Judged, cluster: str | None
) -> list[tuple[str, str, dict[str, tuple[list[PairKey], Pairs]]]]:
    """Of each model and arm the units and pairs of each suite."""
    every, _ = complete_and_incomplete(rows)
    found: list[tuple[str, str, dict[str, tuple[list[PairKey], Pairs]]]] = []
    for model, arm in dict.fromkeys((c.model, c.arm) for c in comparison.contrasts):
        units = [u for u in every if u[0] == model]
        paired = Paired(rows, units, cluster)
        whole = paired.pairs(arm, comparison.baseline, "resolved")
        by_suite: dict[str, tuple[list[PairKey], Pairs]] = {}
        for suite in dict.fromkeys(u[1] for u in units):
            at = [i for i, u in enumerate(units) if u[1] == suite]
            by_suite[suite] = ([units[i] for i in at], whole.at(at))
        found.append((model, arm, by_suite))
    return found


def _effect(
    model: str, arm: str, suite: str, pairs: Pairs, units: Sequence[PairKey], comparison: Judged
) -> SuiteEffect:
    known = pairs.known()
    apart = [(h or 0.0) - (t or 0.0) for h, t in zip(known.here, known.there, strict=True)]
    effect = rate_effect(pairs, comparison.missing, 0.0, comparison.alpha)
    return SuiteEffect(
        model=model,
        arm=arm,
        baseline=comparison.baseline,
        suite=suite,
        tasks=len({u[2] for u in units}),
        pairs=len(pairs),
        missing=pairs.missing,
        gained=apart.count(1.0),
        lost=apart.count(-1.0),
        rate=effect and effect.value,
        baseline_rate=effect and effect.baseline_value,
        estimate=effect and effect.estimate,
        low=effect and effect.low,
        high=effect and effect.high,
    )
