"""Causes by structure: what each piece of a stranger's messages is taken for, and what agents put around a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_loop.messages import Reply, ToolCall
from rlm_loop.meter.blocks import ENVIRONMENT, MEMORY, REMINDER, pieces
from rlm_loop.meter.causes import Causes
from rlm_loop.meter.request import RequestMessage as Said

REPEATED, ECHO = "scaffold:repeated", "scaffold:echo"
BRIEF = (Said("system", "You solve tasks.\nAnswer in Python."), Said("user", "Task: count the words of the file."))
GO, SHORT = Said("user", "Go."), Said("user", "}\nTrue\n42 42 42 42 42\n")
WROTE = [
    Reply("```python\nprint(len(words))\n```"),
    Reply('{"code": "a = 1\\ntotal = sum(words)"}'),
    Reply('{"broken', (ToolCall("1", "run", '{"n": [3, {"x": "mean(words) / 2"}]}'),)),
]


def last(*said: Said, **known: list[str]) -> list[tuple[str, str]]:
    """The causes in the last message, after the brief and replies with code."""
    causes = Causes(known)
    causes.messages(BRIEF, 0)
    for reply in WROTE:
        causes.wrote(reply)
    return [(span.text, span.cause) for span in causes.messages((*BRIEF, *said), 1)[-1].spans]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ((), [("Output: 1,234 words", "user")]),
        # the task again, in the middle of something new
        ((), [("Output: 12\n", "user"), ("Task: count the words of the file.\n", REPEATED), ("Go on.", "user")]),
        # a line of the system text is a repetition, a short one may be chance
        ((), [("Answer in Python.", REPEATED)]),
        # what the model wrote is known again, also inside JSON
        ((), [("Code executed:\n", "user"), ("print(len(words))\n", ECHO), ("REPL output:\n1234\n", "user")]),
        ((), [("total = sum(words)\n", ECHO), ("Output: 7\n", "user"), ("mean(words) / 2", ECHO)]),
        ((), [("\n\n", "user")]),
        # a whole message said again is repeated, however short; short lines do not count as said before
        ((GO, Said("assistant", "ok")), [("Go.", REPEATED)]),
        ((SHORT,), [("new\n}\nTrue\n", "user")]),
        ((SHORT,), [("42 42 42 42 42\nand new", "user")]),
    ],
)
def test_what_comes_later(before: tuple[Said, ...], expected: list[tuple[str, str]]) -> None:
    assert last(*before, Said("user", "".join(text for text, _ in expected))) == expected


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


# -- blocks of agents: the shapes are those that real agents sent, the words are ours

RULES = "# House rules\n\n- Prices are whole cents.\n"
TREE = "├───check.py\n├───.git/...\n└───shop/\n    ├───a.py\n    └───b.py\n"
FACTS = "Today's date is Monday.\nMy operating system is: linux\nI'm currently working in the directory: /x\n"

REMINDS = f"{REMINDER}/system-reminder"
SKILLS = "<available_skills>\n" + "A skill. " * 60 + "\n</available_skills>"
CONTEXT = "<system-reminder>\nContext:\n# gitStatus\nThis is a snapshot.\n\nCurrent branch: main\n</system-reminder>\n"

#: Role and name, and the pieces of the text, each with its cause.
SHAPES: dict[tuple[str, str], list[tuple[str, str]]] = {
    ("user", "reminders"): [
        ("<system-reminder>\nInstructions are below.\n\n", REMINDS),
        (f"Contents of /x/CLAUDE.md (project instructions):\n\n{RULES}", f"{MEMORY}/CLAUDE.md"),
        ("</system-reminder>\n", REMINDS),
        (CONTEXT, f"{ENVIRONMENT}/system-reminder"),
        ("<system-reminder>\nBe brief.\n</system-reminder>\n", REMINDS),
        ("Fix it.", ""),
    ],
    ("user", "a heading before the tag"): [
        (f"# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\n{RULES}\n</INSTRUCTIONS>\n", f"{MEMORY}/AGENTS.md"),
        ("<environment_context>\n<cwd>/x</cwd>\n</environment_context>", f"{ENVIRONMENT}/environment_context"),
    ],
    ("user", "a memory file within the environment"): [
        (f"<session_context>\n{FACTS}{TREE}\n<project_context>\n", f"{ENVIRONMENT}/session_context"),
        (f"--- Context from: /x/GEMINI.md ---\n{RULES}--- End of /x/GEMINI.md ---\n", f"{MEMORY}/GEMINI.md"),
        ("</project_context>\n</session_context>\n", f"{ENVIRONMENT}/session_context"),
        ("Fix it.", ""),
    ],
    ("system", "system text"): [
        ("You are an agent.\n", ""),
        ("<env>\n  Working directory: /x\n</env>\n", f"{ENVIRONMENT}/env"),
        (f"Instructions from: /x/AGENTS.md\n{RULES}", f"{MEMORY}/AGENTS.md"),
        (SKILLS, "system/available_skills"),
    ],
    ("system", "a section"): [
        ("# Environment\nHere:\n - Working directory: /x\n - Platform: linux\n", f"{ENVIRONMENT}/section"),
        (f"\nOther words.\n{TREE}", ""),
    ],
    ("system", "about memory"): [("# AGENTS.md spec\nFiles named AGENTS.md hold rules.", "")],
    ("user", "a user's own tag"): [("<file>\nSome text.\n</file>\nWhat is it?", "")],
    ("tool", "a result of a tool"): [
        (f"<env>\nshell: x\n</env>\n{TREE}", ""),
        ("<system-reminder>\nDo not run it.\n</system-reminder>", REMINDS),
    ],
    ("assistant", "what the model wrote"): [("<system-reminder>\nx\n</system-reminder>", "")],
}


@pytest.mark.parametrize(("role", "name"), SHAPES)
def test_the_blocks_that_agents_send(role: str, name: str) -> None:
    expected = SHAPES[role, name]
    text = "".join(piece for piece, _ in expected)
    assert [(piece, cause) for piece, cause in pieces(text, role) if piece] == expected


_TAGS = ["<env>", "</env>", "<a-reminder>", "</a-reminder>", "<b>", "</b>"]
_LINES = ["## /x/AGENTS.md\n", "--- End of AGENTS.md\n", "# Environment\n", "shell: x\n", "platform: y\n"]
_WORDS = st.sampled_from([*_TAGS, *_LINES, "Contents of CLAUDE.md\n", "\n", " ", "x"])


@pytest.mark.slow
@given(st.lists(_WORDS, max_size=30).map("".join), roles)
@settings(max_examples=300, deadline=None)
def test_the_pieces_join_to_the_text(text: str, role: str) -> None:
    assert "".join(piece for piece, _ in pieces(text, role)) == text
