"""The page of a run: one HTML file that holds everything it needs, and asks the network for nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rlm_loop.accounting.tree import ROOT
from rlm_loop.agents.past_run import value_of
from rlm_loop.report.figures.style import cause_colour
from rlm_loop.report.notebook.formatting import counted, number
from rlm_loop.report.run.marked import brief, is_patch, parts, plain_text
from rlm_loop.report.run.steps import Steps, raw_events, token_list, value_block
from rlm_loop.report.run.view import OUTPUT, RunView, by_cause, mapping, spans_of
from rlm_loop.report.templates import sealed
from rlm_loop.study.store.rows import finished
from rlm_loop.traces.reader import Run, RunRecord, read, read_all
from rlm_loop.traces.redact import redactor
from rlm_loop.traces.trace import TraceError


def run_page(trace: str | Path, *, run: Run = None, row: Mapping[str, Any] | None = None) -> str:
    """A recorded run as one HTML page, to be written to a file and opened in any browser.

    `run` is which run of the file (see `traces.read`); without it the page holds all of them.  Whatever a model, a tool
    or a file of the workspace wrote is shown as text.  Texts are clipped, with a note, where they are very long.
    `row` is the row of a study whose episode the run is: its score and the expected answer then stand above the steps.
    A run that is under way, or was killed, is shown as far as it got.
    Raises `TraceError` as `traces.read` does, and for a file without a run.
    """
    return page_of(trace, Path(trace).name, run=run, row=row)


def page_of(
    trace: str | Path,
    name: str,
    *files: str,
    run: Run = None,
    row: Mapping[str, Any] | None = None,
    **values: Any,
) -> str:
    """The page of `run_page` under a `name`; `files` and `values` are as in `sealed`."""
    records = list(read_all(trace)) if run is None else [read(trace, run=run)]
    if not records:
        raise TraceError(f"{trace} holds no run; name a trace that rlm_loop wrote")
    try:
        return _page_of(records, name, *files, row=row, **values)
    except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError, RecursionError) as error:
        raise TraceError(f"{name} is damaged, or of another version: {type(error).__name__}: {error}") from error


def _page_of(records: Sequence[RunRecord], name: str, *files: str, row: Mapping[str, Any] | None, **values: Any) -> str:
    hidden = redactor(os.environ)  # older traces were written by older redactors
    shown = [replace(record, events=tuple(map(hidden.value, record.events))) for record in records]
    several = len(shown) > 1
    views = [RunView(record, f"r{record.number}-" if several else "") for record in shown]
    shades, colours = shades_of(views)
    runs = list[Markup]()
    counts = ([view for view in views if view.record.aborted is None] or views)[-1]
    for view in views:
        inner = run_html(view, shades, row=row if view is counts else None)
        ident, opened = f"{view.prefix}run", view is counts
        runs.append(parts().article(ident, title(view), view.record.number, opened, inner) if several else inner)
    return sealed(
        "run/page.html",
        "run/page.js",
        *files,
        colours=colours,
        title=title(views[0]) if not several else f"{len(views)} runs of {name}",
        runs=Markup("").join(runs),
        name=name,
        **values,
    )


def run_html(view: RunView, shades: Mapping[str, str], *, row: Mapping[str, Any] | None = None) -> Markup:
    """Return a run as the inside of a page; `shades` are the classes of `shades_of`."""
    settings = {k: v for k, v in view.start.items() if k not in ("event", "question")}
    recorded = parts().folded("As recorded", raw_events([settings])) if len(settings) > 1 else ""
    sections = (
        ("tokens", "Tokens by cause", token_list(by_cause(view.spent), shades)),
        ("steps", "Steps", parts().steps(Steps(view, shades).of(ROOT))),
        ("settings", "Settings", recorded),
    )
    aborted = view.record.aborted
    return parts().run(
        judged(row) + head(view),
        "" if aborted is None else f"This run does not count: {aborted or 'it was broken off and tried again'}.",
        _result(view),
        [(view.prefix + ident, label, inner) for ident, label, inner in sections],
    )


def _result(view: RunView) -> Markup:
    """The answer, and what was collected beside it."""
    end, found = view.end or {}, list[str]()
    if end.get("answer") is not None:
        label = "Answer" if view.stop == "answered" else "Last text or pending answer; no answer was given"
        kind = "answer" if view.stop == "answered" else "output"
        found.append(value_block(label, value_of(end["answer"]), kind))
    if artifact := value_of(end.get("artifact")):
        label = "Patch" if isinstance(artifact, str) and is_patch(artifact) else "Collected"
        found.append(value_block(label, artifact, "output"))
    if end.get("evidence"):
        shown = json.dumps(end["evidence"], indent=1, ensure_ascii=False)
        found.append(value_block("Evidence", shown, "output"))
    return Markup("").join(found)


def shades_of(views: Sequence[RunView]) -> tuple[dict[str, str], str]:
    """A CSS class for each segment, and the style sheet of their colours."""
    names: set[str] = set()
    for view in views:
        names |= {cause for one in view.spent for cause in one.causes}
        names |= {cause for body in view.bodies.values() for _, cause in spans_of(body)}
    shades = {name: f"c{place}" for place, name in enumerate([*sorted(names), OUTPUT])}
    rules = [f".{c}{{--c:{'var(--output)' if n == OUTPUT else cause_colour(n)}}}" for n, c in shades.items()]
    return shades, "".join(rules)


def title(view: RunView) -> str:
    """The run in a few words, not escaped."""
    start = view.start
    return " · ".join(str(v) for v in (start.get("task"), start.get("agent"), view.stop) if v) or "a run"


def head(view: RunView) -> str:
    """The question, the stop and its reason, and the figures of a run."""
    start, end = view.start, view.end or {}
    question = str(start.get("question") or start.get("task") or "A run of rlm_loop")
    reason = str(end.get("reason") or "")
    if view.end is None:
        reason = "the trace has no end: the run was killed, or is still going on"
    return parts().head(
        over=" · ".join(str(v) for v in (start.get("agent"), start.get("model")) if v),
        question=brief(question, 200),
        whole=plain_text(question) if len(question) > 200 or "\n" in question.strip() else "",
        state={"answered": "ok", "failed": "bad", "unfinished": "open"}.get(view.stop, "warn"),
        stop=view.stop,
        reason=reason,
        facts=_facts(view),
        over_budget=end.get("over_budget"),
    )


def _facts(view: RunView) -> dict[str, Any]:
    """The figures of a run by name, with the limit where one was set."""
    start, end, used = view.start, view.end or {}, view.usage
    limits, context = mapping(start.get("budget")), mapping(start.get("context"))
    size = context.get("bytes", context.get("size"))
    below = len(view.tree.nodes) - 1

    def of(text: str | None, limit: str) -> str | None:
        most = limits.get(limit)
        return f"{text} of {most:,}" if text and isinstance(most, (int, float)) else text

    return {
        "task": start.get("task"),
        "turns": of(f"{view.turns:,}", "steps"),
        "model calls": of(f"{used.calls:,}", "calls"),
        "sub-calls": f"{below:,}" if below > 0 else None,
        "tokens": counted(used).replace(" tokens in", " in"),
        "tokens in all": of(number(used.total_tokens), "tokens") if limits.get("tokens") is not None else None,
        "cost": of(f"{used.cost:.4f}", "cost") if used.cost else None,
        "time": of(f"{end['seconds']:,.1f} s" if end.get("seconds") is not None else None, "seconds"),
        "context": f"{context.get('type', '')}, {size:,} bytes" if isinstance(size, int) else None,
        "isolation": end.get("isolation"),
        "began": datetime.fromtimestamp(start["at"], UTC).strftime("%Y-%m-%d %H:%M UTC") if start.get("at") else None,
    }


def state(row: Mapping[str, Any] | None) -> str:
    """Say what became of an episode: `resolved`, `not resolved`, `not judged`, `crashed`, or `not run`."""
    if row is None:
        return "not run"
    if not finished(row):
        return "crashed"
    return "not judged" if row["resolved"] is None else "resolved" if row["resolved"] else "not resolved"


def judged(row: Mapping[str, Any] | None) -> Markup:
    """The score of an episode, with its expected answer where the row has it; empty without a row."""
    if row is None:
        return Markup("")
    now, value = state(row), row.get("value")
    kind = {"resolved": "ok", "not resolved": "bad", "crashed": "bad"}.get(now, "warn")
    partial = isinstance(value, (int, float)) and value not in (0, 1)
    which = [str(row[name]) for name in ("arm", "model", "suite", "task") if row.get(name)]
    which += [f"{name} {row[name]}" for name in ("level", "seed") if row.get(name) is not None]
    reason = str(row.get("error") or row.get("scorer_error") or row.get("score_reason") or "")
    expected = str(row.get("expected") or "")
    return parts().judged(kind, now, f"{value:.3g}" if partial else "", reason, expected, " · ".join(which))
