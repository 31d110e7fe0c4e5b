"""A loop of one step that begins in the middle of a run: what was said and done before is the oracle's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from parcels import Step, action_of, chain

from rlm_loop import LeanAgent
from rlm_loop.actions import Observation
from rlm_loop.agents.agent import FirstRequest
from rlm_loop.agents.session import AgentSession
from rlm_loop.agents.strategies import default_presentation
from rlm_loop.messages import Message, Prompt, Reply, ToolCall
from rlm_loop.outcome import Outcome, Turn
from rlm_loop.tasks import Task
from rlm_loop.traces import Trace
from rlm_loop.workspace import Workspace


@dataclass(frozen=True)
class OneStep(LeanAgent):
    """The lean loop at a turn of a chain (`facts` of the task): it takes one step, whose actions are the artifact.

    The turns until then are shown as this loop shows turns, with its injectors, as if it had made them.  The run is a
    `LeanAgent`'s, so its trace is one too, and replays.
    """

    def first_request(self, task: Task) -> FirstRequest:
        """What is sent: the task, and the turns until now."""
        begun = super().first_request(task)
        named = {tool.name: tool for tool in begun.tools}
        messages: tuple[Message, ...] = begun.prompt.messages
        for number, step in enumerate(steps_before(task), 1):
            reply = self._reply(step, number)
            actions = tuple(begun.dialect.parse_reply(reply, named))
            messages += tuple(begun.dialect.format_turn(Turn(number, reply, actions, (Observation(step.result),))))
        return replace(begun, prompt=replace(begun.prompt, messages=messages))

    def attempt(
        self,
        task: Task,
        *,
        trace: str | Path | Trace | None = None,
        workspace: Workspace | None = None,
        exchange: AgentSession | None = None,
        **more: Any,
    ) -> Outcome:
        """Take the step; raises as `run` does.  An `exchange` is made here, and nothing is resumed."""
        before = int(task.facts["turn"]) - 1
        about: dict[str, Any] = {
            "id": task.id,
            "question": 1,
            "after": None,
            "turns": before,
            "tells_context": False,
            "asks": False,
        }
        plain = LeanAgent(**{f.name: getattr(self, f.name) for f in fields(self) if f.init})
        messages = self.first_request(task).prompt.messages
        begun = AgentSession(plain)
        begun.conversation.prompt, begun.conversation.number = Prompt(messages), before
        begun.about = about
        done = plain.attempt(task, trace=trace, workspace=workspace, exchange=begun, session=about)
        taken = [action_of(a, o) for t in done.turns for a, o in zip(t.actions, t.observations, strict=True)]
        return replace(done, artifact=taken)

    def _reply(self, step: Step, number: int) -> Reply:
        """The oracle's reply, in the form in which this loop's model makes calls."""
        if (self.presentation or default_presentation(self.model)) == "native":
            return Reply("", (ToolCall(f"call_{number}", step.tool, json.dumps(step.arguments)),))
        return Reply(json.dumps({"name": step.tool, "arguments": step.arguments}))


def steps_before(task: Task) -> Sequence[Step]:
    """What the oracle did in the turns before the task's own."""
    return list(chain(task.facts["chain"]).steps())[: int(task.facts["turn"]) - 1]
