"""The page of one episode: that of its run, with the ways to the episodes before and after it."""

from __future__ import annotations

import json

from markupsafe import Markup

from rlm_loop.report.run.head import title
from rlm_loop.report.run.judged import judged
from rlm_loop.report.run.page import linked, run_html, shades_of
from rlm_loop.report.run.reading import found_in_bytes
from rlm_loop.report.run.sealed import sealed
from rlm_loop.report.run.view import RunView
from rlm_loop.report.templates import macros
from rlm_loop.report.view.episodes import ListedEpisode
from rlm_loop.report.view.index import FolderContents, RunIndex
from rlm_loop.traces.trace import TraceError


def view_of(index: RunIndex, episode: ListedEpisode) -> RunView:
    """The run of an episode.  Raises `TraceError` where its trace is not there or holds no such run."""
    found = found_in_bytes(index.trace(episode), episode.path)
    ids = [one.record.id for one in found]
    if episode.run in ids:
        return RunView(found[len(ids) - 1 - ids[::-1].index(episode.run)], 0)
    counting = [one for one in found if one.record.aborted is None] or found
    return RunView(counting[-1], 0)


def episode_page(index: RunIndex, found: FolderContents, episode: ListedEpisode) -> str:
    """The page of an episode.  One whose trace cannot be read has its row, and says what is missing."""
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
        connect=True,
        title=name,
        runs=inner,
        nav=_around(found, episode),
        keys=pieces.keys(),
        foot="This page comes from this machine and asks no other.",
        name=episode.path or episode.name,
    )


def _around(found: FolderContents, episode: ListedEpisode) -> Markup:
    """Before and after in the order of the folder."""
    ids = [one.id for one in found.episodes]
    place = ids.index(episode.id) if episode.id in ids else 0
    before, after = ids[place - 1] if place else "", ids[place + 1] if place + 1 < len(ids) else ""
    return macros("view/around.html").around(before, after, episode["state"] == "running")


def _row(episode: ListedEpisode) -> str:
    return json.dumps(episode.row, indent=1, ensure_ascii=False, default=str) if episode.row else ""
