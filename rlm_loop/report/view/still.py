"""The same pages as files that need no server: to hand on, or to keep beside a paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from rlm_loop.report.view.episode import episode_page
from rlm_loop.report.view.episodes import ListedEpisode
from rlm_loop.report.view.index import RunIndex
from rlm_loop.report.view.table import table_page

Episodes = Iterable[ListedEpisode]


def write_view(
    folder: str | Path, out: str | Path, *, watched: Callable[[Episodes], Episodes] = lambda episodes: episodes
) -> Path:
    """Write the table of a folder as `index.html` and a page for each episode below `e/`; returns the table.

    Each file holds all that it shows and asks the network for nothing.  What a server has to make is left out: the
    search in transcripts, two runs side by side, the exact prompt of a turn.  `watched` sees the episodes pass (a
    progress bar).  Raises `FileExistsError` where `out` holds files that are not of such pages, and `OSError`.
    """
    index, there = RunIndex(Path(folder)), Path(out)
    table = there / "index.html"
    if there.exists() and any(there.iterdir()) and not table.is_file():
        raise FileExistsError(f"{there} holds other files; name a folder that is empty or not there")
    found = index.found()
    (there / "e").mkdir(parents=True, exist_ok=True)
    for episode in watched(found.episodes):
        page = episode_page(index, found, episode, still=True)
        (there / "e" / f"{episode.id}.html").write_text(page, encoding="utf-8", errors="replace")
    table.write_text(table_page(found, index.name, still=True), encoding="utf-8", errors="replace")
    return table
