"""Pages in a real browser: links, figures, search and filters, that nothing gets out or in, and that all can read them.

axe-core is the usual checker of accessibility.  `.ci/run` fetches it from npm; `npm install --no-save axe-core` in the
repository does the same by hand.  Nothing is fetched when a test runs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from browser import MISSING, SETTLED, Browser, chromium
from loopback import Answering, Loopback
from made_run import HOSTILE
from made_study import QUESTION

from rlm_loop import DirectAgent, Suite, Task
from rlm_loop.accounting import Ledger
from rlm_loop.actions import Display, Observation, RunCode
from rlm_loop.messages import Reply, Usage
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.report import viewing
from rlm_loop.study import Study

pytestmark = pytest.mark.skipif(chromium() is None, reason=MISSING)
Pages = dict[str, Path | str]
TITLE = "t · tool-loop · answered"
#: How many lines of the table over a folder are shown.
LINES = "[...document.querySelectorAll('#rows tr')].filter(r => r.offsetHeight).length"
AXE = Path(os.environ.get("RLM_LOOP_AXE") or Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js")
#: Every rule that is broken: its name, the first place, and what would mend it.
BROKEN = "axe.run().then(said => said.violations.map(v => [v.id, v.nodes[0].html, v.nodes[0].failureSummary]))"
OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"

#: What axe does not ask for: what a part, a table and a mark is called.
NAMED = """['section:not([aria-labelledby])', 'table.data:not(:has(caption))', 'table.data th:not([scope])',
    '.episodes a:not([aria-label])'].filter(nameless => document.querySelector(nameless))"""
WIDTHS = {"run": (320, 400, 768, 1400), "study": (320, 768, 1400), "table": (390, 1280), "episode": (390, 1280)}


def test_nothing_is_asked_for_and_nothing_is_refused(browser: Browser, pages: Pages) -> None:
    for name, title in (("run", TITLE), ("study", QUESTION)):
        browser.open(pages[name])
        browser.value(SETTLED)
        asked = [url for url in browser.requests() if not url.startswith("data:image/svg+xml;base64,")]
        assert (asked, browser.complaints()) == ([Path(pages[name]).resolve().as_uri()], [])
        assert browser.value("[document.title, document.scripts.length]") == [title, 1]


def test_html_that_a_cell_made_fetches_nothing_in_a_notebook(browser: Browser, tmp_path: Path) -> None:
    """A picture or a frame in it would tell its server who reads the notebook, and when."""
    asked: list[str] = []

    class Away(Answering):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with Loopback(Away) as server:
        made = (
            "<b>made by a cell</b><img src=AWAY/a><iframe src=AWAY/b></iframe><link rel=stylesheet href=AWAY/c>"
            "<style>@import url(AWAY/d);b{background:url(AWAY/e)}</style><object data=AWAY/f></object>"
            "<video src=AWAY/g autoplay></video><link rel=prefetch href=AWAY/h><script>fetch('AWAY/i')</script>"
            '<meta http-equiv=refresh content="0;url=AWAY/j"><form action=AWAY/k><input autofocus></form>'
        ).replace("AWAY", server.address)
        svg = f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{server.address}/l"/></svg>'
        seen = Observation(displays=(Display("text/html", made), Display("image/svg+xml", svg)))
        ran = Outcome("x", Stop.ANSWERED, (Turn(1, Reply("x"), (RunCode("x"),), (seen,)),), Usage(), Ledger())
        (tmp_path / "shown.html").write_text(ran._repr_html_(), encoding="utf-8")
        browser.open(tmp_path / "shown.html")
        browser.value(SETTLED)
    assert asked == []


def test_what_a_model_wrote_does_nothing_and_a_script_that_got_in_would_not_run(
    browser: Browser, pages: Pages, tmp_path: Path
) -> None:
    text = Path(pages["run"]).read_text(encoding="utf-8")
    added = "<script>document.title = 'taken'</script><img src='https://example.org/x.png' onerror='document.title=1'>"
    (tmp_path / "other.html").write_text(text.replace("<footer>", added + "<footer>"), encoding="utf-8")
    browser.open(tmp_path / "other.html")
    browser.value(SETTLED)
    assert browser.value("document.title") == TITLE
    assert any("Content Security Policy" in said for said in browser.complaints())
    browser.open(pages["run"])
    assert browser.value("[document.title, document.images.length]") == [TITLE, 0]
    assert HOSTILE in browser.value("document.getElementById('t6').textContent")


def test_links_lead_to_their_steps_and_all_are_opened_and_closed(browser: Browser, pages: Pages) -> None:
    browser.open(pages["run"], fragment="#n0.13.1")  # in a closed place
    browser.value(SETTLED)
    assert browser.value("document.getElementById('n0.13.1').checkVisibility()")
    browser.open(pages["long run"], fragment="#t22")
    browser.value(SETTLED)
    assert browser.value("document.querySelector('#t22 > details').open")
    assert 0 <= browser.value("document.getElementById('t22').getBoundingClientRect().top") < 200
    browser.open(pages["long run"])
    for count in (60, 0):
        browser.value("document.getElementById('fold').click()")
        browser.value(SETTLED)
        assert browser.value("document.querySelectorAll('.step:not(.first) > details[open]').length") == count


def test_every_figure_is_drawn_and_a_mark_leads_to_the_page_of_its_run(browser: Browser, pages: Pages) -> None:
    browser.open(pages["study"])
    assert browser.value("document.images.length") >= 4
    assert browser.value("[...document.images].every(i => i.complete && i.naturalWidth > 300 && i.alt.length > 40)")
    link = browser.value("document.querySelector('.episodes .crashed a').getAttribute('href')")
    assert re.fullmatch(r"study_traces/[\w/%.+-]+\.html", link)
    browser.open(Path(pages["study"]).parent / link)
    assert "easy-3" in browser.value("document.querySelector('h1').textContent")
    assert browser.complaints() == []


def test_the_answer_is_on_one_screen_all_else_behind_clicks_and_tasks_are_found(browser: Browser, pages: Pages) -> None:
    browser.open(pages["study"], width=1280)
    assert browser.value("document.querySelector('.beside').getBoundingClientRect().bottom < innerHeight")
    assert not browser.value("[...document.querySelectorAll('.part')].some(part => part.open)")
    browser.value("document.querySelector('.contents a[href=\"#arms\"]').click()")
    browser.value(SETTLED)
    assert browser.value("document.getElementById('arms').closest('details').open")
    shown = "[...document.querySelectorAll('.episodes .unit')].filter(r => r.offsetHeight).length"
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    browser.value("document.getElementById('apart').click()")
    apart = browser.value(shown)
    assert 0 < apart < 12
    assert browser.value("document.getElementById('found').textContent") == f"{apart} of 12"
    browser.value("document.getElementById('apart').click()")
    browser.value("document.getElementById('find').focus()")
    browser.type("HARD-1")
    assert browser.value(shown) == 1


def fill(browser: Browser, box: str, value: str) -> None:
    there = f"document.getElementById('{box}')"
    browser.value(f"{there}.value = {value!r}; {there}.dispatchEvent(new Event('input', {{bubbles: true}})); 0")
    browser.value(SETTLED)


def test_the_table_filters_and_keeps_it_in_its_address(browser: Browser, pages: Pages) -> None:
    browser.open(pages["table"])
    browser.until(f"{LINES} === 38")
    fill(browser, "arm", "careful")
    fill(browser, "state", "not resolved")
    assert browser.value("document.getElementById('count').textContent") == "1 of 38 episodes"
    address = browser.value("location.search")
    assert address == "?arm=careful&state=not+resolved"
    browser.open(f"{pages['table']}{address}")
    browser.until(f"{LINES} === 1")
    browser.value("document.getElementById('reset').click()")
    assert browser.value(f"[{LINES}, location.search]") == [38, ""]
    fill(browser, "q", "HARD-2 careful")
    assert browser.value(LINES) == 1
    browser.value("document.querySelector('#rows a').click()")
    browser.until("document.querySelector('.around a') && document.readyState === 'complete'")
    browser.value("document.querySelector('.around a').click()")
    browser.until(f"location.pathname === '/' && document.readyState === 'complete' && {LINES} === 38")
    fill(browser, "q", "nobody is called so")
    assert "No episode is like that" in browser.value("document.getElementById('none').textContent")
    assert browser.complaints() == []


def test_score_answer_and_expected_are_on_a_screen_whatever_the_models_are_called(
    browser: Browser, tmp_path: Path
) -> None:
    for number in range(2):
        name = f"openai-compatible:qwen3-coder-30b-a3b-{number}@http://inference.cluster.example.org:8000/v1"
        arms = {"an-arm-with-a-name": DirectAgent(model=ScriptedModel(["4", "what it says " * 9], name=name))}
        tasks = [Task(f"a-task-with-a-long-name-{n}", "What?", "what is expected " * 9) for n in range(2)]
        Study(f"study {number}", arms, Suite("a/suite/of/some/name", tasks)).run(tmp_path / str(number), False)
    with viewing(tmp_path) as url:
        browser.open(url, width=1280)
        browser.until(f"{LINES} === 4")
        ends = "[...document.querySelectorAll('th')].map(t => [t.textContent, t.getBoundingClientRect().right])"
        right = dict(browser.value(ends))
    assert all(right[name] < 1280 for name in ("Task", "Score", "Answer", "Expected", "Arm"))
    assert right["Model"] > right["Expected"]


def test_a_column_sorts(browser: Browser, pages: Pages) -> None:
    browser.open(pages["table"])
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
def test_a_running_folder_is_followed(browser: Browser, tmp_path: Path, pages: Pages) -> None:
    with viewing(tmp_path) as url:
        browser.open(url)
        browser.until("document.getElementById('none').textContent.includes('no run here yet')")
        lines = (Path(pages["run"]).parent / "runs" / "42.jsonl").read_bytes().splitlines(True)
        (tmp_path / "run.jsonl").write_bytes(b"".join(lines[:-1]))
        browser.until(f"{LINES} === 1")
        assert "running" in browser.value("document.querySelector('#rows td.state').textContent")
        browser.value("document.querySelector('#rows a').click()")
        browser.until("document.querySelector('.stop .mark')?.textContent === 'unfinished'")
        (tmp_path / "run.jsonl").write_bytes(b"".join(lines))
        browser.until("document.querySelector('.stop .mark')?.textContent === 'answered'")


# -- every kind of page, for everybody: narrow and wide, light and dark, without scripts, for those who listen


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
