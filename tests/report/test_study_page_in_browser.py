"""The report in a real browser: figures, search and themes; and that nothing gets out or in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import MISSING, SETTLED, Browser, chromium
from contrast import CONTRAST
from made_study import made_study

from rlm_loop.report import write_study_page

pytestmark = pytest.mark.skipif(chromium() is None, reason=MISSING)

SHOWN = "[...document.querySelectorAll('.episodes .unit')].filter(r => r.offsetHeight).length"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    return write_study_page(made_study(folder / "study"), folder / "report.html")


def test_nothing_is_asked_for_and_nothing_is_refused(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.value(SETTLED)
    asked = [url for url in browser.requests() if not url.startswith("data:image/svg+xml;base64,")]
    assert asked == [report.resolve().as_uri()]
    assert browser.complaints() == []
    assert browser.value("document.title") == "Is the careful loop as good as the hasty one?"


def test_every_figure_is_drawn_and_described(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.value("document.images.length") >= 4
    assert browser.value("[...document.images].every(i => i.complete && i.naturalWidth > 300 && i.alt.length > 40)")


def test_a_mark_leads_to_the_page_of_its_run(browser: Browser, report: Path) -> None:
    browser.open(report)
    link = browser.value("document.querySelector('.episodes .crashed a').getAttribute('href')")
    assert re.fullmatch(r"report_traces/[\w/%.+-]+\.html", link)
    browser.open(report.parent / link)
    assert "easy-3" in browser.value("document.querySelector('h1').textContent")
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [320, 768, 1400])
def test_nothing_is_wider_than_the_screen(browser: Browser, report: Path, width: int) -> None:
    browser.open(report, width=width)
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.value("document.documentElement.scrollWidth") <= width


def test_the_answer_is_on_one_screen_and_all_else_is_behind_a_click(browser: Browser, report: Path) -> None:
    browser.open(report, width=1280)
    assert browser.value("document.querySelector('.beside').getBoundingClientRect().bottom < innerHeight")
    assert not browser.value("[...document.querySelectorAll('.part')].some(part => part.open)")
    browser.value("document.querySelector('.contents a[href=\"#arms\"]').click()")
    browser.value(SETTLED)
    assert browser.value("document.getElementById('arms').closest('details').open")


def test_tasks_are_found_and_those_where_arms_differ(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    differing = "document.getElementById('apart').click()"
    browser.value(differing)
    apart = browser.value(SHOWN)
    assert 0 < apart < 12
    assert browser.value("document.getElementById('found').textContent") == f"{apart} of 12"
    browser.value(differing)
    browser.value("document.getElementById('find').focus()")
    browser.type("HARD-1")
    assert browser.value(SHOWN) == 1


def test_light_and_dark_keep_contrast(browser: Browser, report: Path) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    seen: dict[bool, str] = {}
    for dark in (False, True):
        browser.open(report, dark=dark)
        browser.value("localStorage.clear(); delete document.documentElement.dataset.theme")
        seen[dark] = browser.value(colour)
        assert browser.value(CONTRAST) == []
    assert seen[False] != seen[True]
    browser.value("document.getElementById('theme').click()")
    assert browser.value(colour) == seen[False]
    browser.value("localStorage.clear()")


def test_it_can_be_read_without_scripts(browser: Browser, report: Path) -> None:
    browser.scripts(on=False)
    try:
        browser.open(report)
        assert browser.value(SHOWN) == 12
        assert browser.value("getComputedStyle(document.querySelector('.find')).display") == "none"
    finally:
        browser.scripts(on=True)


def test_everything_has_a_name_for_those_who_listen(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.value("[...document.querySelectorAll('section')].every(s => s.getAttribute('aria-labelledby'))")
    assert browser.value("[...document.querySelectorAll('table.data')].every(t => t.caption)")
    scopes = "[...document.querySelectorAll('table.data th')].every(h => h.scope)"
    assert browser.value(scopes)
    assert browser.value("[...document.querySelectorAll('.episodes a')].every(a => a.getAttribute('aria-label'))")
