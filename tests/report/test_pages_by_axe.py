"""Every kind of page, for everybody: narrow and wide, light and dark, without scripts, for those who listen, under axe.

axe-core is the usual checker of accessibility.  `.ci/run` fetches it from npm; `npm install --no-save axe-core` in the
repository does the same by hand.  Nothing is fetched when a test runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browser import MISSING, SETTLED, Browser, chromium

pytestmark = pytest.mark.skipif(chromium() is None, reason=MISSING)
Pages = dict[str, Path | str]
AXE = Path(os.environ.get("RLM_LOOP_AXE") or Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js")
#: Every rule that is broken: its name, the first place, and what would mend it.
BROKEN = "axe.run().then(said => said.violations.map(v => [v.id, v.nodes[0].html, v.nodes[0].failureSummary]))"
OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"

#: What axe does not ask for: what a part, a table and a mark is called.
NAMED = """['section:not([aria-labelledby])', 'table.data:not(:has(caption))', 'table.data th:not([scope])',
    '.episodes a:not([aria-label])'].filter(nameless => document.querySelector(nameless))"""
WIDTHS = {"run": (320, 400, 768, 1400), "study": (320, 768, 1400), "table": (390, 1280), "episode": (390, 1280)}


@pytest.mark.parametrize("name", WIDTHS)
def test_nothing_is_wider_than_the_screen(browser: Browser, pages: Pages, name: str) -> None:
    for width in WIDTHS[name]:
        browser.open(pages[name], width=width)
        browser.value(SETTLED)
        browser.value(OPEN_ALL)
        browser.value(SETTLED)
        assert browser.value("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", WIDTHS)
def test_a_page_is_light_or_dark_and_its_parts_have_names(browser: Browser, pages: Pages, name: str) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    seen: dict[bool, str] = {}
    for dark in (False, True):
        browser.open(pages[name], dark=dark)
        browser.value("localStorage.clear(); delete document.documentElement.dataset.theme")
        browser.value(SETTLED)
        seen[dark] = browser.value(colour)
    assert seen[False] != seen[True]
    browser.value("document.getElementById('theme').click()")
    assert browser.value(colour) == seen[False]
    browser.value("localStorage.clear()")
    assert (browser.value(NAMED), browser.complaints()) == ([], [])


@pytest.mark.parametrize(("name", "there", "gone"), [("run", "#t1 pre", ".bar"), ("study", ".episodes .unit", ".find")])
def test_it_can_be_read_without_scripts(browser: Browser, pages: Pages, name: str, there: str, gone: str) -> None:
    browser.scripts(on=False)
    try:
        browser.open(pages[name])
        assert not browser.value("document.documentElement.classList.contains('js')")
        assert browser.value(f"document.querySelector('{there}').offsetHeight") > 0
        assert browser.value(f"getComputedStyle(document.querySelector('{gone}')).display") == "none"
    finally:
        browser.scripts(on=True)


@pytest.mark.skipif(not AXE.exists(), reason="npm install --no-save axe-core, or RLM_LOOP_AXE=axe.min.js")
@pytest.mark.parametrize("name", [*WIDTHS, "long run", "compare"])
def test_axe_finds_nothing(browser: Browser, pages: Pages, name: str) -> None:
    for width, dark in ((390, True), (1280, False)):  # on a phone in the dark, and on a desk in the light
        browser.open(pages[name], width=width, dark=dark)
        browser.value(OPEN_ALL)
        browser.value(f"{AXE.read_text(encoding='utf-8')}; 0")
        browser.value(SETTLED)
        assert browser.value(BROKEN) == []
