"""Causes by structure: what each piece of a stranger's messages is taken for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.messages import Reply, ToolCall
from rlm_loop.meter.causes import Causes, written
from rlm_loop.meter.request import RequestMessage as Said

REPEATED = "scaffold:repeated"
BRIEF = (
    Said("system", "You solve tasks.\nAnswer in Python."),
    Said("user", "Task: count the words of the file."),
)


GO, SHORT = Said("user", "Go."), Said("user", "}\nTrue\n42 42 42 42 42\n")


def last(*said: Said, **known: list[str]) -> list[tuple[str, str]]:
    """The causes in the last message, after the brief and a reply with code."""
    causes = Causes(known)
    causes.messages(BRIEF, 0)
    causes.wrote(Reply("```python\nprint(len(words))\n```"))
    return [(span.text, span.cause) for span in causes.messages((*BRIEF, *said), 1)[-1].spans]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (Said("tool", "42", tool_call_id="c"), [("42", "tool_result")]),
        (Said("assistant", "I think."), [("I think.", "assistant")]),
        (Said("system", "New rules."), [("New rules.", "system")]),
        (Said("user", "Output: 1,234 words"), [("Output: 1,234 words", "user")]),
        # the task again, in the middle of something new
        (
            Said("user", "Output: 12\nTask: count the words of the file.\nGo on."),
            [("Output: 12\n", "user"), ("Task: count the words of the file.\n", REPEATED), ("Go on.", "user")],
        ),
        # a line of the system text is a repetition, a short one may be chance
        (Said("user", "Answer in Python."), [("Answer in Python.", REPEATED)]),
        # what the model wrote is known again
        (
            Said("user", "Code executed:\nprint(len(words))\nREPL output:\n1234\n"),
            [("Code executed:\n", "user"), ("print(len(words))\n", "scaffold:echo"), ("REPL output:\n1234\n", "user")],
        ),
        (Said("user", ""), []),
        (Said("user", "\n\n"), [("\n\n", "user")]),
        # a whole message said again is repeated, however short; short lines do not count as said before
        ((GO, Said("assistant", "ok"), GO), [("Go.", REPEATED)]),
        ((SHORT, Said("user", "new\n}\nTrue\n")), [("new\n}\nTrue\n", "user")]),
        ((SHORT, Said("user", "42 42 42 42 42\nand new")), [("42 42 42 42 42\nand new", "user")]),
    ],
)
def test_what_comes_later(said: Said | tuple[Said, ...], expected: list[tuple[str, str]]) -> None:
    assert last(*(said if isinstance(said, tuple) else (said,))) == expected


JSON = '{"code": "a = 1\\nb = 2", "n": [3, {"x": "deep"}]}'


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        (Reply(JSON), {JSON, "a = 1", "b = 2", "deep"}),
        (Reply(tool_calls=(ToolCall("1", "run", '{"code": "b = 2"}'),)), {"b = 2"}),
        (Reply('{"broken'), {'{"broken'}),
    ],
)
def test_strings_inside_json_are_what_a_reply_wrote(reply: Reply, lines: set[str]) -> None:
    assert written(reply) == lines


def test_known_texts_win_and_the_longest_of_them() -> None:
    assert last(Said("tool", "abcdef"), error=["abc"], summary=["abcdef"]) == [("abcdef", "summary")]
    shown = Said("user", "Observation: the file has 12 words. Go on.")
    known = {"tool_result": ["the file has 12 words"], "scaffold:nudge": ["Go on."]}
    assert last(shown, **known) == [
        ("Observation: ", "user"),
        ("the file has 12 words", "tool_result"),
        (". ", "user"),
        ("Go on.", "scaffold:nudge"),
    ]


texts = st.text(alphabet="ab\n {é", max_size=40)
roles = st.sampled_from(["system", "user", "assistant", "tool"])
said = st.lists(st.builds(Said, roles, texts), min_size=1, max_size=6)


@given(said, said)
def test_nothing_is_lost_and_the_start_stays_the_same(first: list[Said], more: list[Said]) -> None:
    causes = Causes()
    before = causes.messages(first, 0)
    now = causes.messages([*first, *more], 1)
    assert now[: len(before)] == before
    assert [(m.role, m.text) for m in now] == [(s.role, s.text) for s in (*first, *more)]
    assert {m.turn for m in now[len(before) :]} <= {0, 1}


def test_a_message_keeps_its_cause_where_older_ones_are_left_out() -> None:
    causes = Causes()
    results = [Said("user", f"Result {i}: a long line of output") for i in range(4)]
    whole = causes.messages((*BRIEF, *results), 3)
    window = causes.messages((*BRIEF, *results[2:]), 4)
    assert window == (*whole[:2], *whole[4:])
