"""How many more tasks a claim would need, and under which assumption."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rlm_loop.study import statistics
from rlm_loop.study.compare.contrast import Contrast, Judged
from rlm_loop.study.compare.effects import FEWEST_OF_RATIO


@dataclass(frozen=True)
class Plan:
    """One claim under one assumption about the truth.

    `assuming` is "no difference" (two loops that are truly alike in resolve rate) or "as observed"; `true_effect` is
    that difference (with one pair more of each kind) or ratio.  `power_now` is the chance that a study of as many
    `pairs` as were used shows the claim, `needed` the pairs for the power wanted, `more` what is missing of them (0:
    there are enough) and `more_tasks` the same in tasks, with as many seeds each.  `None`: no number of tasks would do.
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
    more: int | None
    more_tasks: int | None


def plans(comparison: Judged, power: float = 0.8) -> list[Plan]:
    """The plans of all contrasts that have an estimate."""
    return [p for c in comparison.contrasts if c.estimate is not None for p in _of(comparison, c, power)]


def _of(comparison: Judged, contrast: Contrast, power: float) -> Iterator[Plan]:
    estimate, alpha, n = contrast.estimate or 0.0, comparison.alpha, contrast.used
    if contrast.effect == "ratio":
        if contrast.spread is None:  # of one cluster, or of an arm that uses nothing, nothing can be planned
            return
        effect, spread = math.log(estimate), contrast.spread
        clusters = max(statistics.fewest_clusters(alpha), FEWEST_OF_RATIO)
        enough = contrast.clusters >= clusters
        now = statistics.power_of_mean(n, effect=effect, spread=spread, alpha=alpha) if enough else 0.0
        needed = statistics.pairs_for_mean(effect=effect, spread=spread, alpha=alpha, power=power)
        least = math.ceil(clusters * n / contrast.clusters)
        yield _plan(contrast, "as observed", estimate, now, None if needed is None else max(needed, least))
        return
    discordant, margin = _discordant(contrast), comparison.margin
    for assuming, difference in (("no difference", 0.0), ("as observed", estimate * n / (n + 2))):
        if assuming == "no difference" and not margin:
            continue
        assumed = {"discordant": discordant, "difference": difference, "margin": margin, "alpha": alpha}
        now = statistics.power_of_rate(n / contrast.design, **assumed)
        needed = statistics.pairs_for_rate(**assumed, power=power)
        wide = None if needed is None else math.ceil(needed * contrast.design)
        yield _plan(contrast, assuming, difference, now, wide)


def pairs_to_show(contrast: Contrast, difference: float, *, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """How many pairs show that two arms differ, if the true difference of their resolve rates is `difference`.

    The share of pairs that just one arm resolves, and what clustering costs, are taken from the contrast.
    """
    apart = max(_discordant(contrast), abs(difference))
    needed = statistics.pairs_for_rate(discordant=apart, difference=difference, margin=0.0, alpha=alpha, power=power)
    return None if needed is None else math.ceil(needed * contrast.design)


def _discordant(contrast: Contrast) -> float:
    """The share of pairs that just one arm resolves, with one pair more of each kind.

    It keeps a share of 0 from promising that nothing will ever differ, and 5 wins of 5 that every pair will be one
    (Agresti & Min 2005).
    """
    return ((contrast.discordant or 0.0) * contrast.used + 1) / (contrast.used + 2)


def _plan(contrast: Contrast, assuming: str, effect: float, now: float, needed: int | None) -> Plan:
    more = None if needed is None else max(0, needed - contrast.used)
    seeds = max(1, round(contrast.pairs / max(contrast.tasks, 1)))
    return Plan(
        model=contrast.model,
        arm=contrast.arm,
        baseline=contrast.baseline,
        measure=contrast.measure,
        claim=contrast.claim,
        assuming=assuming,
        true_effect=effect,
        pairs=contrast.used,
        power_now=now,
        needed=needed,
        more=more,
        more_tasks=None if more is None else math.ceil(more / seeds),
    )
