"""The tasks that a claim would need, and under which assumption."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rlm_loop.study import statistics
from rlm_loop.study.compare.contrast import Contrast, Judged
from rlm_loop.study.compare.effects import FEWEST_OF_RATIO


@dataclass(frozen=True)
class Plan:
    """A claim under an assumption about the truth.

    `assuming` is "no difference" (two loops that are truly alike in resolve rate) or "as observed"; `true_effect` is
    that difference (with one pair more of each kind) or ratio.  `power_now` is the chance that a study of as many
    `pairs` as were used shows the claim, `needed` the pairs for a power of 80 %, `more_tasks` the tasks that are
    missing of them (0: there are enough), with as many seeds each.  `None`: no number of tasks would do.
    Holm's correction is not included: of several claims of a family each needs somewhat more.
    """

    model: str
    arm: str
    baseline: str
    measure: str
    claim: str
    assuming: str
    true_effect: float
    pairs: int
    power_now: float
    needed: int | None
    more_tasks: int | None


def plans(comparison: Judged) -> list[Plan]:
    """The plans of all contrasts that have an estimate."""
    return [p for c in comparison.contrasts if c.estimate is not None for p in _of(comparison, c, c.estimate)]


def _of(comparison: Judged, contrast: Contrast, estimate: float) -> Iterator[Plan]:
    alpha, n = comparison.alpha, contrast.used
    if contrast.effect == "ratio":
        if contrast.spread is None:  # of one cluster, or of an arm that uses nothing, nothing can be planned
            return
        truth = {"effect": math.log(estimate), "spread": contrast.spread, "alpha": alpha}
        clusters = max(statistics.fewest_clusters(alpha), FEWEST_OF_RATIO)
        now = statistics.power_of_mean(n, **truth) if contrast.clusters >= clusters else 0.0
        needed = statistics.pairs_for_mean(**truth)
        least = math.ceil(clusters * n / contrast.clusters)
        yield _plan(contrast, "as observed", estimate, now, None if needed is None else max(needed, least))
        return
    truths = {"no difference": 0.0, "as observed": estimate * n / (n + 2)}
    for assuming, difference in truths.items():
        if difference or assuming == "as observed" or comparison.margin:
            truth = {"discordant": _discordant(contrast), "margin": comparison.margin, "alpha": alpha}
            now = statistics.power_of_rate(n / contrast.design, difference=difference, **truth)
            needed = statistics.pairs_for_rate(difference=difference, **truth)
            yield _plan(contrast, assuming, difference, now, _widened(needed, contrast))


def pairs_to_show(contrast: Contrast, difference: float, *, alpha: float = 0.05) -> int | None:
    """The pairs that show with a power of 80 % that two arms differ, if their rates truly differ by `difference`.

    The share of pairs that just one arm resolves, and what clustering costs, are taken from the contrast.
    """
    apart = max(_discordant(contrast), abs(difference))
    return _widened(
        statistics.pairs_for_rate(discordant=apart, difference=difference, margin=0.0, alpha=alpha), contrast
    )


def _widened(needed: int | None, contrast: Contrast) -> int | None:
    return None if needed is None else math.ceil(needed * contrast.design)


def _discordant(contrast: Contrast) -> float:
    """The share of pairs that just one arm resolves, with one pair more of each kind.

    It keeps a share of 0 from promising that nothing will ever differ, and 5 wins of 5 that every pair will be one
    (Agresti & Min 2005).
    """
    return ((contrast.discordant or 0.0) * contrast.used + 1) / (contrast.used + 2)


def _plan(c: Contrast, assuming: str, effect: float, now: float, needed: int | None) -> Plan:
    seeds = max(1, round(c.pairs / max(c.tasks, 1)))
    more = None if needed is None else math.ceil(max(0, needed - c.used) / seeds)
    return Plan(c.model, c.arm, c.baseline, c.measure, c.claim, assuming, effect, c.used, now, needed, more)
