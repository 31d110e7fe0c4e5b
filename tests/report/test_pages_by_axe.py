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

#: The texts without enough contrast to what is behind them: at least 4.5 to 1, as WCAG 2.2 asks for (1.4.3, level AA).
FAINT = """(() => {
  const light = (c) => c.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const parts = (text) => { const n = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith('color(') ? n.map(v => v * 255) : n; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > .5) return c.slice(0, 3); } return [255, 255, 255]; };
  document.querySelectorAll('details').forEach(d => d.open = true);
  const poor = new Set();
  for (const e of document.querySelectorAll('main *, .bar *')) {
    if (e.closest('svg') || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(parts(getComputedStyle(e).color).slice(0, 3)), light(behind(e))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) poor.add(`${e.tagName}.${e.className}: ${ratio.toFixed(2)}`);
  }
  return [...poor]; })()"""
#: What holds on every page for those who listen to it.
NAMED = {
    "one main part": "document.querySelectorAll('main').length === 1",
    "one heading of the page": "document.querySelectorAll('h1').length === 1",
    "it is the first": "document.querySelector('main h1, main h2, main h3').tagName === 'H1'",
    "each id once": "(ids => new Set(ids).size === ids.length)([...document.querySelectorAll('[id]')].map(e => e.id))",
    "sections": "[...document.querySelectorAll('section')].every(s => s.getAttribute('aria-labelledby'))",
    "what is used": """[...document.querySelectorAll('main input, main select, button, .bar input')].every(
        e => e.textContent.trim() || e.ariaLabel || (e.labels && e.labels.length))""",
    "tables": "[...document.querySelectorAll('table.data')].every(t => t.caption)",
    "heads of tables": "[...document.querySelectorAll('table.data th')].every(h => h.scope)",
    "marks of episodes": "[...document.querySelectorAll('.episodes a')].every(a => a.getAttribute('aria-label'))",
}


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
def test_light_and_dark_keep_contrast(browser: Browser, pages: Pages, name: str) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    seen: dict[bool, str] = {}
    for dark in (False, True):
        browser.open(pages[name], dark=dark)
        browser.value("localStorage.clear(); delete document.documentElement.dataset.theme")
        browser.value(SETTLED)
        seen[dark] = browser.value(colour)
        assert browser.value(FAINT) == []
    assert seen[False] != seen[True]
    browser.value("document.getElementById('theme').click()")
    assert browser.value(colour) == seen[False]
    browser.value("localStorage.clear()")


@pytest.mark.parametrize("name", WIDTHS)
def test_everything_has_a_name_for_those_who_listen(browser: Browser, pages: Pages, name: str) -> None:
    browser.open(pages[name])
    browser.value(SETTLED)
    assert [what for what, holds in NAMED.items() if not browser.value(holds)] == []
    assert browser.complaints() == []


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
