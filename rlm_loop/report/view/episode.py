"""The page of one episode: that of its run, with the ways to its neighbours and to the same task in other arms."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup

from rlm_loop.report.run.head import title
from rlm_loop.report.run.judged import judged, state_kind
from rlm_loop.report.run.page import linked, run_html, shades_of
from rlm_loop.report.run.reading import found_in_bytes
from rlm_loop.report.run.sealed import sealed
from rlm_loop.report.run.view import RunView
from rlm_loop.report.templates import macros
from rlm_loop.report.view.episodes import ListedEpisode
from rlm_loop.report.view.index import FolderContents, RunIndex, neighbours
from rlm_loop.traces.trace import TraceError


def view_of(index: RunIndex, episode: ListedEpisode) -> RunView:
    """The run of an episode.  Raises `TraceError` where its trace is not there or holds no such run."""
    found = found_in_bytes(index.trace(episode), episode.path)
    ids = [one.record.id for one in found]
    if episode.run in ids:
        return RunView(found[len(ids) - 1 - ids[::-1].index(episode.run)], 0)
    counting = [one for one in found if one.record.aborted is None] or found
    return RunView(counting[-1], 0)


def episode_page(index: RunIndex, found: FolderContents, episode: ListedEpisode, *, still: bool = False) -> str:
    """The page of an episode.  One whose trace cannot be read has its row, and says what is missing.

    A `still` page is a file beside the still table: it leads to no page that a server would have to make.
    """
    pieces = macros("view/around.html")
    try:
        view = view_of(index, episode)
        shades, colours = shades_of([view])
        inner = linked(run_html(view, shades, row=episode.row))
        name = title(view)
    except TraceError as error:
        inner, colours, name = (
            pieces.without(episode.name, judged(episode.row), str(error), _row(episode)),
            "",
            episode.name,
        )
    return sealed(
        "run/page.html",
        "view/view.css",
        "run/page.js",
        "view/episode.js",
        colours=colours,
        connect=not still,
        title=name,
        runs=inner,
        nav=_around(found, episode, still),
        keys=pieces.keys(),
        foot=pieces.foot(still),
        name=episode.path or episode.name,
    )


def _around(found: FolderContents, episode: ListedEpisode, still: bool) -> Markup:
    """Before and after in the order of the folder, and the same task elsewhere."""
    place = next((n for n, one in enumerate(found.episodes) if one.id == episode.id), 0)
    before = found.episodes[place - 1].id if place else ""
    after = found.episodes[place + 1].id if place + 1 < len(found.episodes) else ""
    others = list(neighbours(found, episode)) if episode["task"] and episode["suite"] else []
    rows: list[dict[str, Any]] = [
        {
            "id": one.id,
            "arm": one["arm"],
            "state": one["state"],
            "kind": state_kind(one["state"]),
            "answer": one["answer"],
            "tokens": "" if one["input"] is None else f"{one['input'] + (one['output'] or 0):,}",
            "steps": one["steps"],
            "here": one.id == episode.id,
        }
        for one in sorted([episode, *others], key=lambda one: str(one["arm"]))
    ]
    return macros("view/around.html").around(
        before, after, rows if others else [], episode.id, episode["state"] == "running" and not still, still
    )


def _row(episode: ListedEpisode) -> str:
    return json.dumps(episode.row, indent=1, ensure_ascii=False, default=str) if episode.row else ""
