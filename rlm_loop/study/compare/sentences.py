"""A comparison in sentences: each difference with its interval, then what is shown, and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlm_loop.study.compare.contrast import Contrast, Judged, at_the_floor, p_equals, percent
from rlm_loop.study.compare.effects import FEWEST_OF_RATIO, GEOMETRIC
from rlm_loop.study.compare.suites import Interaction, SuiteEffect

_NOUNS = {
    "input_tokens": "prompt tokens",
    "output_tokens": "output tokens",
    "cost": "cost",
    "seconds": "time",
    "steps": "steps",
    "tokens": "tokens",
}
#: Below this p the suites are listed one by one; it is large, since the test of interaction has little power.
_MAY_DEPEND = 0.10
#: What every sentence says, where it is known.
_TOLD = ("resolved", "input_tokens", "tokens")
_CLUSTERS = {"task": "tasks", "repository": "repositories", "family": "families"}
_COUNTED = {"input_tokens", "output_tokens", "steps", "tokens"}
_POLICY = {
    "worst": "each counts against {arm} (policy worst)",
    "bounds": "the intervals cover the worst and the best case (policy bounds)",
}


def differences(comparison: Judged) -> list[str]:
    """For each model and arm the differences from the baseline, each with its interval."""
    groups = ([c for c in comparison.contrasts if (c.model, c.arm) == of] for of in comparison.compared)
    return [_differences(group, comparison) for group in groups]


def _differences(group: Sequence[Contrast], comparison: Judged) -> str:
    told = [c for c in group if c.measure in {*_TOLD, *comparison.family}]
    parts = [_effect(c) for c in told if c.estimate is not None]
    asked = {"resolved", *comparison.family}
    parts += [_unknown(c) for c in told if c.estimate is None and (c.used or c.measure in asked)]
    parts += _missing(group)
    one = group[0]
    return f"{one.arm} against {one.baseline}, on {_where(one, comparison)}: {'; '.join(parts)}."


def by_suite(effects: Sequence[SuiteEffect], tests: Sequence[Interaction]) -> list[str]:
    """Of each arm whether its difference depends on the suite, and where it may, what it is on each.

    It is said before anything is pooled; nothing where there is one suite.  Arms of which it is not shown share a
    sentence.
    """
    told: list[str] = []
    open_: dict[tuple[str, str, int], list[Interaction]] = {}
    for test in tests:
        if test.p >= _MAY_DEPEND:
            open_.setdefault((test.baseline, test.model, test.suites), []).append(test)
            continue
        of = [e for e in effects if (e.model, e.arm) == (test.model, test.arm)]
        parts = [f"{e.suite or '(no suite)'} {_points(e)}" for e in of]
        word = "depends" if test.p < 0.05 else "may depend"
        said = f"{word} on the suite ({_by_test(test.suites)}: {p_equals(test.p)})"
        which = f"{test.arm} against {test.baseline}{_with(test.model)}"
        told.append(f"{which} {said}, points resolved: {'; '.join(parts)}.")
    for (baseline, model, suites), of in open_.items():
        each = ", ".join(f"{test.arm} {p_equals(test.p)}" for test in of)
        told.append(f"Not shown to depend on the suite ({_by_test(suites)}), against {baseline}{_with(model)}: {each}.")
    return told


def _by_test(suites: int) -> str:
    return f"{suites} suites; permutation of Cochran's Q, exploratory"


def _effect(contrast: Contrast) -> str:
    estimate, interval = contrast.estimate or 0.0, f"{percent(contrast.confidence)} interval {_interval(contrast)}"
    if contrast.effect == "difference":
        return f"{100 * estimate:+.1f} points resolved ({interval})"
    if contrast.low is None:
        clusters = _CLUSTERS.get(contrast.clustered_by, "clusters")
        interval = f"no interval: that of a ratio needs {FEWEST_OF_RATIO} {clusters}"
    return f"{estimate:.{1 if estimate >= 2 else 2}f} times the {_NOUNS[contrast.measure]} ({interval})"


def verdicts(comparison: Judged) -> list[str]:
    """Say what was declared and is shown, and what is not; where nothing was declared, what stands out."""
    if comparison.exploratory:
        return [_exploratory(comparison)]
    claims = [c for c in comparison.contrasts if c.measure in comparison.family and c.estimate is not None]
    several = len({c.model for c in comparison.contrasts}) > 1
    shown = [f"{_claim(c, comparison)} ({p_equals(c.p_holm)})" + _by_model(c, several) for c in claims if c.holds]
    worse = [c for c in claims if c.measure == "resolved" and _is_worse(c, comparison)]
    shown += [f"{c.arm} resolves fewer tasks than {c.baseline}" + _by_model(c, several) for c in worse]
    open_: dict[str, list[Contrast]] = {}
    for c in claims:
        if not c.holds and not _refuted(c, comparison):
            of_any = _claim(replace(c, arm="an arm"), comparison) + _by_model(c, several)
            open_.setdefault(of_any, []).append(c)
    not_shown: list[str] = []
    for of_any, of in open_.items():
        if len(of) == 1:
            why = _why_not(of[0], comparison)
            not_shown.append(f"that {_claim(of[0], comparison)} ({why}){_by_model(of[0], several)}")
        else:
            not_shown.append(f"that {of_any}: {', '.join(f'{c.arm} ({_why_not(c, comparison)})' for c in of)}")
    return [f"{word}: {'; '.join(of)}." for word, of in (("Shown", shown), ("Not shown", not_shown)) if of]


def _exploratory(comparison: Judged) -> str:
    told = [c for c in comparison.contrasts if c.measure in {*_TOLD, *comparison.family}]
    known = [
        (c.low, 1.0 if c.effect == "ratio" else 0.0, c.high) for c in told if c.low is not None and c.high is not None
    ]
    apart = sum(not low <= none <= high for low, none, high in known)
    why = comparison.departs or "this analysis was not declared before the run"
    return f"Exploratory: {why}, so no claim is judged; {apart} of {len(known)} intervals exclude no difference."


def _where(contrast: Contrast, comparison: Judged) -> str:
    seeds = f" ({contrast.pairs} pairs of task and seed)" if contrast.pairs != contrast.tasks else ""
    suites = f" of {len(contrast.shares)} suites pooled by pairs" if contrast.shares else ""
    return f"{contrast.tasks} task{'s' * (contrast.tasks != 1)}{seeds}{suites}{_with(contrast.model)}"


def _with(model: str) -> str:
    return f" with {model}" if model else ""


def _by_model(contrast: Contrast, several: bool) -> str:
    return f", with {contrast.model}" if several else ""


def _claim(contrast: Contrast, comparison: Judged) -> str:
    """The claim of a contrast; where it is that the arms differ and they do, in which direction."""
    arm, baseline, more = contrast.arm, contrast.baseline, "more"
    if contrast.effect == "ratio":
        noun = _NOUNS[contrast.measure]
        if not contrast.holds:
            return f"{arm} and {baseline} differ in {noun}"
        if (contrast.estimate or 1.0) < 1:
            more = "fewer" if contrast.measure in _COUNTED else "less"
        return f"{arm} uses {more} {noun} than {baseline}"
    if comparison.margin:
        return f"{arm} resolves {contrast.claim} tasks than {baseline}"
    if not contrast.holds:
        return f"{arm} and {baseline} differ in how many tasks they resolve"
    return f"{arm} resolves {'more' if (contrast.estimate or 0) > 0 else 'fewer'} tasks than {baseline}"


def _why_not(contrast: Contrast, comparison: Judged) -> str:
    p, margin = p_equals(contrast.p_holm), comparison.margin
    ahead = contrast.effect == "ratio" or (contrast.estimate or 0.0) > margin
    if not margin or ahead or not at_the_floor(contrast, margin):
        return p
    floor = f"{contrast.baseline} itself resolves {100 * (contrast.baseline_value or 0):.1f} %"
    return (
        f"{p}; {floor}, so that a loop which resolves nothing would be as close: harder or easier tasks, not more of "
        "them, are needed"
    )


def _is_worse(contrast: Contrast, comparison: Judged) -> bool:
    """An arm that is worse is said to be worse, also where the claim was another one, if test and interval say so."""
    p, high = contrast.p_difference, contrast.high
    return bool(comparison.margin) and p is not None and p <= 1 - contrast.confidence and high is not None and high < 0


def _refuted(contrast: Contrast, comparison: Judged) -> bool:
    """Return whether it is shown to be worse by more than the margin: no number of tasks would then show the claim."""
    beyond = contrast.high is not None and contrast.high < -comparison.margin
    return contrast.measure == "resolved" and beyond and _is_worse(contrast, comparison)


def _unknown(contrast: Contrast) -> str:
    what = "whether tasks were resolved" if contrast.measure == "resolved" else _NOUNS[contrast.measure]
    if contrast.effect == "ratio" and contrast.used > 1:
        return f"there is no ratio of {what}, as it is 0 in a pair"
    return f"{what} is not known for enough pairs to compare them"


def _missing(group: Sequence[Contrast]) -> list[str]:
    """Say what is missing, in words; nothing where all pairs are complete."""
    one = group[0]
    worst = max(group, key=lambda c: c.missing if c.estimate is not None else -1)
    if worst.missing == 0 or worst.estimate is None:
        return []
    by = f"{worst.missing_here} in {one.arm}, {worst.missing_baseline} in {one.baseline}"
    policy = _POLICY[worst.policy].format(arm=one.arm)
    return [f"{worst.missing} of {worst.pairs} pairs are missing ({by}): {policy}"]


def methods(comparison: Judged) -> str:
    """By which methods the intervals and p values of a comparison were found."""
    one = comparison.contrasts[0]
    claims = sum(c.p_holm is not None for c in comparison.contrasts)
    several = (
        f"p values are Holm's over {claims} claims, whose intervals are those of the levels at which Holm's procedure "
        "judged them (so that each excludes what is claimed against just where its p is small enough)"
    )
    holm = several if claims > 1 else "there is one claim" if claims else "none is adjusted"
    left = f" {comparison.left_out} units are left out, as not every arm was tried on them." * bool(comparison.left_out)
    if one.clusters == one.used:
        by = "tasks count as independent"
    else:
        by = f"pairs are clustered by {one.clustered_by} ({one.clusters} cluster{'s' * (one.clusters != 1)})"
    few = ", since there are too few repositories or families to cluster by" if one.too_few_clusters else ""
    shares = ", ".join(f"{suite or '(no suite)'} {100 * share:.3g} %" for suite, share in one.shares.items())
    weights = f" Pooled effects weigh the suites so: {shares}." if shares else ""
    ratios = f" Ratios are the {GEOMETRIC}." if len(comparison.contrasts) > 1 else ""
    return f"Intervals are {100 * (1 - comparison.alpha):g} % ones, {holm}, and {by}{few}.{ratios}{weights}{left}"


def _points(effect: SuiteEffect) -> str:
    if effect.estimate is None or effect.low is None or effect.high is None:
        return "not known"
    return f"{100 * effect.estimate:+.1f} ({100 * effect.low:.1f} to {100 * effect.high:.1f})"


def _interval(contrast: Contrast) -> str:
    if contrast.low is None or contrast.high is None:
        return "not known"
    scale, digits = (100, 1) if contrast.effect == "difference" else (1, 2)
    return f"{scale * contrast.low:.{digits}f} to {scale * contrast.high:.{digits}f}"
