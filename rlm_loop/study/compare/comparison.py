"""Arms compared with a baseline on the same tasks: what is shown, and how surely."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from datetime import date
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from rlm_loop.study.compare.columns import Rows, models_told_apart, table_of
from rlm_loop.study.compare.contrast import MEASURES, TOTAL, Contrast, Judged, at_the_floor
from rlm_loop.study.compare.effects import rate_effect, ratio_effect
from rlm_loop.study.compare.noise import NoiseFloor, noise_floors
from rlm_loop.study.compare.pair_keys import PairKey, complete_and_incomplete, crash_sentence
from rlm_loop.study.compare.pairs import Paired, Pairs
from rlm_loop.study.compare.sentences import by_suite, differences, methods, verdicts
from rlm_loop.study.compare.suites import Flip, Interaction, SuiteEffect, flips, interactions, suite_effects
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.analysis import Analysis, departs, read
from rlm_loop.study.statistics import mean
from rlm_loop.study.store.rows import finished, frame_of
from rlm_loop.traces.values import drawing

if TYPE_CHECKING:
    import pandas as pd


#: The level of all claims together, and of plain intervals.
ALPHA = 0.05


class Comparison(Judged):
    """All arms against one baseline (`compare`), and what can be said of them."""

    def frame(self) -> pd.DataFrame:
        """The rows: one for each model, arm and measure; the columns are the fields of `Contrast`."""
        return frame_of([asdict(c) for c in self.contrasts], [f.name for f in fields(Contrast)])

    @cached_property
    def differences(self) -> list[str]:
        """For each model and arm the differences from the baseline, each with its interval, in one sentence."""
        return differences(self)

    @cached_property
    def verdicts(self) -> list[str]:
        """The declared claims that are shown, and those that are not; else how many intervals stand out."""
        return verdicts(self)

    @cached_property
    def suites(self) -> list[SuiteEffect]:
        """The difference in the resolve rate suite by suite, for each model and arm."""
        return suite_effects(self)

    @cached_property
    def interactions(self) -> list[Interaction]:
        """The tests that the difference is the same in all suites, for each model and arm; empty for one suite."""
        return interactions(self)

    @cached_property
    def flips(self) -> list[Flip]:
        """The pairs that just one of the two arms resolved, in the order of the tasks."""
        return flips(self)

    @cached_property
    def noise_floors(self) -> list[NoiseFloor]:
        """The noise of each arm against itself with another seed; empty where none was run twice."""
        return noise_floors(self.rows)

    @property
    def noise(self) -> str:
        """`noise_floors` in one sentence, or that none was measured."""
        told = ", ".join(map(str, self.noise_floors))
        if not told:
            return (
                "No noise floor was measured: no arm was run twice in the same way, so how much is chance is not known."
            )
        return f"Noise floor, in pairs that differ in whether the task is resolved: run again with other seeds: {told}."

    @property
    def methods(self) -> str:
        """By which methods the intervals and p values of all arms were found, in one sentence or two."""
        return methods(self)

    @cached_property
    def before_pooling(self) -> list[str]:
        """Of each arm the difference suite by suite and the test of interaction; empty for one suite."""
        return by_suite(self.suites, self.interactions)

    @property
    def crashes(self) -> str:
        """The crashed episodes of each arm by kind, in one sentence; empty where none crashed."""
        return crash_sentence(self.rows)

    def sentences(self) -> list[str]:
        """Crashes, each suite, then all together: the differences, what is shown and what not, noise, and methods."""
        crashed = [self.crashes] if self.crashes else []
        return [*crashed, *self.before_pooling, *self.differences, *self.verdicts, self.noise, self.methods]

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """IPython's plain text: the sentences, where the record would be pages."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return drawing("rlm_loop.report.tables.comparison.comparison_html")(self)


def compare(
    results: Rows | Any,
    baseline: str | None = None,
    *,
    analysis: Analysis | None = None,
) -> Comparison:
    """Compare every arm with `baseline` on the same tasks and seeds.

    `results` are those of a study, or anybody's: a pandas or polars frame or a list of mappings, a row for each task,
    arm and seed, with columns for task, arm and resolved, and where it has them seed, suite, model, tokens, cost,
    seconds, steps, error (`columns.SPELLINGS` lists the names that are known).  Of such a table nothing was declared,
    so nothing is tested unless `analysis` says it: differences and ratios are described, with intervals
    that cover the worst and the best case of missing pairs.

    Of a study with one arm and several models the models are compared, as in a table whose arms have different ones.

    The plan is the one that the study declared, or `analysis`: a plan that is given now counts "as if declared", with
    today's date.  Without either the baseline is the first arm, and no claim is judged.  What
    differs from the declared plan, a subset of the rows, a look before all planned pairs are there, and arms or tasks
    that were added later are called exploratory.

    The claim in the resolve rate is that an arm resolves no more than the plan's margin fewer, or that the rates differ
    (a margin of 0), in all else that the arms differ.  The p values of the plan's family, over all arms and models, are
    adjusted after Holm, and their intervals have the levels at which Holm's procedure judged them.

    Raises `StudyError` for an unknown arm, where there is only one arm, and without scipy.
    """
    if not isinstance(results, Rows):
        results = table_of(results)
    planned = results.rows
    if len(results.arms) == 1 and len(results.models) > 1:  # one arm with several models: these are compared
        results = replace(results, rows=models_told_apart(planned))
    declared = analysis or read(results.lock)
    plan = declared or Analysis(**results.lock.get("defaults", {}), family=())
    if analysis is not None:
        baseline = baseline or analysis.baseline
    used = replace(plan, baseline=_checked(results, baseline))
    there = declared is not None and declared.baseline in results.arms
    expected = declared and replace(declared, baseline=declared.baseline if there else results.arms[0])
    if subset := getattr(results, "subset", ""):  # of a study's results
        departure = f"these rows are a subset of the study ({subset})"
    elif analysis is not None:
        departure = f"the plan was given to compare() on {date.today().isoformat()}, as if declared"
    else:
        departure = departs(results.lock, planned)
    every, left_out = complete_and_incomplete(results.rows)
    made = [of for model in results.models for of in _of_model(results, model, every, used)]
    return Comparison(
        contrasts=_adjusted(made, used.family, used.margin),
        baseline=str(used.baseline),
        margin=used.margin,
        missing=used.missing,
        family=tuple(used.family),
        alpha=ALPHA,
        left_out=len(left_out),
        exploratory=used != expected or bool(departure),
        departs=departure,
        rows=results.rows,
    )


def _checked(results: Rows, baseline: str | None) -> str:
    arms = results.arms
    if not arms:
        raise StudyError("there is no episode to compare yet: run the study first")
    if len(arms) < 2:
        raise StudyError(f"a comparison needs two arms; there is only {', '.join(arms)}")
    if baseline is not None and baseline not in arms:
        raise StudyError(f"there is no arm {baseline!r}; there are {', '.join(arms)}")
    return baseline or results.baseline


def _of_model(results: Rows, model: str, every: Sequence[PairKey], plan: Analysis) -> Iterator[tuple[Contrast, Pairs]]:
    """Each arm against the baseline in each measure, on the units of one model."""
    units, baseline, margin = [u for u in every if u[0] == model], str(plan.baseline), plan.margin
    tasks, paired = len({u[1:3] for u in units}), Paired(results.rows, units)
    crashed = Counter(r["arm"] for r in results.rows if r["model"] == model and not finished(r))
    shares = {suite: n / len(units) for suite, n in Counter(u[1] for u in units).items()}
    measures = (*MEASURES, TOTAL) if any(TOTAL in row for row in results.rows) else MEASURES
    for arm, measure in product((a for a in results.arms if a != baseline), measures):
        pairs, rate = paired.pairs(arm, baseline, measure), measure == "resolved"
        known = pairs.known()
        plain = Contrast(
            model=model,
            arm=arm,
            baseline=baseline,
            measure=measure,
            tasks=tasks,
            pairs=len(pairs),
            missing=pairs.missing,
            missing_here=pairs.here.count(None),
            missing_baseline=pairs.there.count(None),
            policy=plan.missing,
            effect="difference" if rate else "ratio",
            claim=f"no more than {100 * margin:g} points fewer" if rate and margin else "differs",
            clusters=len(set(pairs.clusters)),
            clustered_by=pairs.grouped_by,
            too_few_clusters=pairs.too_few,
            used=len(pairs) if len(known) else 0,
            value=mean(known.here),
            baseline_value=mean(known.there),
            shares=shares if len(shares) > 1 else {},
            crashed=crashed[arm],
            crashed_baseline=crashed[baseline],
        )
        yield _measured(plain, pairs, margin, ALPHA), pairs


def _measured(plain: Contrast, pairs: Pairs, margin: float, level: float) -> Contrast:
    """With the figures of its effect, and the interval of 1 - level."""
    if plain.effect == "difference":
        found = rate_effect(pairs, plain.policy, margin, ALPHA, level)
    else:
        found = ratio_effect(pairs, plain.policy, level)
    figures = {} if found is None else asdict(found)  # what is no number (an interval of one cluster) is not known
    known = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in figures.items()}
    return replace(plain, **known, confidence=1 - level)


def _adjusted(made: Sequence[tuple[Contrast, Pairs]], family: Sequence[str], margin: float) -> list[Contrast]:
    """p values after Holm, and the intervals that go with them."""
    from rlm_loop.study.statistics import holm, holm_levels

    claims = [c.p if c.measure in family else None for c, _ in made]
    judged: list[Contrast] = []
    for (c, pairs), p, level in zip(made, holm(claims), holm_levels(claims, ALPHA), strict=True):
        wide = c if level == ALPHA else _measured(c, pairs, margin, level)
        judged.append(replace(wide, p_holm=p, holds=_holds(wide, p, margin)))
    return judged


def _holds(contrast: Contrast, p: float | None, margin: float) -> bool:
    """A claim holds where the adjusted p says so, and where the baseline could be missed at all."""
    if p is None or p > ALPHA or contrast.low is None or contrast.high is None:
        return False
    return contrast.effect == "ratio" or not margin or not at_the_floor(contrast, margin)
