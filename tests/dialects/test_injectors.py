"""Injectors around a dialect: their place, and what each is charged to."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rlm_loop import LeanAgent, ReActAgent
from rlm_loop.dialects import Initiator, Nudge, ThoughtPrompt
from rlm_loop.models import ScriptedModel
from tests.agents.replies import written

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
