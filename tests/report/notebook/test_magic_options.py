"""What `%%rlm` makes of its options, and which variables of a notebook become the context."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rlm_loop import Budget, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.models.base import ModelNotFound
from rlm_loop.report.notebook.jupyter.namespace import NoSuchVariable, context_of, named_in
from rlm_loop.report.notebook.jupyter.options import Misused, parser, read_call

MODEL = ScriptedModel([])


def look() -> str:
    """Look."""
    return ""


SPACE: dict[str, Any] = {
    "rows": [1, 2, 3],
    "text": "abc",
    "a": 1,
    "_hidden": 2,
    "quit": 3,
    "math": math,
    "look": look,
    "Klass": dict,
    "model": MODEL,
    "mine": LeanAgent(model=MODEL, budget=Budget(steps=7, seconds=9)),
}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("How many rows?", ["rows"]),
        ("The text, then rows, then text again", ["text", "rows"]),
        ("Is a row there?", []),
        ("Is `a` there?", ["a"]),
        ("_hidden quit math look Klass model mine", []),
        ("rows_of text2 nothing", []),
        ("rows.head() of (text)", ["rows", "text"]),
        ("", []),
    ],
)
def test_the_variables_that_a_text_names(text: str, names: list[str]) -> None:
    assert named_in(text, SPACE, {"quit"}) == names


def test_one_variable_is_the_context_and_several_are_a_dict() -> None:
    assert context_of(["rows"], SPACE) is SPACE["rows"]
    assert context_of(["rows", "text"], SPACE) == {"rows": [1, 2, 3], "text": "abc"}
    with pytest.raises(NoSuchVariable, match="no variable one, two in this notebook"):
        context_of(["one", "rows", "two"], SPACE)


@pytest.mark.parametrize(
    ("line", "context", "note"),
    [
        ("", {"rows": [1, 2, 3]}, "context: a dict of rows"),
        ("--no-context", None, "no context"),
        ("--context text", "abc", "context: text"),
        ("--context text,rows", {"text": "abc", "rows": [1, 2, 3]}, "context: text, rows"),
        ("--context text --context rows", {"text": "abc", "rows": [1, 2, 3]}, "context: text, rows"),
    ],
)
def test_the_context(line: str, context: Any, note: str) -> None:
    found = read_call(f"--model model {line}", "\nHow many rows?\n", SPACE)
    assert (found.context, found.note, found.question) == (context, note, "How many rows?")


def test_an_agent_is_made_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_LOOP_MODEL", "ollama/from-the-environment")
    plain = read_call("", "?", SPACE)
    assert (type(plain.agent), plain.agent.model, plain.agent.budget) == (
        ToolLoopAgent,
        "ollama/from-the-environment",
        Budget(),
    )
    assert (plain.out, plain.trace, plain.quiet, plain.background) == ("outcome", None, False, False)
    full = read_call(
        "--model model --agent react --steps 3 --seconds 2.5 --tokens 100 --depth 0 --seed 4 --require-code "
        "--tools look --trace 'a b.jsonl' --out o --quiet --background",
        "?",
        SPACE,
    )
    agent = full.agent
    assert type(agent) is ReActAgent
    assert agent.model is MODEL
    assert (agent.budget.steps, agent.budget.seconds, agent.budget.tokens) == (3, 2.5, 100)
    assert (agent.max_depth, agent.seed, agent.require_code, agent.tools) == (0, 4, True, (look,))
    assert (full.trace, full.out, full.quiet, full.background) == ("a b.jsonl", "o", True, True)


def test_an_agent_of_the_notebook_keeps_what_is_not_asked_for() -> None:
    agent = read_call("--agent mine --steps 3", "?", SPACE).agent
    assert type(agent) is LeanAgent
    assert (agent.budget.steps, agent.budget.seconds, agent.model) == (3, 9, MODEL)
    assert read_call("--agent mine", "?", SPACE).agent == SPACE["mine"]


@pytest.mark.parametrize(
    ("line", "text", "told"),
    [
        ("--modle x", "?", "unrecognized arguments: --modle x"),
        ("--model", "?", "expected one argument"),
        ("--model nosuch", "?", "no model is called 'nosuch'"),
        ("--model rows", "?", "the variable rows holds no model but a list"),
        ("--agent x", "?", "there is no agent x: use tool-loop, lean, react, direct"),
        ("--agent rows", "?", "there is no agent rows"),
        ("--context nope", "?", "there is no variable nope"),
        ("--context rows --no-context", "?", "leave one out"),
        ("--steps -1", "?", "a whole number, 0 or more, not -1"),
        ("--steps many", "?", "a whole number, 0 or more, not many"),
        ("--seconds -2", "?", "seconds cannot be -2"),
        ("--out 3x", "?", "--out 3x is not a variable's name"),
        ("--tools rows", "?", "rows is no function but a list"),
        ('--context "', "?", "No closing quotation"),
        ("", " \n ", "the cell is empty"),
        ("--out class", "?", "--out class is not a variable's name"),
    ],
)
def test_what_cannot_be_meant_is_one_line(line: str, text: str, told: str) -> None:
    with pytest.raises((Misused, ModelNotFound)) as caught:
        read_call(line, text, SPACE)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_option_is_explained() -> None:
    for action in parser()._actions:
        assert action.help, action.option_strings
