"""Causes by structure: what each piece of a stranger's messages is taken for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.messages import Message, Reply, ToolCall
from rlm_loop.meter.causes import Causes, written
from rlm_loop.meter.request import RequestMessage as Said

BRIEF = (
    Said("system", "You solve tasks.\nAnswer in Python."),
    Said("user", "Task: count the words of the file."),
)


def spans(message: Message) -> list[tuple[str, str]]:
    return [(span.text, span.cause) for span in message.spans]


def last(*said: Said, replies: tuple[Reply, ...] = (), **known: list[str]) -> list[tuple[str, str]]:
    causes = Causes(known)
    causes.messages(BRIEF, 0)
    for reply in replies:
        causes.wrote(reply)
    return spans(causes.messages((*BRIEF, *said), 1)[-1])


def test_the_brief() -> None:
    made = Causes().messages(BRIEF, 0)
    assert [spans(m) for m in made] == [
        [("You solve tasks.\nAnswer in Python.", "system")],
        [("Task: count the words of the file.", "task")],
    ]


WROTE = Said("assistant", "print(len(words))\nprint('more')")


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
            [
                ("Output: 12\n", "user"),
                ("Task: count the words of the file.\n", "scaffold:repeated"),
                ("Go on.", "user"),
            ],
        ),
        # a line of the system text is a repetition, a short one may be chance
        (Said("user", "Answer in Python."), [("Answer in Python.", "scaffold:repeated")]),
        (Said("user", ""), []),
        (Said("user", "\n\n"), [("\n\n", "user")]),
    ],
)
def test_what_comes_later(said: Said, expected: list[tuple[str, str]]) -> None:
    assert last(said) == expected


def test_what_the_model_wrote_is_known_again() -> None:
    code = Reply("```python\nprint(len(words))\n```")
    shown = Said("user", "Code executed:\nprint(len(words))\nREPL output:\n1234\n")
    assert last(WROTE, shown, replies=(code,)) == [
        ("Code executed:\n", "user"),
        ("print(len(words))\n", "scaffold:echo"),
        ("REPL output:\n1234\n", "user"),
    ]


def test_strings_inside_a_reply_of_json_are_what_it_wrote() -> None:
    assert "a = 1" in written(Reply('{"code": "a = 1\\nb = 2", "n": [3, {"x": "deep"}]}'))
    assert "deep" in written(Reply('{"code": "a = 1\\nb = 2", "n": [3, {"x": "deep"}]}'))
    assert "b = 2" in written(Reply(tool_calls=(ToolCall("1", "run", '{"code": "b = 2"}'),)))
    assert written(Reply('{"broken')) == {'{"broken'}


def test_a_whole_message_said_again_is_repeated_however_short() -> None:
    causes = Causes()
    said = (*BRIEF, Said("user", "Go."), Said("assistant", "ok"), Said("user", "Go."))
    made = causes.messages(said, 0)
    assert [m.spans[0].cause for m in made] == ["system", "task", "user", "assistant", "scaffold:repeated"]


def test_short_lines_do_not_count_as_said_before() -> None:
    causes = Causes()
    causes.messages((*BRIEF, Said("user", "}\nTrue\n42 42 42 42 42\n")), 0)
    made = causes.messages((*BRIEF, Said("user", "}\nTrue\n42 42 42 42 42\n"), Said("user", "new\n}\nTrue\n")), 1)
    assert spans(made[-1]) == [("new\n}\nTrue\n", "user")]
    made = causes.messages((*BRIEF, Said("user", "42 42 42 42 42\nand new")), 1)
    assert spans(made[-1]) == [("42 42 42 42 42\nand new", "user")]


def test_a_task_that_is_written_anew_keeps_its_lines() -> None:
    """dspy sends one user message, whose middle grows by the history."""
    causes = Causes()
    causes.messages((Said("system", "S"), Said("user", "Question: who?\nHistory: none\nRespond now.")), 0)
    causes.wrote(Reply("Reasoning: I look it up."))
    again = Said("user", "Question: who?\nReasoning: I look it up.\nObservation: it was she.\nRespond now.")
    assert spans(causes.messages((Said("system", "S"), again), 1)[-1]) == [
        ("Question: who?\n", "task"),
        ("Reasoning: I look it up.\n", "scaffold:echo"),
        ("Observation: it was she.\n", "user"),
        ("Respond now.", "task"),
    ]


def test_known_texts_win() -> None:
    shown = Said("user", "Observation: the file has 12 words. Go on.")
    known = {"tool_result": ["the file has 12 words"], "scaffold:nudge": ["Go on."]}
    assert last(shown, **known) == [
        ("Observation: ", "user"),
        ("the file has 12 words", "tool_result"),
        (". ", "user"),
        ("Go on.", "scaffold:nudge"),
    ]


def test_the_longest_known_text_is_taken() -> None:
    assert last(Said("tool", "abcdef"), error=["abc"], summary=["abcdef"]) == [("abcdef", "summary")]


texts = st.text(alphabet="ab\n {é", max_size=40)
said = st.lists(
    st.builds(Said, st.sampled_from(["system", "user", "assistant", "tool"]), texts), min_size=1, max_size=6
)


@given(said, said)
def test_nothing_is_lost_and_the_start_stays_the_same(first: list[Said], more: list[Said]) -> None:
    causes = Causes()
    before = causes.messages(first, 0)
    now = causes.messages([*first, *more], 1)
    assert now[: len(before)] == before
    assert [m.text for m in now] == [s.text for s in (*first, *more)]
    assert [m.role for m in now] == [s.role for s in (*first, *more)]
    assert {m.turn for m in now[len(before) :]} <= {0, 1}


def test_a_message_keeps_its_cause_where_older_ones_are_left_out() -> None:
    causes = Causes()
    results = [Said("user", f"Result {i}: a long line of output") for i in range(4)]
    whole = causes.messages((*BRIEF, *results), 3)
    window = causes.messages((*BRIEF, *results[2:]), 4)
    assert window == (*whole[:2], *whole[4:])
