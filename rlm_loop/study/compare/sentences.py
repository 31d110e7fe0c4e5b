"""A comparison in full sentences: what is shown, what is not shown and what that would take, what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlm_loop.study.compare.contrast import Contrast, Judged, at_the_floor, p_value, percent
from rlm_loop.study.compare.effects import GEOMETRIC
from rlm_loop.study.compare.planning import Plan

_NOUNS = {
    "input_tokens": "prompt tokens",
    "output_tokens": "output tokens",
    "cost": "cost",
    "seconds": "time",
    "steps": "steps",
}
#: Of fewer pairs than this how often arms differ is not known well enough to plan by.
_TO_PLAN_BY = 10
_COUNTED = {"input_tokens", "output_tokens", "steps"}
_POLICY = {
    "worst": "each counts against {arm} (policy worst)",
    "drop": "these pairs are left out (policy drop), which is fair only if they failed by chance",
    "bounds": "the intervals cover the worst and the best case (policy bounds)",
}


@dataclass(frozen=True)
class ArmFindings:
    """What a comparison supports of one arm with one model: its contrasts, one a measure, and the sentences."""

    model: str
    arm: str
    contrasts: tuple[Contrast, ...]
    sentences: tuple[str, ...]


def findings(comparison: Judged, planned: Sequence[Plan]) -> list[ArmFindings]:
    """For each model and arm what holds, what is not shown, other measures and missing pairs."""
    groups: dict[tuple[str, str], list[Contrast]] = {}
    for contrast in comparison.contrasts:
        groups.setdefault((contrast.model, contrast.arm), []).append(contrast)
    return [
        ArmFindings(model, arm, tuple(group), tuple(_of_arm(group, comparison, planned)))
        for (model, arm), group in groups.items()
    ]


def _of_arm(group: Sequence[Contrast], comparison: Judged, planned: Sequence[Plan]) -> list[str]:
    word = "Exploratory: " if comparison.exploratory else ""
    said: list[str] = []
    wanted = [c for c in group if c.measure in comparison.family and c.estimate is not None]
    shown = [c for c in wanted if c.holds]
    if shown:
        parts = [_shown(c, comparison) for c in shown]
        said.append(f"{word}{group[0].arm} {' and '.join(parts)}, on {_where(group[0])}.")
    said += [f"{word}{s}" for c in wanted if c.measure == "resolved" and (s := _worse(c, comparison))]
    said += [_not_shown(c, comparison, planned) for c in wanted if not c.holds and not _refuted(c, comparison)]
    said += [f"{_unknown(c)}." for c in group if c.measure in comparison.family and c.estimate is None]
    said += _described([c for c in group if c.measure not in comparison.family and c.estimate is not None])
    return [*said, _missing(group)]


def _where(contrast: Contrast) -> str:
    seeds = f" ({contrast.pairs} pairs of task and seed)" if contrast.pairs != contrast.tasks else ""
    return f"{contrast.tasks} task{'s' * (contrast.tasks != 1)}{seeds} with {contrast.model}"


def _shown(contrast: Contrast, comparison: Judged) -> str:
    if contrast.effect == "ratio":
        return f"{_uses(contrast)} {contrast.baseline} ({_of_what(contrast)}{_range(contrast)}, {_p(contrast.p_holm)})"
    if comparison.margin:
        word = f"resolves {contrast.claim} tasks than"
        return f"{word} {contrast.baseline} ({_difference(contrast)}; non-inferior, {_p(contrast.p_holm)})"
    word = "more" if (contrast.estimate or 0) > 0 else "fewer"
    return f"resolves {word} tasks than {contrast.baseline} ({_difference(contrast)}; {_p(contrast.p_holm)})"


def _not_shown(contrast: Contrast, comparison: Judged, planned: Sequence[Plan]) -> str:
    arm, baseline, on = contrast.arm, contrast.baseline, _where(contrast)
    if contrast.effect == "ratio":
        found = f"{_ratio(contrast)} {contrast.estimate:.2f}, {_percent(contrast)} interval {_plain_range(contrast)}"
        what = f"that {arm} and {baseline} differ in {_NOUNS[contrast.measure]}"
        return f"It is not shown {what} ({found}, {_p(contrast.p_holm)}), on {on}{_needs(contrast, planned)}."
    what = f"that {arm} resolves {contrast.claim} tasks than {baseline}" if comparison.margin else _alike(contrast)
    found = f"{_difference(contrast)}, {_p(contrast.p_holm)}"
    ahead = (contrast.estimate or 0.0) > comparison.margin
    if comparison.margin and at_the_floor(contrast, comparison.margin) and not ahead:
        rate = f"{100 * (contrast.baseline_value or 0):.1f} %"
        why = f"; {baseline} itself resolves {rate}, so that a loop which resolves nothing would be as close"
        return f"It is not shown {what} ({found}), on {on}{why}: harder or easier tasks, not more of them, are needed."
    return f"It is not shown {what} ({found}), on {on}{_needs(contrast, planned)}."


def _alike(contrast: Contrast) -> str:
    return f"that {contrast.arm} and {contrast.baseline} differ in how many tasks they resolve"


def _needs(contrast: Contrast, planned: Sequence[Plan]) -> str:
    """What it would take: if the truth is as observed, or if two arms are truly alike that do not differ in favour."""
    of = {
        p.assuming: p
        for p in planned
        if (p.model, p.arm, p.measure) == (contrast.model, contrast.arm, contrast.measure)
    }
    ahead = contrast.effect == "ratio" or (contrast.estimate or 0.0) > 0
    plan = of.get("as observed") if ahead or "no difference" not in of else of["no difference"]
    if plan is None:
        return ""
    if contrast.effect == "difference" and contrast.used < _TO_PLAN_BY and not ahead:
        return f"; {contrast.used} pairs are too few to say how many it would take"
    truth = "if the two are truly alike" if plan.assuming == "no difference" else "if the truth is as observed"
    if plan.more_tasks is None:
        return f"; no number of tasks would show it {truth}"
    if plan.more_tasks == 0:
        return f"; {truth}, a new study of this size would show it with a chance of {100 * plan.power_now:.0f} %"
    more = f"{_count(plan.more_tasks)} more task{'s' * (plan.more_tasks != 1)}"
    return f"; {truth}, about {more} would be needed to show it (power 80 %)"


def _worse(contrast: Contrast, comparison: Judged) -> str:
    """An arm that is worse is said to be worse, also where the claim was another one, if test and interval say so."""
    p, high = contrast.p_difference, contrast.high
    if not comparison.margin or p is None or p > 1 - contrast.confidence or high is None or high >= 0:
        return ""
    return (
        f"{contrast.arm} resolves fewer tasks than {contrast.baseline} ({_difference(contrast)}), on "
        f"{_where(contrast)}."
    )


def _refuted(contrast: Contrast, comparison: Judged) -> bool:
    """Whether it is shown to be worse by more than the margin: no number of tasks would then show the claim."""
    beyond = contrast.high is not None and contrast.high < -comparison.margin
    return contrast.measure == "resolved" and beyond and bool(_worse(contrast, comparison))


def _unknown(contrast: Contrast) -> str:
    what = "whether tasks were resolved" if contrast.measure == "resolved" else _NOUNS[contrast.measure]
    if contrast.effect == "ratio" and contrast.used and contrast.baseline_value == 0:
        used = f"{contrast.value:,.3g} on average" if contrast.value else "none either"
        return f"{contrast.baseline} uses no {what} in any pair and {contrast.arm} {used}, so there is no ratio of them"
    return f"Of {contrast.arm} and {contrast.baseline} {what} is not known for enough pairs to compare them"


def _described(others: Sequence[Contrast]) -> list[str]:
    if not others:
        return []
    parts = [f"{_NOUNS[c.measure]} {_times(c)}" if c.effect == "ratio" else _rates(c) for c in others]
    arm, baseline = others[0].arm, others[0].baseline
    return [f"Only described, as no claim was declared: {arm} against {baseline}, {'; '.join(parts)}."]


def _rates(contrast: Contrast) -> str:
    return f"resolve rate {100 * (contrast.estimate or 0):+.1f} points"


def _missing(group: Sequence[Contrast]) -> str:
    one = group[0]
    worst = max(group, key=lambda c: c.missing if c.estimate is not None else -1)
    if worst.missing == 0 or worst.estimate is None:
        return f"All {one.pairs} pairs of {one.arm} and {one.baseline} are complete."
    count = f"{worst.missing} of {worst.pairs} pairs of {one.arm} and {one.baseline} are missing"
    by = f"{worst.missing_here} in {one.arm}, {worst.missing_baseline} in {one.baseline}"
    return f"{count} ({by}); {_POLICY[worst.policy].format(arm=one.arm)}."


def methods(comparison: Judged) -> str:
    """By which methods the intervals and p values of a comparison were found."""
    one = comparison.contrasts[0]
    claims = sum(c.p_holm is not None for c in comparison.contrasts)
    several = (
        f"p values are Holm's over {claims} claims, whose intervals are those of the levels at which Holm's procedure "
        "judged them (so that each excludes what is claimed against just where its p is small enough)"
    )
    holm = several if claims > 1 else "there is one claim"
    left = f" {comparison.left_out} units are left out, as not every arm was tried on them." * bool(comparison.left_out)
    if one.clusters == one.used:
        by = "tasks count as independent"
    else:
        by = f"pairs are clustered by {one.clustered_by} ({one.clusters} cluster{'s' * (one.clusters != 1)})"
    few = ", since there are too few repositories or families to cluster by" if one.too_few_clusters else ""
    ratios = f" Ratios are the {GEOMETRIC}, where not called otherwise." if len(comparison.contrasts) > 1 else ""
    open_ = " Exploratory: the study did not declare this analysis." if comparison.exploratory else ""
    return f"Intervals are {100 * (1 - comparison.alpha):g} % ones, {holm}, and {by}{few}.{ratios}{left}{open_}"


def _ratio(contrast: Contrast) -> str:
    return "ratio" if contrast.estimand == GEOMETRIC else contrast.estimand


def _difference(contrast: Contrast) -> str:
    low, high = 100 * (contrast.low or 0.0), 100 * (contrast.high or 0.0)
    seen = f"difference {100 * (contrast.estimate or 0):+.1f} points"
    return f"{seen}, {_percent(contrast)} interval {low:.1f} to {high:.1f}"


def _uses(contrast: Contrast) -> str:
    ratio, noun = contrast.estimate or 1.0, _NOUNS[contrast.measure]
    if ratio >= 2:
        return f"uses {ratio:.1f} times as {'many' if contrast.measure in _COUNTED else 'much'} {noun} as"
    less = "fewer" if contrast.measure in _COUNTED else "less"
    return f"uses {_share(ratio)} % {less if ratio < 1 else 'more'} {noun} than"


def _of_what(contrast: Contrast) -> str:
    return "" if contrast.estimand == GEOMETRIC else f"{contrast.estimand}; "


def _range(contrast: Contrast) -> str:
    ratio, low, high = contrast.estimate or 1.0, contrast.low or 1.0, contrast.high or 1.0
    if ratio >= 2:
        return f"{low:.1f} to {high:.1f} times"
    first, last = (high, low) if ratio < 1 else (low, high)
    return f"{_share(first)} to {_share(last)} %"


def _times(contrast: Contrast) -> str:
    return f"{contrast.estimate:.2f} times ({_of_what(contrast)}{_plain_range(contrast)})"


def _plain_range(contrast: Contrast) -> str:
    return (
        "not known" if contrast.low is None or contrast.high is None else f"{contrast.low:.2f} to {contrast.high:.2f}"
    )


def _share(ratio: float) -> str:
    share = abs(100 * (ratio - 1))
    return f"{share:.1f}" if share < 9.95 else f"{share:.0f}"


def _percent(contrast: Contrast) -> str:
    return percent(contrast.confidence)


def _p(p: float | None) -> str:
    if p is None:
        return "p not known"
    value = p_value(p)
    return f"p {value}" if value.startswith("<") else f"p = {value}"


def _count(n: int) -> str:
    """A planned number, to two digits: it is no more exact than that."""
    digits = max(0, len(str(n)) - 2)
    return f"{round(n, -digits):,}"
