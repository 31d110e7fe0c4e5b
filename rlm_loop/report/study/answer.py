"""The answer of a study on one screen: a sentence, a figure and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlm_loop.report.study.drawings import ANSWERING, Figured, drawings
from rlm_loop.report.tables.comparison import with_interval
from rlm_loop.report.tables.study_tables import count
from rlm_loop.report.tables.table import Table
from rlm_loop.study import ArmSummary, Comparison, Contrast, Results, StudyError

_Contrasts = Mapping[tuple[str, str, str], Contrast]


@dataclass(frozen=True)
class Answer:
    """One sentence a model, what of the declared claims is shown, the table of the arms, and a figure or none."""

    sentences: Sequence[str]
    verdicts: Sequence[str]
    table: Table
    figure: Figured | None


def answer_of(
    results: Results, baseline: str, compared: Comparison | None, sentences: Sequence[str] | None = None
) -> Answer:
    """What the rows say first.  `compared` is the comparison with `baseline`, `sentences` are others than the usual."""
    found = results.summary(baseline)
    of = {(c.model, c.arm, c.measure): c for c in compared.contrasts} if compared else {}
    several = len(results.models) > 1
    usual = [
        _sentence([s for s in found if s.model == model], of) + (f" ({model})" if several else "") + "."
        for model in results.models
    ]
    differs = [f"points against {baseline}", "prompt tokens", f"times {baseline}'s"] if compared else ["prompt tokens"]
    heads, rows = ["model", "arm", "resolved", *differs], [[s.model, s.arm, *_row(s, of)] for s in found]
    table = Table("Arms, each on the same tasks", heads, rows, (), 2).without_same("model")
    verdicts = () if compared is None else compared.verdicts
    return Answer(usual if sentences is None else sentences, verdicts, table, _figure(results))


def _sentence(found: Sequence[ArmSummary], of: _Contrasts) -> str:
    """Which arm resolves most, and how the best arm beside the baseline differs from it, with intervals."""
    known = sorted((s for s in found if s.rate is not None), key=lambda s: -(s.rate or 0))
    if not known:
        return "No task of any arm was judged"
    first = known[0]
    if len(known) == 1:
        return f"{first.arm} resolves {_rate(first)}"
    best = [s.arm for s in known if s.rate == first.rate]
    said = f"{' and '.join(best)} resolve{'s' * (len(best) == 1)} most: "
    other = next((s for s in known if s.arm != s.baseline), first)
    contrast = of.get((other.model, other.arm, "resolved"))
    if contrast is None or contrast.estimate is None:
        return said + _rate(first)
    said += f"{first.resolved:,} of {first.judged:,} tasks"  # an arm's own interval says nothing of a difference
    tokens = of.get((other.model, other.arm, "input_tokens"))
    cost = f", {with_interval(tokens, '()')} times the prompt tokens" if tokens and tokens.estimate is not None else ""
    return f"{said}; {other.arm} against {other.baseline}: {with_interval(contrast, '()')} points{cost}"


def _rate(s: ArmSummary) -> str:
    share, low, high = (f"{100 * value:.0f}" for value in (s.rate or 0, s.low, s.high))
    return f"{s.resolved:,} of {s.judged:,} tasks ({share} %, {low} to {high})"


def _row(s: ArmSummary, of: _Contrasts) -> list[str]:
    resolved, tokens = f"{s.resolved:,} of {s.judged:,}", count(s.input_tokens)
    if not of:
        return [resolved, tokens]
    pair = (of.get((s.model, s.arm, measure)) for measure in ("resolved", "input_tokens"))
    less, ratio = ("baseline" if s.arm == s.baseline else with_interval(c, "()") if c else "-" for c in pair)
    return [resolved, less, tokens, ratio]


def _figure(results: Results) -> Figured | None:
    try:
        drawn = drawings(results, results.arms[0], only=ANSWERING)[0]
    except StudyError:  # the figures' own section says why
        return None
    return None if drawn.why else drawn
