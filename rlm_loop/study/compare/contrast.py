"""The row of a comparison: an arm against the baseline in one measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlm_loop.study.compare.pairs import Policy
from rlm_loop.study.store.rows import Row

#: What arms are compared in: the share of tasks resolved, and sums over all model calls of a task.
MEASURES = ("resolved", "input_tokens", "output_tokens", "cost", "seconds", "steps")
#: Prompt and output tokens together, of results of others that do not tell them apart.
TOTAL = "tokens"


@dataclass(frozen=True)
class Contrast:
    """An arm against the baseline in one measure, with one model.

    `pairs` counts the units (task x seed) that every arm was tried on, `missing` those where one of the two has no
    value, which `policy` treats, and `used` the pairs that the figures are of.  `value` and `baseline_value` are means.
    `estimate`, `low` and `high` are the "difference" of two resolve rates (0.042 is 4.2 points) or a "ratio", the
    geometric mean of those of the pairs (0.59: 41 % less), as `effect` says.

    `p` belongs to `claim`; for "no more than ... fewer" it is twice the one-sided p, so that one alpha serves all
    claims.  `p_holm` is adjusted over the declared family (`None` for a measure outside it), and `confidence` is 1 -
    the level at which Holm's procedure judged the claim, so that the interval excludes what is claimed against exactly
    where `p_holm` is at most alpha.  `p_difference` belongs to "the arms are alike" (exact McNemar, or sign flips), and
    is not adjusted.  `holds` is true where test and interval say what is claimed; where the comparison is exploratory,
    that shows nothing.  `clusters` counts the groups of pairs that were kept together.  `shares` says what each suite
    counts, where pairs of several are pooled.  `None` is not known.
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
    discordant: float | None = None
    too_few_clusters: int = 0
    used: int = 0
    confidence: float = 0.95
    crashed: int = 0
    crashed_baseline: int = 0
    shares: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Judged:
    """All arms against one baseline, judged; `Comparison` is this with what can be said of it.

    `contrasts` has one entry for each model, arm and measure, of `rows`; `left_out` counts the units that not every arm
    was tried on, which are in none of them.  `exploratory` is true where this is not what was declared before the run,
    and `departs` says how the rows or the plan depart from it (a subset, an interim look, arms or tasks that were
    added, a plan that was changed or given afterwards).  `margin` is a share of all tasks.
    """

    contrasts: Sequence[Contrast]
    baseline: str
    margin: float
    missing: Policy
    family: Sequence[str]
    alpha: float
    rows: Sequence[Row] = field(repr=False, compare=False)
    left_out: int = 0
    exploratory: bool = True
    departs: str = ""

    @property
    def compared(self) -> list[tuple[str, str]]:
        """Each model and arm that has contrasts."""
        return list(dict.fromkeys((c.model, c.arm) for c in self.contrasts))


def at_the_floor(contrast: Contrast, margin: float) -> bool:
    """The baseline resolves so little that an arm which resolves nothing would be within the margin too.

    An arm that is shown to resolve more is no such arm.
    """
    more, there = contrast.low is not None and contrast.low > 0, contrast.baseline_value
    return there is not None and there <= margin and not more


def p_value(p: float) -> str:
    """A p as it stands in every table and sentence."""
    return "< 0.001" if p < 0.001 else f"{p:.2g}" if p < 0.095 else f"{p:.2f}"


def p_equals(p: float | None) -> str:
    """A p with its sign, as it stands in a sentence."""
    if p is None:
        return "p not known"
    value = p_value(p)
    return f"p {value}" if value.startswith("<") else f"p = {value}"


def percent(level: float) -> str:
    """The level of an interval as it stands in every table, sentence and figure."""
    return f"{100 * level:.4g} %"
