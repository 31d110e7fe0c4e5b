"""What agents put around a prompt: the shapes are those that real agents sent, the words are ours."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wires import ask, system, user  # pyright: ignore

from rlm_loop.meter import metered_endpoint
from rlm_loop.meter.blocks import ENVIRONMENT, MEMORY, REMINDER, pieces
from rlm_loop.models import ScriptedModel

RULES = "# House rules\n\n- Prices are whole cents.\n"
TREE = "├───check.py\n├───.git/...\n└───shop/\n    ├───a.py\n    └───b.py\n"
FACTS = "Today's date is Monday.\nMy operating system is: linux\nI'm currently working in the directory: /x\n"

#: role, text, and what is expected: (cause, the beginning of the piece).
SHAPES = [
    pytest.param(
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
        id="reminders",
    ),
    pytest.param(
        "user",
        f"# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\n{RULES}\n</INSTRUCTIONS>\n"
        "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>",
        [
            (f"{MEMORY}/AGENTS.md", "# AGENTS.md"),
            (f"{ENVIRONMENT}/environment_context", "<environment_context>"),
        ],
        id="a heading before the tag",
    ),
    pytest.param(
        "user",
        f"<session_context>\n{FACTS}{TREE}\n<project_context>\n--- Context from: /x/GEMINI.md ---\n{RULES}"
        "--- End of Context from: /x/GEMINI.md ---\n</project_context>\n</session_context>\nFix it.",
        [
            (f"{ENVIRONMENT}/session_context", "<session_context>"),
            (f"{MEMORY}/GEMINI.md", "--- Context from"),
            (f"{ENVIRONMENT}/session_context", "</project_context>"),
            ("", "Fix it."),
        ],
        id="a memory file within the environment",
    ),
    pytest.param(
        "system",
        f"You are an agent.\n<env>\n  Working directory: /x\n</env>\nInstructions from: /x/AGENTS.md\n{RULES}"
        "<available_skills>\n" + "A skill. " * 60 + "\n</available_skills>",
        [
            ("", "You are"),
            (f"{ENVIRONMENT}/env", "<env>"),
            (f"{MEMORY}/AGENTS.md", "Instructions from"),
            ("system/available_skills", "<available_skills>"),
        ],
        id="system text",
    ),
    pytest.param(
        "system",
        f"# Environment\nYou are here:\n - Working directory: /x\n - Platform: linux\n\nOther words.\n{TREE}The end.",
        [
            (f"{ENVIRONMENT}/section", "# Environment"),
            ("", "\nOther words."),
            (f"{ENVIRONMENT}/files", "├"),
            ("", "The end."),
        ],
        id="a section and a tree",
    ),
    pytest.param(
        "system", "# AGENTS.md spec\nFiles named AGENTS.md hold rules.", [("", "# AGENTS")], id="about memory"
    ),
    pytest.param("user", "<file>\nSome text.\n</file>\nWhat is it?", [("", "<file>")], id="a user's own tag"),
    pytest.param(
        "tool",
        f"<env>\nshell: x\n</env>\n{TREE}<system-reminder>\nDo not run it.\n</system-reminder>",
        [("", "<env>"), (f"{REMINDER}/system-reminder", "<system-reminder>")],
        id="a result of a tool",
    ),
    pytest.param("assistant", "<system-reminder>\nx\n</system-reminder>", [("", "<system")], id="what the model wrote"),
]


@pytest.mark.parametrize(("role", "text", "expected"), SHAPES)
def test_the_blocks_that_agents_send(role: str, text: str, expected: list[tuple[str, str]]) -> None:
    found = [(cause, piece) for piece, cause in pieces(text, role) if piece]
    assert "".join(piece for _, piece in found) == text
    assert [cause for cause, _ in found] == [cause for cause, _ in expected]
    for (_, piece), (_, begin) in zip(found, expected, strict=True):
        assert piece.startswith(begin)


_TAGS = ["<env>", "</env>", "<a-reminder>", "</a-reminder>", "<b>", "</b>"]
_LINES = ["## /x/AGENTS.md\n", "--- End of AGENTS.md\n", "├ a\n", "# Environment\n", "shell: x\n", "platform: y\n"]
_WORDS = st.sampled_from([*_TAGS, *_LINES, "Contents of CLAUDE.md\n", "\n", " ", "x"])


@pytest.mark.slow
@given(st.lists(_WORDS, max_size=30).map("".join), st.sampled_from(["system", "user", "tool", "assistant"]))
@settings(max_examples=300, deadline=None)
def test_the_pieces_join_to_the_text(text: str, role: str) -> None:
    assert "".join(piece for piece, _ in pieces(text, role)) == text


def test_the_rows_tell_the_blocks_and_still_sum_to_the_bill() -> None:
    """The first user message is the environment alone, so that the task is the second one."""
    said = [
        system("You are an agent."),
        user("<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"),
        user("Mend the price of the shop."),
    ]
    with metered_endpoint(ScriptedModel(["Done."] * 2)) as url:
        ask(url, *said)
        reminder = "<system-reminder>\nThe list of tasks is empty.\n</system-reminder>\n"
        ask(url, *said, {"role": "assistant", "content": "Done."}, user(f"{reminder}Go on with the other one."))
    rows = list(url.meter.figures.rows())
    for call in (1, 2):
        total = sum(row["tokens"] for row in rows if row["call"] == call)
        assert total == url.meter.calls[call - 1].input_tokens
    causes = {(row["cause"], row["detail"]) for row in rows if row["call"] == 2}
    assert {("task", ""), ("user", ""), (ENVIRONMENT, "environment_context"), (REMINDER, "system-reminder")} <= causes
    assert {call.node for call in url.meter.calls} == {"0"}
