"""How a run looks: what was written is shown once, escaped, and clipped with the count of what is left out."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.accounting import Ledger, Part
from rlm_loop.actions import Action, Answer, CallTool, Display, Failure, FinalAnswer, Malformed, Observation, RunCode
from rlm_loop.messages import Reply, Usage
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.report import step_text

VOID = {"br", "hr", "img"}


class Checker(HTMLParser):
    """Collects the text; fails on a tag that is not closed in order or is not one of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = "div span pre b code details summary table tbody tr td"
        assert tag in known.split(), f"<{tag}> is not ours"
        assert all(name in ("style", "class") for name, _ in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> str:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return checker.text


def turn(text: str, *pairs: tuple[Action, Observation], index: int = 1) -> Turn:
    reply = Reply(text, usage=Usage(1200, 30, 1000, cost=None))
    return Turn(index, reply, tuple(a for a, _ in pairs), tuple(o for _, o in pairs), 1.25)


def outcome(*turns: Turn, answer: object = 42, stop: Stop = Stop.ANSWERED) -> Outcome:
    ledger = Ledger()
    ledger.charge([Part("task", 0, 0, 1000), Part("template", 0, 1, 200)], Usage(1200, 30), turn=1)
    return Outcome(
        answer, stop, turns, Usage(1200, 30), ledger, reason="why <it> ended", question="How <many>?", trace="run.jsonl"
    )


CELL = turn(
    "I count.\n```python\nprint(6 * 7)\nfinal_answer = 42\n```",
    (
        RunCode("print(6 * 7)\nfinal_answer = 42\n"),
        Observation("42\n", cause="repl_output", answer=FinalAnswer(42, "object")),
    ),
)


def test_a_turn_as_text_shows_each_part_once() -> None:
    shown = step_text(CELL)
    assert shown.splitlines() == [
        "-- turn 1: 1,200 tokens in (1,000 cached), 30 out, 1.2 s",
        "I count.",
        "[code]",
        "    print(6 * 7)",
        "    final_answer = 42",
        "[output]",
        "    42",
        "[answer]",
        "    42",
    ]


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (
            (CallTool("add", '{"a": 1, "text": "x\\ny"}'), Observation("2")),
            ["[call add]", "    a=1", "    text=", "    x"],
        ),
        ((CallTool("add", "not json"), Observation("2")), ["    not json", "[result]", "    2"]),
        ((Answer("Paris"), Observation(answer=FinalAnswer("Paris"))), ["[answer]", "    Paris"]),
        (
            (Malformed("no code block"), Observation(failure=Failure("malformed", "no code block"))),
            ["[not readable]", "    no code block"],
        ),
        (
            (RunCode("1/0"), Observation("ZeroDivisionError", Failure("runtime", "it raised"), "error")),
            ["[failed: runtime]", "    ZeroDivisionError"],
        ),
        ((RunCode("x"), Observation("", Failure("skipped", "not run"))), ["[failed: skipped]", "    not run"]),
    ],
)
def test_each_kind_of_action_is_shown(pair: tuple[Action, Observation], expected: list[str]) -> None:
    lines = step_text(turn("", pair)).splitlines()
    for line in expected:
        assert lines.count(line) == 1, lines


@pytest.mark.parametrize(
    ("text", "code", "left"),
    [
        ("before\n```python\nx = 1\n```\nafter", "x = 1", "before"),
        ("```\n\nx = 1\n\n```", "x = 1\n", ""),
        ("- item\n  ```py\n  x = 1\n  ```", "x = 1", "- item"),
        ("x = 1 is prose here", "x = 1", "x = 1 is prose here"),
        ("~~~\na\nb\n~~~ \nend", "a\nb", ""),
        ("```python\nx = 1", "x = 1", ""),
    ],
)
def test_prose_stays_before_and_after_the_code(text: str, code: str, left: str) -> None:
    before, _, after = step_text(turn(text, (RunCode(code), Observation()))).partition("[code]")
    assert before.splitlines()[1:] == left.splitlines()
    assert after.endswith(("after", "end", "    x = 1", "prose here", "    x"))
    assert after.count("after") == text.count("after")


def test_an_outcome_as_html() -> None:
    page = outcome(CELL, turn("done", (Answer("done"), Observation(answer=FinalAnswer("done"))), index=2))._repr_html_()
    text = read(page)
    for part in (
        "answered",
        "why <it> ended",
        "How <many>?",
        "42",
        "turn 1: code",
        "turn 2: answer",
        "1,200",
        "run.jsonl",
    ):
        assert part in text
    assert "input tokens by cause" in text
    assert "template" in text


@given(st.text(), st.text(), st.text())
def test_nothing_that_was_written_can_become_markup(written: str, code: str, output: str) -> None:
    pair = (RunCode(code), Observation(output, cause="repl_output"))
    read(outcome(turn(written, pair), answer=written)._repr_html_())


def test_long_output_does_not_make_a_long_page() -> None:
    pair = (RunCode("print(1)"), Observation("x" * 1_000_000, cause="repl_output"))
    assert len(outcome(turn("", pair))._repr_html_()) < 20_000


def test_displays_are_shown_and_cannot_run_anything() -> None:
    displays = (
        Display("image/png", "iVBORw0KGgo="),
        Display("image/svg+xml", "<svg onload='x()'/>"),
        Display("text/html", '<b>t</b><script>x()</script>"'),
        Display("text/latex", "<$x$>"),
    )
    plotted = turn("```python\nplot()\n```", (RunCode("plot()"), Observation(displays=displays)))
    page = outcome(plotted)._repr_html_()
    assert '<img src="data:image/png;base64,iVBORw0KGgo="' in page
    assert '<img src="data:image/svg+xml;base64,' in page
    assert '<iframe sandbox srcdoc="&lt;meta http-equiv=&quot;Content-Security-Policy&quot; ' in page
    assert '&lt;b&gt;t&lt;/b&gt;&lt;script&gt;x()&lt;/script&gt;&quot;"' in page
    assert "&lt;$x$&gt;" in page
    assert "<script" not in page
    assert "<svg" not in page
    assert "[display image/png]" in step_text(plotted)
