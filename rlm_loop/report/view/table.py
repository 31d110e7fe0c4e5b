"""The table of all episodes: one page that sorts and filters in the browser."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup

from rlm_loop.report.run.sealed import sealed
from rlm_loop.report.view.episodes import FIELDS
from rlm_loop.report.view.index import FolderContents


def table_page(found: FolderContents, name: str) -> str:
    """The table of what a folder holds; `name` is that of the folder."""
    return sealed(
        "view/table.html",
        "view/view.css",
        "view/table.js",
        connect=True,
        title=f"{name} · {len(found.episodes):,} episodes",
        name=name,
        data=Markup(inert(table_data(found))),
    )


def table_data(found: FolderContents) -> dict[str, Any]:
    """The episodes as the page reads them: `fields`, a list for each episode, and notes on what cannot be read."""
    rows = [episode.cells for episode in found.episodes]
    return {"fields": FIELDS, "rows": rows, "notes": found.notes, "version": found.version}


def inert(value: Any) -> str:
    """A value as JSON that cannot end the element of HTML that holds it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
