"""The difference of two arms suite by suite, the test that it is the same in all, and the tasks that flip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rlm_loop.study import statistics
from rlm_loop.study.compare.contrast import Judged
from rlm_loop.study.compare.effects import rate_effect
from rlm_loop.study.compare.pair_keys import PairKey, by_episode, complete_and_incomplete, is_resolved
from rlm_loop.study.compare.pairs import Paired, Pairs


@dataclass(frozen=True)
class SuiteEffect:
    """An arm against the baseline on one suite.

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
    """Test that the difference of an arm is the same in all suites: p by `heterogeneity_p`, of complete pairs."""

    model: str
    arm: str
    baseline: str
    suites: int
    p: float


@dataclass(frozen=True)
class Flip:
    """A pair that one arm resolved and the other did not; `gained`: the arm did, not the baseline."""

    model: str
    arm: str
    baseline: str
    suite: str
    task: str
    seed: int | str
    gained: bool


def suite_effects(comparison: Judged) -> list[SuiteEffect]:
    """Return an effect for each model, arm and suite of a comparison, on the units that it compares."""
    found: list[SuiteEffect] = []
    for model, arm, by_suite in _asked(comparison):
        for suite, (units, pairs) in by_suite.items():
            known = pairs.known()
            apart = [(h or 0.0) - (t or 0.0) for h, t in zip(known.here, known.there, strict=True)]
            e = rate_effect(pairs, comparison.missing, 0.0, comparison.alpha, comparison.alpha)
            of_pairs = (len({u[2] for u in units}), len(pairs), pairs.missing, apart.count(1.0), apart.count(-1.0))
            figures = () if e is None else (e.value, e.baseline_value, e.estimate, e.low, e.high)
            found.append(SuiteEffect(model, arm, comparison.baseline, suite, *of_pairs, *figures))
    return found


def interactions(comparison: Judged) -> list[Interaction]:
    """Return a test for each model and arm; none where there is one suite."""
    found: list[Interaction] = []
    for model, arm, by_suite in _asked(comparison):
        known = {suite: pairs.known() for suite, (_, pairs) in by_suite.items() if len(pairs.known())}
        if len(known) < 2:
            continue
        differences = [(h or 0.0) - (t or 0.0) for of in known.values() for h, t in zip(of.here, of.there)]
        labels = [(suite, c) for suite, of in known.items() for c in of.clusters]
        codes = (statistics.codes_of(labels), statistics.codes_of([suite for suite, _ in labels]))
        p = statistics.heterogeneity_p(differences, *codes)
        found.append(Interaction(model, arm, comparison.baseline, len(known), p))
    return found


def _asked(comparison: Judged) -> Iterator[tuple[str, str, dict[str, tuple[list[PairKey], Pairs]]]]:
    """Of each model and arm the units and pairs of each suite."""
    every, _ = complete_and_incomplete(comparison.rows)
    for model, arm in comparison.compared:
        units = [u for u in every if u[0] == model]
        whole = Paired(comparison.rows, units).pairs(arm, comparison.baseline, "resolved")
        by_suite: dict[str, tuple[list[PairKey], Pairs]] = {}
        for suite in dict.fromkeys(u[1] for u in units):
            at = [i for i, u in enumerate(units) if u[1] == suite]
            by_suite[suite] = ([units[i] for i in at], whole.at(at))
        yield model, arm, by_suite


def flips(comparison: Judged) -> list[Flip]:
    """The pairs of each model and arm that flip, those gained first, each in the order of the tasks."""
    of_episode, units = by_episode(comparison.rows), complete_and_incomplete(comparison.rows)[0]
    found: list[Flip] = []
    for model, arm in comparison.compared:
        mine: list[Flip] = []
        for unit in units:
            here, there = (is_resolved(of_episode.get((name, unit))) for name in (arm, comparison.baseline))
            if unit[0] == model and None not in (here, there) and here != there:
                mine.append(Flip(model, arm, comparison.baseline, *unit[1:], gained=bool(here)))
        found += sorted(mine, key=lambda flip: not flip.gained)
    return found
