"""One arm against the baseline in one measure: the row of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

from rlm_loop.study.pairs import Policy

#: What arms are compared in: the share of tasks resolved, and sums over all model calls of a task.
MEASURES = ("resolved", "input_tokens", "output_tokens", "cost", "seconds", "steps")


@dataclass(frozen=True)
class Contrast:
    """One arm against the baseline in one measure, with one model.

    `pairs` counts the units (task x seed) on which both arms should have a value, `missing` those where one has none;
    `policy` says what was done with these.  `value` and `baseline_value` are means of the pairs used.  `effect` says
    what `estimate`, `low` and `high` are: the "difference" of two resolve rates (0.042 is 4.2 points) or the "ratio"
    (geometric mean of the pairs' ratios; 0.59 is 41 % less).  `p` belongs to `claim`; for "no more than ... fewer" it
    is twice the one-sided p, so that one alpha serves all claims.  `p_holm` is adjusted over the declared family
    (`None` for a measure outside it), `p_difference` belongs to "the arms are alike" (exact McNemar, or sign flips).
    `holds` is true where the claim is shown.  `clusters` counts the groups of pairs that were kept together, and
    `clustered_by` names them.  Figures are `None` where they are not known.
    """

    model: str
    arm: str
    baseline: str
    measure: str
    tasks: int
    pairs: int
    missing: int
    missing_here: int
    missing_baseline: int
    policy: Policy
    effect: str
    claim: str
    clusters: int
    clustered_by: str
    value: float | None = None
    baseline_value: float | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    p_difference: float | None = None
    holds: bool = False
    method: str = "not known"
    spread: float | None = None
    discordant: float | None = None
    design: float = 1.0
    too_few_clusters: int = 0


def at_the_floor(contrast: Contrast, margin: float) -> bool:
    """The baseline resolves so little that an arm which resolves nothing would be within the margin too.

    An arm that is shown to resolve more is no such arm.
    """
    more = contrast.low is not None and contrast.low > 0
    return contrast.baseline_value is not None and contrast.baseline_value <= margin and not more
