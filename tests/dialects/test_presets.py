"""Injectors by name: when each says what, on any of the loops, at any dose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.actions import Answer, CallTool, Failure, Malformed, Observation, RunCode
from rlm_loop.agents import Agent
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.doses import resized
from rlm_loop.dialects.injectors import Injector, Nudge
from rlm_loop.dialects.peer_injectors import TEXTS
from rlm_loop.dialects.presets import PRESETS, every, preset, sized
from rlm_loop.messages import Prompt, Reply, ToolCall
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Turn

FINE, FAILED = Observation("5"), Observation("no", Failure("runtime", "no"), "repl_output")
CODE, CALL, BAD = RunCode("x = 5"), CallTool("look", '{"n": 1}', "c1"), Malformed("what?")


SAID = Reply("hm")


def turn(index: int = 1, *, did: Any = CODE, saw: Observation = FINE, reply: Reply = SAID) -> Turn:
    return Turn(index, reply, (did,), (saw,))


def one(name: str, **options: Any) -> Injector:
    (found,) = preset(name, **options)
    return found


@pytest.mark.parametrize(
    ("name", "options", "moment", "text"),
    [
        ("mellea-thought", {}, turn(), TEXTS["MELLEA_THOUGHT"]),
        ("mellea-initiator", {}, turn(), ""),
        ("rlms-turn-counter", {"steps": 12}, turn(3), "Turn 4/12:"),
        ("rlms-turn-counter", {}, turn(3), "Turn 4/30:"),
        ("rlms-variables", {}, turn(saw=Observation("5", variables=("x", "y"))), "REPL variables: ['x', 'y']\n"),
        ("rlms-variables", {}, turn(), ""),
        (
            "smolagents-code-echo",
            {},
            turn(2),
            "Calling tools:\n[{'id': 'call_2', 'type': 'function', 'function': {'name': 'python_interpreter', "
            "'arguments': 'x = 5'}}]",
        ),
        (
            "smolagents-code-echo",
            {},
            turn(did=CALL),
            "Calling tools:\n[{'id': 'c1', 'type': 'function', 'function': {'name': 'look', 'arguments': {'n': 1}}}]",
        ),
        ("smolagents-code-echo", {}, turn(did=BAD, saw=FAILED), ""),
        ("smolagents-retry", {}, turn(), ""),
        ("smolagents-retry", {}, turn(saw=FAILED), TEXTS["SMOLAGENTS_RETRY"]),
        ("inspect-continue", {}, turn(did=CALL), ""),
        ("inspect-continue", {}, turn(did=CODE), ""),
        ("inspect-continue", {}, turn(did=BAD, reply=Reply("", (ToolCall("1", "x", "{"),))), ""),
        (
            "inspect-continue",
            {},
            turn(did=Answer("5"), saw=FAILED),
            "\nPlease proceed to the next step using your best judgement. If you believe you have completed the task, "
            "please call the `final_answer()` tool with your final answer.\n",
        ),
        ("fast-rlm-banner", {"steps": 9}, turn(4), ""),
        (
            "fast-rlm-banner",
            {"steps": 8},
            turn(4),
            "[Steps remaining after this one: 4 / 8]\n[You can call a subagent via llm_query(...) to finish smaller "
            "tasks if needed. Use a divide-and-conquer strategy.]\n",
        ),
        ("fast-rlm-no-code", {}, turn(did=CODE), ""),
        ("fast-rlm-no-code", {}, turn(did=BAD, saw=FAILED), "Error: We could not extract code because you may not "
         "have used repl block!"),
        ("dspy-reminder", {}, turn(), preset("dspy-reminder")[0].opening(Problem("?"))),
        ("seed-ack", {}, turn(), "Observed results. Continuing."),
    ],
)  # fmt: skip
def test_what_is_said_after_a_turn(name: str, options: Any, moment: Turn, text: str) -> None:
    assert one(name, **options).after(moment) == text


AGENTS: list[tuple[Agent, list[str]]] = [
    (ToolLoopAgent(), ["```python\nprint(1)\n```", "5"]),
    (LeanAgent(presentation="text"), ['{"name": "python", "arguments": {"code": "print(1)"}}', "5"]),
    (
        ReActAgent(form="calls", presentation="text"),
        [
            '{"name": "python", "arguments": {"code": "print(1)"}}',
            '{"name": "final_answer", "arguments": {"answer": "5"}}',
        ],
    ),
    (ReActAgent(), ['Thought: so\nAction: python\nAction Input: {"code": "print(1)"}', "Final Answer: 5"]),
]


def prompts_of(agent: Agent, replies: list[str], injectors: tuple[Injector, ...]) -> tuple[Any, list[Prompt]]:
    from dataclasses import replace

    model = ScriptedModel(replies)
    outcome = replace(agent, model=model, injectors=injectors).run("How much?")
    assert outcome.stop == "answered"
    return outcome, model.prompts


@pytest.mark.parametrize("name", [n for n in PRESETS if not n.startswith("dspy")])
@pytest.mark.parametrize(("agent", "replies"), AGENTS, ids=["code", "lean", "react-calls", "react-text"])
def test_every_preset_on_every_loop(agent: Agent, replies: list[str], name: str) -> None:
    injectors = preset(name, steps=2)
    outcome, (first, second) = prompts_of(agent, replies, injectors)
    assert second.messages[: len(first.messages)] == first.messages
    for injector in injectors:
        spans = [s.text for m in second.messages for s in m.spans if s.cause == f"scaffold:{injector.name}"]
        before = [t for t in [injector.opening(Problem("How much?"))] if t]
        said = [*before, *([after] if (after := injector.after(outcome.turns[0])) else [])]
        assert [s.removeprefix("\n") if t[0] != "\n" else s[1:] for s, t in zip(spans, said, strict=True)] == said
    charged = {c for c in outcome.ledger.by_cause() if c.startswith("scaffold:")}
    assert {f"scaffold:{i.name}" for i in injectors if i.opening(Problem("How much?"))} <= charged
    assert sum(outcome.ledger.by_cause().values()) == outcome.usage.input_tokens


def test_mellea_leads_up_to_the_question() -> None:
    _, (first, _) = prompts_of(LeanAgent(presentation="native"), AGENTS[1][1], preset("mellea-react"))
    assert first.messages[0].text == f"{TEXTS['MELLEA_INITIATOR']}How much?\n{TEXTS['MELLEA_THOUGHT']}"
    causes = [s.cause.removeprefix("scaffold:") for s in first.messages[0].spans]
    assert causes == ["mellea_initiator", "task", "mellea_thought"]


def test_a_scaffold_stands_in_place_of_reacts_own() -> None:
    agent = ReActAgent(form="calls", presentation="text", scaffold=preset("mellea-react"))
    outcome, _ = prompts_of(agent, AGENTS[2][1], ())
    causes = {c for c in outcome.ledger.by_cause() if c.startswith("scaffold:")}
    assert causes == {"scaffold:mellea_initiator", "scaffold:mellea_thought"}
    assert agent.settings() != ReActAgent(form="calls", presentation="text").settings()
    assert "scaffold" not in ReActAgent().settings()  # results of before it was there stay theirs
    with pytest.raises(ValueError, match='form="calls"'):
        ReActAgent(scaffold=())


@pytest.mark.parametrize("repl", ["auto", "restricted"])
def test_the_names_are_those_of_simple_variables(repl: str) -> None:
    cells = ["import os\nx, name = 1, 'n'\ndef f(): return 1\nclass K: pass\nk = K()", "del x\nisinstance = 5", "5"]
    code = [f"```python\n{c}\n```" for c in cells[:2]]
    model = ScriptedModel([*code, "5"])
    outcome = ToolLoopAgent(model=model, repl=repl, injectors=preset("rlms-variables")).run("?", context={"a": 1})
    if repl == "restricted":  # which has no import of os and no classes: only the context is left of the first cell
        assert "context" in outcome.turns[0].observations[0].variables
        return
    assert outcome.turns[0].observations[0].variables == ("context", "x", "name")
    # where `isinstance` is something else nobody can look: all names
    assert set(outcome.turns[1].observations[0].variables) == {"context", "os", "name", "f", "K", "k", "isinstance"}
    text = model.prompts[1].messages[-1].text
    assert text.endswith("\nREPL variables: ['context', 'x', 'name']\n")


def test_nobody_looks_at_the_variables_unless_asked() -> None:
    outcome = ToolLoopAgent(model=ScriptedModel(["```python\nx = 1\n```", "5"])).run("?")
    assert outcome.turns[0].observations[0].variables == ()


@given(st.text(min_size=1).filter(str.strip), st.integers(0, 900))
def test_a_text_has_exactly_the_size_asked_for(text: str, size: int) -> None:
    got = resized(text, size)
    assert len(got) == size
    assert got.startswith(text) or text.startswith(got)


def test_doses() -> None:
    thought = one("mellea-thought")
    assert sized(thought, 208).after(turn()) == TEXTS["MELLEA_THOUGHT"]
    assert sized(thought, 52).after(turn()) == TEXTS["MELLEA_THOUGHT"][:52]
    grown = sized(thought, 832).after(turn())
    assert len(grown) == 832
    assert grown.startswith(TEXTS["MELLEA_THOUGHT"] + " Think about what to do next and take")
    assert sized(thought, 0).opening(Problem("?")) == ""
    assert sized(one("smolagents-retry"), 50).after(turn()) == ""  # silent where it was silent
    assert sized(one("mellea-thought"), 52).name == "mellea_thought@52"
    third = every(3, Nudge("on"))
    assert [third.after(turn(i)) for i in range(1, 7)] == ["", "", "on", "", "", "on"]
    assert every(2, thought).opening(Problem("?")) == TEXTS["MELLEA_THOUGHT"]
    assert getattr(every(2, sized(one("mellea-initiator"), 9)), "leads", False)
    assert getattr(sized(every(2, one("rlms-variables")), 9), "wants_variables", False)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: preset("mela"), "there is no preset 'mela'; there are mellea-initiator"),
        (lambda: preset("rlms", steps=0), "steps is a number of turns, 1 or more"),
        (lambda: every(0, Nudge()), "1 or more, not 0"),
        (lambda: every(True, Nudge()), "1 or more"),
        (lambda: sized(Nudge(), -1), "0 or more, not -1"),
        (lambda: sized(preset("dspy-history")[0], 9), "dspy_history is no text"),
        (lambda: every(2, preset("dspy-history")[0]), "has no other dose"),
    ],
)
def test_what_is_refused(wrong: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        wrong()
