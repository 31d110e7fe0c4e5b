"""The page: one HTML file that holds everything it needs, and asks the network for nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rlm_loop.accounting.tree import ROOT
from rlm_loop.report.figures.colours import cause_colour
from rlm_loop.report.run.head import head, title
from rlm_loop.report.run.judged import judged
from rlm_loop.report.run.marked import is_patch, parts
from rlm_loop.report.run.reading import RunInFile, found_in, mapping
from rlm_loop.report.run.sealed import sealed
from rlm_loop.report.run.steps import OUTPUT, Steps, raw_events, token_list, tried, value_block
from rlm_loop.report.run.view import Prefix, RunView, spans_of
from rlm_loop.traces.reader import Run, chosen


def run_page(trace: str | Path, *, run: Run = None, row: Mapping[str, Any] | None = None) -> str:
    """A recorded run as one HTML page, to be written to a file and opened in any browser.

    `run` is which run of the file (see `traces.read`); without it the page holds all of them.  Whatever a model, a tool
    or a file of the workspace wrote is shown as text.  Texts are clipped, with a note, where they are very long.
    `row` is the row of a study whose episode the run is: its score and the expected answer then stand above the steps.
    A torn, damaged or unfinished trace, and one of another version, is shown as far as it can be read, and the page
    says what is missing.
    Raises `TraceError` for a file that cannot be read or holds no event, and for a run that it does not hold.
    """
    return page_of(found_in(trace), Path(trace).name, run=run, row=row)


def page_of(
    found: Sequence[RunInFile],
    name: str,
    *files: str,
    run: Run = None,
    row: Mapping[str, Any] | None = None,
    **values: Any,
) -> str:
    """The page of the runs of a file as they were read; `files` and `values` as in `sealed`."""
    views = views_of(found, name, run)
    shades, colours = shades_of(views)
    several = len(views) > 1
    runs = list[Markup]()
    counting = [view for view in views if view.found.record.aborted is None] or views
    for view in views:
        inner = run_html(view, shades, row=row if view is counting[-1] else None)
        ident = f"{view.prefix.text}run"
        opened = view is counting[-1]
        runs.append(parts().article(ident, title(view), view.number, opened, inner) if several else inner)
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


def views_of(found: Sequence[RunInFile], trace: str | Path, run: Run) -> list[RunView]:
    """The run that is meant (see `run_page`), or all of the file, each with ids of its own.  Raises `TraceError`."""
    numbers: Sequence[int] = range(len(found))
    if run is not None:
        numbers = [chosen(trace, [f.record for f in found], run)]
    views = [RunView(found[number], number) for number in numbers]
    return views if len(views) == 1 else [replace(view, prefix=Prefix(f"r{view.number}-")) for view in views]


def run_html(view: RunView, shades: Mapping[str, str], *, row: Mapping[str, Any] | None = None) -> Markup:
    """One run as the inside of a page; `shades` are the classes of `shades_of`."""
    pre = view.prefix.text
    sections = (
        ("tokens", "Tokens by cause", tried(lambda: token_list(_sums(view), shades))),
        ("steps", "Steps", tried(lambda: parts().steps(Steps(view, shades).of(ROOT)))),
        ("settings", "Settings", _settings(view)),
        ("strange", "Events of an unknown shape", raw_events(view.found.strange[:50], view.limit)),
    )
    return parts().run(
        judged(row) + tried(lambda: head(view)),
        view.found.notes,
        tried(lambda: _result(view)),
        [(pre + ident, label, inner) for ident, label, inner in sections],
    )


def _result(view: RunView) -> Markup:
    """The answer, and what was collected beside it."""
    end, found = view.end or {}, list[str]()
    if end.get("answer") is not None:
        label = "Answer" if view.stop == "answered" else "Last text or pending answer; no answer was given"
        kind = "answer" if view.stop == "answered" else "output"
        found.append(value_block(label, _unwrapped(end["answer"]), view.limit, kind))
    artifact = _unwrapped(end.get("artifact"))
    if artifact:
        label = "Patch" if isinstance(artifact, str) and is_patch(artifact) else "Collected"
        found.append(value_block(label, artifact, view.limit, "output"))
    if end.get("evidence"):
        shown = json.dumps(end["evidence"], indent=1, ensure_ascii=False)
        found.append(value_block("Evidence", shown, view.limit, "output"))
    return Markup("").join(found)


def _unwrapped(value: Any) -> Any:
    """What a trace could only keep as its `repr` is that text."""
    known = mapping(value)
    return known["repr"] if set(known) == {"repr"} else value


def _settings(view: RunView) -> str:
    known = {k: v for k, v in view.start.items() if k not in ("event", "question")}
    if len(known) < 2:
        return ""
    return parts().folded("As recorded", raw_events([known], view.limit))


def _sums(view: RunView) -> dict[str, int]:
    """The tokens of the whole run by cause, sub-calls included, and what was written."""
    sums: dict[str, int] = {}
    for one in view.spent:
        for cause, tokens in [*one.causes.items(), (OUTPUT, one.usage.output_tokens or 0)]:
            sums[cause] = sums.get(cause, 0) + tokens
    return sums


def shades_of(views: Sequence[RunView]) -> tuple[dict[str, str], str]:
    """A CSS class for each segment, and the style sheet of their colours."""
    names: set[str] = set()
    for view in views:
        names |= {cause for one in view.spent for cause in one.causes}
        names |= {cause for body in view.bodies.values() for _, cause in spans_of(body)}
    shades: dict[str, str] = {}
    rules: list[str] = []
    for number, name in enumerate([*sorted(names), OUTPUT]):
        shades[name] = f"c{number}"
        rules.append(f".c{number}{{--c:{'var(--output)' if name == OUTPUT else cause_colour(name)}}}")
    return shades, "".join(rules)
