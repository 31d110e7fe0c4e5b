"""What agents put around a prompt: the shapes are those that real agents sent, the words are ours."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_loop.meter.blocks import ENVIRONMENT, MEMORY, REMINDER, pieces

RULES = "# House rules\n\n- Prices are whole cents.\n"
TREE = "├───check.py\n├───.git/...\n└───shop/\n    ├───a.py\n    └───b.py\n"
FACTS = "Today's date is Monday.\nMy operating system is: linux\nI'm currently working in the directory: /x\n"

#: Role, text, and the cause and beginning of each expected piece.
SHAPES: dict[str, tuple[str, str, list[tuple[str, str]]]] = {
    "reminders": (
        "user",
        f"<system-reminder>\nInstructions are below.\n\nContents of /x/CLAUDE.md (project instructions):\n\n{RULES}"
        "</system-reminder>\n<system-reminder>\nContext:\n# gitStatus\nThis is a snapshot.\n\nCurrent branch: main\n"
        "</system-reminder>\n<system-reminder>\nBe brief.\n</system-reminder>\nFix it.",
        [
            (f"{REMINDER}/system-reminder", "<system-reminder>\nInstructions"),
            (f"{MEMORY}/CLAUDE.md", "Contents of"),
            (f"{REMINDER}/system-reminder", "</system-reminder>"),
            (f"{ENVIRONMENT}/system-reminder", "<system-reminder>\nContext"),
            (f"{REMINDER}/system-reminder", "<system-reminder>\nBe"),
            ("", "Fix it."),
        ],
    ),
    "a heading before the tag": (
        "user",
        f"# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\n{RULES}\n</INSTRUCTIONS>\n"
        "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>",
        [(f"{MEMORY}/AGENTS.md", "# AGENTS.md"), (f"{ENVIRONMENT}/environment_context", "<environment_context>")],
    ),
    "a memory file within the environment": (
        "user",
        f"<session_context>\n{FACTS}{TREE}\n<project_context>\n--- Context from: /x/GEMINI.md ---\n{RULES}"
        "--- End of Context from: /x/GEMINI.md ---\n</project_context>\n</session_context>\nFix it.",
        [
            (f"{ENVIRONMENT}/session_context", "<session_context>"),
            (f"{MEMORY}/GEMINI.md", "--- Context from"),
            (f"{ENVIRONMENT}/session_context", "</project_context>"),
            ("", "Fix it."),
        ],
    ),
    "system text": (
        "system",
        f"You are an agent.\n<env>\n  Working directory: /x\n</env>\nInstructions from: /x/AGENTS.md\n{RULES}"
        "<available_skills>\n" + "A skill. " * 60 + "\n</available_skills>",
        [
            ("", "You are"),
            (f"{ENVIRONMENT}/env", "<env>"),
            (f"{MEMORY}/AGENTS.md", "Instructions from"),
            ("system/available_skills", "<available_skills>"),
        ],
    ),
    "a section and a tree": (
        "system",
        f"# Environment\nYou are here:\n - Working directory: /x\n - Platform: linux\n\nOther words.\n{TREE}The end.",
        [
            (f"{ENVIRONMENT}/section", "# Environment"),
            ("", "\nOther words."),
            (f"{ENVIRONMENT}/files", "├"),
            ("", "The end."),
        ],
    ),
    "about memory": ("system", "# AGENTS.md spec\nFiles named AGENTS.md hold rules.", [("", "# AGENTS")]),
    "a user's own tag": ("user", "<file>\nSome text.\n</file>\nWhat is it?", [("", "<file>")]),
    "a result of a tool": (
        "tool",
        f"<env>\nshell: x\n</env>\n{TREE}<system-reminder>\nDo not run it.\n</system-reminder>",
        [("", "<env>"), (f"{REMINDER}/system-reminder", "<system-reminder>")],
    ),
    "what the model wrote": ("assistant", "<system-reminder>\nx\n</system-reminder>", [("", "<system")]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_blocks_that_agents_send(name: str) -> None:
    role, text, expected = SHAPES[name]
    found = [(cause, piece) for piece, cause in pieces(text, role) if piece]
    assert "".join(piece for _, piece in found) == text
    begun = [(cause, piece[: len(begin)]) for (cause, piece), (_, begin) in zip(found, expected)]
    assert (begun, len(found)) == (expected, len(expected))


_TAGS = ["<env>", "</env>", "<a-reminder>", "</a-reminder>", "<b>", "</b>"]
_LINES = ["## /x/AGENTS.md\n", "--- End of AGENTS.md\n", "├ a\n", "# Environment\n", "shell: x\n", "platform: y\n"]
_WORDS = st.sampled_from([*_TAGS, *_LINES, "Contents of CLAUDE.md\n", "\n", " ", "x"])


@pytest.mark.slow
@given(st.lists(_WORDS, max_size=30).map("".join), st.sampled_from(["system", "user", "tool", "assistant"]))
@settings(max_examples=300, deadline=None)
def test_the_pieces_join_to_the_text(text: str, role: str) -> None:
    assert "".join(piece for piece, _ in pieces(text, role)) == text
