"""What a person reads comes first in a search, before references, notebooks and findings, which hold more words."""

from __future__ import annotations

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

#: How much more a hit counts, by the tab of its page.
BOOST = {"Start": 8, "How to": 6, "Explanation": 4}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    tab: Any = page.ancestors[-1].title if page.ancestors else ""
    page.meta["search"] = {"boost": BOOST.get(tab, 1), **page.meta.get("search", {})}
    return markdown
