"""The parts of a study's page as values for its template: head, answer, figures and episodes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from rlm_loop.report.run.marked import brief
from rlm_loop.report.run.page import state
from rlm_loop.report.tables.comparison import levels, with_interval
from rlm_loop.report.tables.study_tables import count
from rlm_loop.report.tables.table import Table
from rlm_loop.report.trace_files import has_traces
from rlm_loop.study import ArmSummary, Comparison, Contrast, Results, StudyError
from rlm_loop.study.compare.contrast import percent
from rlm_loop.study.compare.pair_keys import PairKey, pair_key
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.store.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MOST = 200  # characters of a heading


class Head(NamedTuple):
    """The line above the heading, the heading and the text below it, facts by name, and notes on what is missing."""

    over: str
    title: str
    text: Sequence[str]
    facts: Mapping[str, Any]
    notes: Sequence[str]


def head_of(results: Results, baseline: str) -> Head:
    """The head of a study's page: the study's own question, else its name."""
    question = [" ".join(part.split()) for part in str(results.lock.get("question") or "").split("\n\n")]
    first, *more = [*filter(None, question)] or [results.name or "A study"]
    over = " · ".join(filter(None, ("recorded study" if results.recorded else "study", results.name)))
    asked = 'The study states no question; give it one: Study(question="...").'
    notes = [*([] if any(question) else [asked]), *_unfinished(results)]
    text = [first, *more] if len(first) > _MOST else more
    return Head(over, brief(first, _MOST), text, _study_facts(results, baseline), notes)


def head_of_comparison(compared: Comparison, notes: Sequence[str]) -> Head:
    """The head of the page of a comparison of any tables."""
    arms = list(dict.fromkeys(c.arm for c in compared.contrasts))
    models = sorted({str(row["model"]) for row in compared.rows if row.get("model")})
    facts = {"arms": ", ".join(arms), "baseline": compared.baseline, "model": ", ".join(models)}
    return Head("comparison", f"{' and '.join(arms)} against {compared.baseline}", [], facts, notes)


def _study_facts(results: Results, baseline: str) -> dict[str, Any]:
    source = results.provenance
    units = {pair_key(row) for row in results.rows}
    suites = list(dict.fromkeys(row["suite"] for row in results.rows))
    cost = [row["cost"] for row in results.rows if row["cost"] is not None]
    return {
        "model": source["model"],
        "arms": ", ".join(results.arms),
        "baseline": baseline,
        "tasks": f"{len({(s, t) for _, s, t, _ in units}):,} of {', '.join(suites)}" if suites else "",
        "seeds": ", ".join(map(str, source["seeds"])),
        "episodes": f"{len(results):,}",
        "arms differ in": _differences(results),
        "isolation": ", ".join(sorted({str(row["isolation"]) for row in results.rows if row.get("isolation")})),
        "run": source["date"],
        "command": "; ".join(source["command"]),
        "machine": "; ".join(", ".join(map(str, machine.values())) for machine in source["machine"]),
        "cost": f"{sum(cost):,.2f}" if any(cost) else "",
    }


def _differences(results: Results) -> str:
    """The factors in which the arms' first requests differ (`rlm-loop study check` shows each difference)."""
    found = results.fairness_check
    if found is None:
        return "not recorded"
    factors = list(dict.fromkeys(d.factor for d in found.differences)) or ["nothing"]
    undeclared = "" if found.fair else ", not declared: " + ", ".join(dict.fromkeys(d.factor for d in found.undeclared))
    return ", ".join(factors) + undeclared


def _unfinished(results: Results) -> list[str]:
    """Return notes of episodes that crashed, and of what has not been run, or cannot be compared."""
    lock = results.lock
    runs = sum(map(len, lock.get("tasks", {}).values())) * len(lock.get("seeds", ()))
    planned = runs * sum(map(len, lock.get("arms", {}).values()))
    if not results.rows:
        return ["Nothing has been run yet."]
    notes = [results.crashes] if results.crashes else []
    if planned > len(results):
        notes.append(f"The study is not finished: {len(results):,} of {planned:,} episodes have been run.")
    if len(results.arms) < 2:
        notes.append("There is one arm, so there is nothing to compare it with.")
    elif not results.complete_pairs:
        notes.append("No task was tried by every arm yet, so there is nothing to compare.")
    return notes


_Contrasts = Mapping[tuple[str, str, str], Contrast]


class Answer(NamedTuple):
    """A sentence for each model, the declared claims that are shown, the table of the arms, and a figure."""

    sentences: Sequence[str]
    verdicts: Sequence[str]
    table: Table
    figure: Figured | None


def answer_of(results: Results, baseline: str, compared: Comparison | None, figure: Figured | None) -> Answer:
    """Say what the rows say first.  `compared` is the comparison with `baseline`, where there is another arm."""
    found = results.summary(baseline)
    of = {(c.model, c.arm, c.measure): c for c in compared.contrasts} if compared else {}
    several = len(results.models) > 1
    sentences = [
        _sentence([s for s in found if s.model == model], of) + (f" ({model})" if several else "") + "."
        for model in results.models
    ]
    points, times = ([f"points against {baseline}"], [f"times {baseline}'s, per task"]) if compared else ([], [])
    heads = ["model", "arm", "resolved", *points, "prompt tokens", *times]
    drawn = [(c.arm, c.measure, c.confidence) for c in of.values() if c.measure in ("resolved", "input_tokens")]
    notes = [f"In brackets: {levels(drawn)}."] if compared else []
    rows = [[s.model, s.arm, *_row(s, of)] for s in found]
    table = Table("Arms, each on the same tasks", heads, rows, notes, 2).without_same("model")
    return Answer(sentences, () if compared is None else compared.verdicts, table, figure)


def _sentence(found: Sequence[ArmSummary], of: _Contrasts) -> str:
    """Say which arm resolves most, and how the best arm beside the baseline differs from it, with intervals."""
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
    level = contrast.confidence
    points = f"{with_interval(contrast, level, '()')} points"
    if tokens is not None and tokens.estimate is not None:
        points += f", {with_interval(tokens, level, '()')} times the prompt tokens"
    return f"{said}; {other.arm} against {other.baseline} ({percent(level)} intervals): {points}"


def _rate(s: ArmSummary) -> str:
    share, low, high = (f"{100 * value:.0f}" for value in (s.rate or 0, s.low, s.high))
    return f"{s.resolved:,} of {s.judged:,} tasks ({share} %, 95 % interval {low} to {high})"


def _row(s: ArmSummary, of: _Contrasts) -> list[str]:
    resolved, tokens = f"{s.resolved:,} of {s.judged:,}", count(s.input_tokens)
    if not of:
        return [resolved, tokens]
    pair = (of.get((s.model, s.arm, measure)) for measure in ("resolved", "input_tokens"))
    less, ratio = (
        "baseline" if s.arm == s.baseline else with_interval(c, c.confidence, "()") if c else "-" for c in pair
    )
    return [resolved, less, tokens, ratio]


#: Pixels of the page for an inch of a figure: a little larger than life, since a screen is read from further away.
_SCALE = 112
#: Lines of resolve rates, and arms of overhead by turn, that one figure has room for.
_LINES, _ARMS = 40, 3
#: The figure that stands beside the answer, and is not drawn again below.
ANSWERING = "Resolved against tokens"


class Figured(NamedTuple):
    """A figure on the page: its name, its address, its words, and its size in pixels."""

    name: str
    address: Markup
    words: str
    width: int
    height: int


def drawings(results: Results, baseline: str, compared: Comparison | None) -> list[Figured]:
    """Every figure that the study has numbers for.  Raises `StudyError` where matplotlib is missing."""
    from rlm_loop.report.figures import style

    found: list[Figured] = []
    with style():  # where matplotlib is missing, this is the error
        for name, make in _chosen(results, baseline, compared):
            with contextlib.suppress(StudyError):
                found.append(_figured(name, make()))
    return found


def _chosen(results: Results, baseline: str, compared: Comparison | None) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """The figures that the study has numbers for, by name, not drawn yet."""
    from rlm_loop.report import figures

    arms, suites = len(results.arms), {row["suite"] for row in results.rows}
    by_suite = len(suites) > 1 and (len(suites) + 1) * arms <= _LINES
    alone = compared is None  # beside paired differences an arm's own interval would be taken for one of them
    yield "Tasks resolved", lambda: figures.resolve_rates(results, by_suite=by_suite, intervals=alone)
    yield ANSWERING, lambda: figures.resolve_against_tokens(results, intervals=alone)
    if compared is not None:
        yield "Paired differences", lambda: figures.paired_differences(results, intervals=compared.frame())
    yield "Where the prompt tokens go", lambda: figures.stacked_causes(results)
    if has_traces(results) and any(row["steps"] > 1 for row in results.complete_pairs):
        yield _overhead(results, baseline)
    for factor, values in _factors(results).items():
        if len(values) > 1:
            yield f"Response to {factor}", lambda this=factor: figures.factor_response(results, this, intervals=alone)


def _overhead(results: Results, baseline: str) -> tuple[str, Callable[[], Figure]]:
    """The baseline and the first other arms, in the order of the study."""
    from rlm_loop.report.figures import overhead_by_turn
    from rlm_loop.report.figures.overhead import mean_session

    room = max(1, _ARMS // len(results.models))
    others = [arm for arm in results.arms if arm != baseline][: room - 1]
    shown = [arm for arm in results.arms if arm in (baseline, *others)]
    part = f", {', '.join(shown)} of {len(results.arms)} arms" if len(shown) < len(results.arms) else ""
    name = f"Overhead by turn, mean of the runs that reach it{part}"
    return name, lambda: overhead_by_turn(mean_session(results.only(*shown)))


def _factors(results: Results) -> dict[str, list[Any]]:
    """The ablation factors of the study with their values."""
    found: dict[str, list[Any]] = {}
    for row in results.rows:
        for name, value in (row.get("factors") or {}).items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return found


def _figured(name: str, made: Figure) -> Figured:
    from rlm_loop.report.figures import alt_text, data_uri

    width, height = (round(_SCALE * float(side)) for side in made.get_size_inches())
    return Figured(name, Markup(data_uri(made)), alt_text(made), width, height)


_MARKS = {"resolved": "✓", "not resolved": "✗", "not judged": "?", "crashed": "crashed", "not run": "–"}


class EpisodeCell(NamedTuple):
    """An episode: its state and the mark of it, the words for it, the address of its page, and its tokens."""

    state: str
    mark: str
    said: str
    link: str = ""
    tokens: str = ""


class TaskRow(NamedTuple):
    """The episodes of a task, arm by arm; `apart` where the arms differ."""

    name: str
    apart: bool
    cells: Sequence[EpisodeCell]


class Episodes(NamedTuple):
    """The table: a group of tasks for each suite (and model), under the names of the arms."""

    arms: Sequence[str]
    groups: Sequence[tuple[str, Sequence[TaskRow]]]
    legend: str
    caption: str


def episodes_of(results: Results, links: Mapping[str, str]) -> Episodes:
    """All units of the study and its plan; `links` are addresses of trace pages by the name of the trace."""
    rows = {(row["arm"], pair_key(row)): row for row in results.rows}
    arms = list(dict.fromkeys([*results.arms, *results.lock.get("arms", {})]))
    units = sorted(_planned(results), key=lambda u: (u[0], u[1]))
    several = len({seed for *_, seed in units}) > 1
    groups: list[tuple[str, list[TaskRow]]] = []
    for (model, suite), of in groupby(units, key=lambda u: (u[0], u[1])):
        label = " · ".join(filter(None, (model if len(results.models) > 1 else "", suite)))
        tasks: list[TaskRow] = []
        for unit in of:
            cells = [_shown(rows.get((arm, unit)), arm, unit[2], links) for arm in arms]
            name = f"{unit[2]}, seed {unit[3]}" if several else str(unit[2])
            tasks.append(TaskRow(name, len({cell.state for cell in cells}) > 1, cells))
        groups.append((label, tasks))
    apart = sum(task.apart for _, tasks in groups for task in tasks)
    legend = ", ".join(f"{mark} {name}" for name, mark in _MARKS.items() if mark != name)
    legend += "; beside it the tokens, in and out together." + " A mark leads to the page of its run." * bool(links)
    return Episodes(arms, groups, legend, f"Episodes, {apart:,} where arms differ")


def _planned(results: Results) -> list[PairKey]:
    """Every unit (model, suite, task, seed): those of the rows, then those of the plan without any."""
    models, suites, seeds = (results.lock.get(name, {}) for name in ("models", "tasks", "seeds"))
    planned = [
        (model, suite, task, seed)
        for model, (suite, tasks) in product(models, suites.items())
        for task, seed in product(tasks, seeds)
    ]
    return list(dict.fromkeys([*map(pair_key, results.rows), *planned]))


def _shown(row: Row | None, arm: str, task: str, links: Mapping[str, str]) -> EpisodeCell:
    now = state(row)
    if row is None:
        return EpisodeCell(now, _MARKS[now], f"{arm}: not run")
    tokens = total_tokens(row)
    steps = f"{row['steps']} steps" if row["steps"] is not None else ""
    facts = row.get("error") or row.get("stop"), steps, row.get("score_reason")
    said = f"{arm} on {task}: {now}; {', '.join(str(fact) for fact in facts if fact)}"
    link = links.get(row.get("trace") or "", "")
    return EpisodeCell(now, _MARKS[now], said, link, "" if tokens is None else f"{tokens:,}")
