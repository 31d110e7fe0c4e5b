"""What agents put around a prompt: the shapes are those that real agents sent, the words are ours."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_loop.meter.blocks import ENVIRONMENT, MEMORY, REMINDER, pieces

RULES = "# House rules\n\n- Prices are whole cents.\n"
TREE = "├───check.py\n├───.git/...\n└───shop/\n    ├───a.py\n    └───b.py\n"
FACTS = "Today's date is Monday.\nMy operating system is: linux\nI'm currently working in the directory: /x\n"

REMINDS = f"{REMINDER}/system-reminder"
SKILLS = "<available_skills>\n" + "A skill. " * 60 + "\n</available_skills>"
CONTEXT = "<system-reminder>\nContext:\n# gitStatus\nThis is a snapshot.\n\nCurrent branch: main\n</system-reminder>\n"

#: Role, and the pieces of the text, each with its cause.
SHAPES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "reminders": (
        "user",
        [
            ("<system-reminder>\nInstructions are below.\n\n", REMINDS),
            (f"Contents of /x/CLAUDE.md (project instructions):\n\n{RULES}", f"{MEMORY}/CLAUDE.md"),
            ("</system-reminder>\n", REMINDS),
            (CONTEXT, f"{ENVIRONMENT}/system-reminder"),
            ("<system-reminder>\nBe brief.\n</system-reminder>\n", REMINDS),
            ("Fix it.", ""),
        ],
    ),
    "a heading before the tag": (
        "user",
        [
            (f"# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\n{RULES}\n</INSTRUCTIONS>\n", f"{MEMORY}/AGENTS.md"),
            ("<environment_context>\n<cwd>/x</cwd>\n</environment_context>", f"{ENVIRONMENT}/environment_context"),
        ],
    ),
    "a memory file within the environment": (
        "user",
        [
            (f"<session_context>\n{FACTS}{TREE}\n<project_context>\n", f"{ENVIRONMENT}/session_context"),
            (f"--- Context from: /x/GEMINI.md ---\n{RULES}--- End of /x/GEMINI.md ---\n", f"{MEMORY}/GEMINI.md"),
            ("</project_context>\n</session_context>\n", f"{ENVIRONMENT}/session_context"),
            ("Fix it.", ""),
        ],
    ),
    "system text": (
        "system",
        [
            ("You are an agent.\n", ""),
            ("<env>\n  Working directory: /x\n</env>\n", f"{ENVIRONMENT}/env"),
            (f"Instructions from: /x/AGENTS.md\n{RULES}", f"{MEMORY}/AGENTS.md"),
            (SKILLS, "system/available_skills"),
        ],
    ),
    "a section and a tree": (
        "system",
        [
            ("# Environment\nHere:\n - Working directory: /x\n - Platform: linux\n", f"{ENVIRONMENT}/section"),
            ("\nOther words.\n", ""),
            (TREE, f"{ENVIRONMENT}/files"),
            ("The end.", ""),
        ],
    ),
    "about memory": ("system", [("# AGENTS.md spec\nFiles named AGENTS.md hold rules.", "")]),
    "a user's own tag": ("user", [("<file>\nSome text.\n</file>\nWhat is it?", "")]),
    "a result of a tool": (
        "tool",
        [
            (f"<env>\nshell: x\n</env>\n{TREE}", ""),
            ("<system-reminder>\nDo not run it.\n</system-reminder>", REMINDS),
        ],
    ),
    "what the model wrote": ("assistant", [("<system-reminder>\nx\n</system-reminder>", "")]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_blocks_that_agents_send(name: str) -> None:
    role, expected = SHAPES[name]
    text = "".join(piece for piece, _ in expected)
    assert [(piece, cause) for piece, cause in pieces(text, role) if piece] == expected


_TAGS = ["<env>", "</env>", "<a-reminder>", "</a-reminder>", "<b>", "</b>"]
_LINES = ["## /x/AGENTS.md\n", "--- End of AGENTS.md\n", "├ a\n", "# Environment\n", "shell: x\n", "platform: y\n"]
_WORDS = st.sampled_from([*_TAGS, *_LINES, "Contents of CLAUDE.md\n", "\n", " ", "x"])


@pytest.mark.slow
@given(st.lists(_WORDS, max_size=30).map("".join), st.sampled_from(["system", "user", "tool", "assistant"]))
@settings(max_examples=300, deadline=None)
def test_the_pieces_join_to_the_text(text: str, role: str) -> None:
    assert "".join(piece for piece, _ in pieces(text, role)) == text
