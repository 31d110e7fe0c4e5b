"""The pages over a folder of runs in a real browser: table, filters, addresses, phone and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe import needs_axe, violations
from browser import MISSING, SETTLED, Browser, chromium
from contrast import CONTRAST
from made_study import made_study

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.report import viewing

pytestmark = pytest.mark.skipif(chromium() is None, reason=MISSING)

LINES = "[...document.querySelectorAll('#rows tr')].filter(r => r.offsetHeight).length"
COUNT = "document.getElementById('count').textContent"
CELL = "```python\nprint(6 * 7)\n```"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("all")
    made_study(root / "study")
    for answer in ("41", "42"):
        agent = ToolLoopAgent(model=ScriptedModel([CELL, f"```python\nfinal_answer = {answer}\n```"]))
        agent.run("How many?", trace=root / f"{answer}.jsonl")
    return root


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with viewing(folder) as found:
        yield found


def fill(browser: Browser, box: str, value: str) -> None:
    there = f"document.getElementById('{box}')"
    browser.value(f"{there}.value = {value!r}; {there}.dispatchEvent(new Event('input', {{bubbles: true}})); 0")
    browser.value(SETTLED)


def test_the_table_filters_and_keeps_it_in_its_address(browser: Browser, url: str) -> None:
    browser.open(url)
    browser.until(f"{LINES} === 38")
    fill(browser, "arm", "careful")
    fill(browser, "state", "not resolved")
    assert browser.value(COUNT) == "1 of 38 episodes"
    address = browser.value("location.search")
    assert address == "?arm=careful&state=not+resolved"
    browser.open(f"{url}{address}")
    browser.until(f"{LINES} === 1")
    browser.value("document.getElementById('reset').click()")
    assert browser.value(LINES) == 38
    assert browser.value("location.search") == ""
    fill(browser, "q", "HARD-2 careful")
    assert browser.value(LINES) == 1
    browser.value("document.querySelector('#rows a').click()")
    browser.until("document.querySelector('.around a') && document.readyState === 'complete'")
    browser.value("document.querySelector('.around a').click()")
    browser.until(f"location.pathname === '/' && document.readyState === 'complete' && {LINES} === 38")
    fill(browser, "q", "nobody is called so")
    assert "No episode is like that" in browser.value("document.getElementById('none').textContent")
    assert browser.complaints() == []


def test_a_column_sorts(browser: Browser, url: str) -> None:
    browser.open(url)
    browser.until(f"{LINES} === 38")
    tokens = "[...document.querySelectorAll('#rows td.tokens')].map(c => Number(c.textContent.replace(',', '')))"
    click = "document.querySelector('[data-sort=tokens]').click()"
    as_read = browser.value(tokens)
    known = sorted(n for n in as_read if n)
    for order, said in ((known[::-1], "descending"), (known, "ascending")):
        browser.value(click)
        assert [n for n in browser.value(tokens) if n] == order
        assert browser.value("document.querySelector('th[aria-sort]').ariaSort") == said
    browser.value(click)
    assert browser.value(tokens) == as_read


@pytest.mark.slow
def test_a_running_folder_is_followed(browser: Browser, tmp_path: Path, folder: Path) -> None:
    with viewing(tmp_path) as url:
        browser.open(url)
        browser.until("document.getElementById('none').textContent.includes('no run here yet')")
        lines = (folder / "42.jsonl").read_bytes().splitlines(True)
        (tmp_path / "run.jsonl").write_bytes(b"".join(lines[:-1]))
        browser.until(f"{LINES} === 1")
        assert "running" in browser.value("document.querySelector('#rows td.state').textContent")
        browser.value("document.querySelector('#rows a').click()")
        browser.until("document.querySelector('.stop .mark')?.textContent === 'unfinished'")
        (tmp_path / "run.jsonl").write_bytes(b"".join(lines))
        browser.until("document.querySelector('.stop .mark')?.textContent === 'answered'")


PAGES = ("", "e")


def address(browser: Browser, url: str, page: str) -> str:
    browser.open(f"{url}?q=careful+hard-2")
    browser.until(f"{LINES} === 1")
    first = browser.value("document.querySelector('#rows tr').id")
    ways = {
        "": "",
        "e": f"e/{first}.html",
    }
    return url + ways[page]


@pytest.mark.parametrize("page", PAGES)
def test_everybody_can_read_it(browser: Browser, url: str, page: str) -> None:
    there = address(browser, url, page)
    for width in (390, 1280):
        browser.open(there, width=width)
        browser.value(SETTLED)
        assert browser.value("document.documentElement.scrollWidth") <= width
    for dark in (False, True):
        browser.open(there, dark=dark)
        browser.value(SETTLED)
        assert browser.value(CONTRAST) == []
    assert browser.value("document.querySelectorAll('h1').length") == 1
    nameless = """[...document.querySelectorAll('main input, main select, main button, .bar button, .bar input')]
        .filter(e => !(e.textContent.trim() || e.ariaLabel || (e.labels && e.labels.length))).length"""
    assert browser.value(nameless) == 0
    levels = "[...document.querySelectorAll('main h1, main h2, main h3')].map(h => Number(h.tagName[1]))"
    found = browser.value(levels)
    assert found[0] == 1
    twice = "[...document.querySelectorAll('[id]')].map(e => e.id).filter((id, n, all) => all.indexOf(id) !== n)"
    assert browser.value(twice) == []
    assert browser.complaints() == []


@needs_axe
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing(browser: Browser, url: str, page: str) -> None:
    assert violations(browser, address(browser, url, page)) == []
