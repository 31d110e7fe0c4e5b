"""The page in a real browser: what it does with links and themes, and that nothing gets out or in."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browser import MISSING, SETTLED, Browser, chromium
from contrast import CONTRAST
from made_run import HOSTILE, everything, long_run

from rlm_loop.accounting import Ledger
from rlm_loop.actions import Display, Observation, RunCode
from rlm_loop.messages import Reply, Usage
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.report import run_page

pytestmark = pytest.mark.skipif(chromium() is None, reason=MISSING)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    out = folder / "run.html"
    out.write_text(run_page(everything(folder / "run.jsonl")), encoding="utf-8")
    return out


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    out = folder / "run.html"
    out.write_text(run_page(long_run(folder / "run.jsonl", 60)), encoding="utf-8")
    return out


def test_nothing_is_asked_for_and_nothing_is_refused(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.value(SETTLED)
    assert browser.requests() == [page.resolve().as_uri()]
    assert browser.complaints() == []


def test_what_a_model_wrote_does_nothing(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.value("document.title") == "t · tool-loop · answered"
    assert browser.value("document.scripts.length") == 1
    assert browser.value("document.images.length") == 0
    assert HOSTILE in browser.value("document.getElementById('t6').textContent")


def test_html_that_a_cell_made_fetches_nothing_in_a_notebook(browser: Browser, tmp_path: Path) -> None:
    """A picture or a frame in it would tell its server who reads the notebook, and when."""
    asked: list[str] = []

    class Away(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Away)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    away = f"http://127.0.0.1:{server.server_address[1]}"
    made = (
        "<b>made by a cell</b><img src=AWAY/a><iframe src=AWAY/b></iframe><link rel=stylesheet href=AWAY/c>"
        "<style>@import url(AWAY/d);b{background:url(AWAY/e)}</style><object data=AWAY/f></object>"
        "<video src=AWAY/g autoplay></video><link rel=prefetch href=AWAY/h><script>fetch('AWAY/i')</script>"
        '<meta http-equiv=refresh content="0;url=AWAY/j"><form action=AWAY/k><input autofocus></form>'
    ).replace("AWAY", away)
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{away}/l"/></svg>'
    seen = Observation(displays=(Display("text/html", made), Display("image/svg+xml", svg)))
    shown = tmp_path / "shown.html"
    ran = Outcome("x", Stop.ANSWERED, (Turn(1, Reply("x"), (RunCode("x"),), (seen,)),), Usage(), Ledger())
    shown.write_text(ran._repr_html_(), encoding="utf-8")
    browser.open(shown)
    browser.value(SETTLED)
    server.shutdown()
    server.server_close()
    assert asked == []


def test_a_script_that_got_in_would_not_run(browser: Browser, page: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.html"
    text = page.read_text(encoding="utf-8")
    added = "<script>document.title = 'taken'</script><img src='https://example.org/x.png' onerror='document.title=1'>"
    other.write_text(text.replace("<footer>", added + "<footer>"), encoding="utf-8")
    browser.open(other)
    browser.value(SETTLED)
    assert browser.value("document.title") == "t · tool-loop · answered"
    assert any("Content Security Policy" in said for said in browser.complaints())


@pytest.mark.parametrize("width", [320, 400, 768, 1400])
def test_nothing_is_wider_than_the_screen(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    browser.value(SETTLED)
    assert browser.value("document.documentElement.scrollWidth") <= width


def test_a_link_leads_to_its_step(browser: Browser, long: Path) -> None:
    browser.open(long, fragment="#t42")
    browser.value(SETTLED)
    assert browser.value("document.querySelector('#t42 > details').open")
    top = browser.value("document.getElementById('t42').getBoundingClientRect().top")
    assert 0 <= top < 200


def test_all_steps_are_opened_and_closed(browser: Browser, long: Path) -> None:
    browser.open(long)
    opened = "document.querySelectorAll('.step:not(.first) > details[open]').length"
    for count in (60, 0):
        browser.value("document.getElementById('fold').click()")
        browser.value(SETTLED)
        assert browser.value(opened) == count


def test_a_link_into_a_closed_place_opens_it(browser: Browser, page: Path) -> None:
    browser.open(page, fragment="#n0.13.1")
    browser.value(SETTLED)
    assert browser.value("document.getElementById('n0.13.1').checkVisibility()")


def test_light_and_dark(browser: Browser, page: Path) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    seen: dict[bool, str] = {}
    for dark in (False, True):
        browser.open(page, dark=dark)
        browser.value("localStorage.clear(); delete document.documentElement.dataset.theme")
        seen[dark] = browser.value(colour)
    assert seen[False] != seen[True]
    browser.value("document.getElementById('theme').click()")
    assert browser.value(colour) == seen[False]
    browser.value("localStorage.clear()")


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(browser: Browser, page: Path, dark: bool) -> None:
    """At least 4.5 to 1, as WCAG 2.2 asks for (1.4.3, level AA)."""
    browser.open(page, dark=dark)
    assert browser.value(CONTRAST) == []


def test_it_can_be_read_without_scripts(browser: Browser, page: Path) -> None:
    browser.scripts(on=False)
    try:
        browser.open(page)
        assert not browser.value("document.documentElement.classList.contains('js')")
        assert browser.value("document.querySelector('#t1 pre').offsetHeight") > 0
        assert browser.value("getComputedStyle(document.querySelector('.bar')).display") == "none"
    finally:
        browser.scripts(on=True)


def test_everything_has_a_name_for_those_who_listen(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.value("document.querySelectorAll('main').length") == 1
    unnamed = "[...document.querySelectorAll('section')].filter(s => !s.getAttribute('aria-labelledby')).length"
    assert browser.value(unnamed) == 0
    assert browser.value("[...document.querySelectorAll('button')].every(b => b.textContent.trim() || b.ariaLabel)")
