"""Calls that state what they are for, policies that refuse by risk (semantics 45 and 80), and injectors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from rlm_loop import LeanAgent, ReActAgent
from rlm_loop.actions import INTENT, CallTool, RunCode
from rlm_loop.agents import Agent, Rules
from rlm_loop.dialects import (
    Dialect,
    FunctionCalls,
    Initiator,
    Nudge,
    Presentation,
    ThoughtPrompt,
    TypedCalls,
)
from rlm_loop.models import Reply, ScriptedModel
from rlm_loop.tools import tool
from rlm_loop.traces import Trace
from tests.agents.replies import call, calls, written

STATED = {"expected_outcome": "the file is gone", "stop_condition": "it is gone", "risk": "high"}


@tool
def wipe(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


@tool
def insure(risk: str) -> str:
    """Insure against a risk."""
    return f"insured against {risk}"


@dataclass(frozen=True)
class Typed(Agent):
    presentation: Presentation = "native"

    def _speaks(self) -> Dialect:
        return TypedCalls(self.presentation)


def play(*replies: Reply | str, presentation: Any = "native", **settings: Any) -> tuple[Any, ScriptedModel, Trace]:
    last = call if presentation == "native" else written
    model, trace = ScriptedModel([*replies, last("final_answer", answer=1)]), Trace()
    agent = Typed(model=model, presentation=presentation, tools=(wipe, insure), **settings)
    return agent.run("Clear up.", trace=trace), model, trace


@pytest.mark.parametrize("presentation", ["native", "text", "constrained"])
def test_a_call_states_its_intent_which_no_tool_sees(presentation: Any) -> None:
    say = call if presentation == "native" else written
    replies = say("wipe", path="a", **STATED), say("wipe", path="b")
    outcome, model, trace = play(*replies, presentation=presentation)
    seen = [(turn.observations[0].text, turn.actions[0].intent) for turn in outcome.turns[:2]]
    assert seen == [("removed a", STATED), ("removed b", {})]  # one that states nothing runs all the same
    assert json.loads(outcome.turns[0].actions[0].arguments) == {"path": "a"}
    assert next(e for e in trace.events if e["event"] == "turn")["actions"][0]["intent"] == STATED
    causes = outcome.ledger.by_cause()
    assert causes["scaffold:typed_action"] > 0
    assert sum(causes.values()) == outcome.usage.input_tokens
    first = model.prompts[0]
    schemas = {t["function"]["name"]: t["function"]["parameters"] for t in first.tools}
    if first.reply_schema is not None:
        schemas = {c["properties"]["name"]["const"]: c["properties"]["arguments"] for c in first.reply_schema["anyOf"]}
    if schemas:
        assert set(schemas["wipe"]["required"]) == {"path", *INTENT}
        assert schemas["insure"]["properties"]["risk"] == {"type": "string"}
        assert list(schemas["final_answer"]["properties"]) == ["answer"]


def test_the_typed_part_of_the_schemas_is_charged_apart() -> None:
    after, model = play()[0].ledger.by_cause(), ScriptedModel([call("final_answer", answer=1)])
    plain = LeanAgent(model=model, presentation="native", tools=(wipe, insure))
    before = plain.run("Clear up.").ledger.by_cause()
    added = sum(after.values()) - sum(before.values())
    assert "scaffold:typed_action" not in before
    assert after["scaffold:typed_action"] == pytest.approx(added, rel=0.05)
    assert after["tool_schema"] == pytest.approx(before["tool_schema"], rel=0.05)


def test_a_policy_refuses_by_risk() -> None:
    asked: list[CallTool | RunCode] = []

    def policy(action: CallTool | RunCode) -> str | None:
        asked.append(action)
        high = isinstance(action, CallTool) and action.intent.get("risk") == "high"
        return "the risk is high" if high else None

    replies = [call("wipe", path="a", **(STATED | {"risk": risk})) for risk in ("high", "low")]
    outcome, _, _ = play(*replies, rules=Rules(approve=policy))
    first, second = (turn.observations[0] for turn in outcome.turns[:2])
    assert (first.failure.kind, "the risk is high" in first.text, second.text) == ("denied", True, "removed a")
    assert [a.intent["risk"] for a in asked if isinstance(a, CallTool)] == ["high", "low"]


def test_a_parameter_of_the_tools_own_stays_the_tools() -> None:
    outcome, _, _ = play(call("insure", risk="fire", stop_condition="insured"))
    assert outcome.turns[0].observations[0].text == "insured against fire"
    assert outcome.turns[0].actions[0].intent == {"stop_condition": "insured"}


@pytest.mark.parametrize("arguments", ["{oops", "[1]", "7", '{"risk": {"level": 3}}', ""])
def test_any_arguments_are_read(arguments: str) -> None:
    action: Any = TypedCalls().parse_reply(calls(("wipe", arguments)))[0]
    plain: Any = FunctionCalls().parse_reply(calls(("wipe", arguments)))[0]
    stated = {"risk": '{"level": 3}'} if "risk" in arguments else {}
    assert (action.intent, action.arguments) == (stated, "{}" if stated else plain.arguments)


# -- injectors around a dialect: their place, and what each is charged to

REPLIES = [written("python", code="print(1)"), written("final_answer", answer="5")]


@dataclass(frozen=True)
class Goal(Initiator):
    name: str = "goal"
    leads: bool = True


@pytest.mark.parametrize("frame", [(Goal("Goal: "), ThoughtPrompt("Think.")), (Goal("Goal: "), Nudge("Go on."))])
def test_an_injector_of_one_s_own_may_lead_up_to_the_question(frame: tuple[Goal, ThoughtPrompt | Nudge]) -> None:
    model = ScriptedModel(REPLIES)
    outcome = LeanAgent(model=model, presentation="text", injectors=frame).run("How much?")
    first, second = model.prompts
    _, other = frame
    opening = "\nThink." if other.name == "thought" else ""
    assert first.messages[-1].text == f"Goal: How much?{opening}"
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[-1].text == f"1\n{other.text}"
    causes = outcome.ledger.by_cause()
    assert {"task", "scaffold:goal", f"scaffold:{other.name}"} <= set(causes)
    assert sum(causes.values()) == outcome.usage.input_tokens


def test_a_scaffold_stands_in_place_of_reacts_own() -> None:
    agent = ReActAgent(model=ScriptedModel(REPLIES), form="calls", presentation="text", scaffold=(Goal("Goal: "),))
    causes = agent.run("How much?").ledger.by_cause()
    assert {c for c in causes if c.startswith("scaffold:")} == {"scaffold:goal"}
    assert agent.settings() != ReActAgent(form="calls", presentation="text").settings()
    assert "scaffold" not in ReActAgent().settings()  # results of before it was there stay theirs
    with pytest.raises(ValueError, match="scaffold"):
        ReActAgent(scaffold=())
