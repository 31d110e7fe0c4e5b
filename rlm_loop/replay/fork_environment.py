"""The environment of a fork: the recorded conversation up to a turn, and from there on what is really there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rlm_loop.accounting.budget import Budget, PricePerToken
from rlm_loop.actions import Action, Observation
from rlm_loop.agents.environment import Environment
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.recursion import SubcallRunner
from rlm_loop.agents.runner import environment_of
from rlm_loop.agents.setup import RunSetup
from rlm_loop.dialects.base import NO_TOOLS, ActionMode, Dialect, Problem
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.models.base import Model
from rlm_loop.outcome import Turn
from rlm_loop.repl.cell_calls import CellCall
from rlm_loop.repl.rebuild import PastCell, cells_of
from rlm_loop.replay.playback import Playback, past_answers
from rlm_loop.replay.recorded import ROOT, NodeRecord, ReplayError
from rlm_loop.replay.replies import ReplayState
from rlm_loop.tools.function import Tool
from rlm_loop.workspace import Workspace


@dataclass
class ForkPlan:
    """Recorded for the root's turns up to `at`, live for everything after: with `model`, at its price, within the
    limits of the whole run."""

    course: ReplayState
    at: int
    model: Model
    price: PricePerToken | None
    budget: Budget
    began: float | None = None
    """When it went live, by the machine's clock."""
    notes: list[str] = field(default_factory=list[str])

    def clock(self) -> float:
        """Seconds of the recorded part, and then of the live one."""
        return self.course.seconds + (0.0 if self.began is None else time.monotonic() - self.began)

    def environment(
        self, setup: RunSetup, model: Metered, asking: SubcallRunner, workspace: Workspace | None
    ) -> Environment:
        """That of the root is brought to where the record was; a sub-agent's is as always."""
        if model.node.path != ROOT:
            return environment_of(setup, model, asking, workspace)
        return environment_of(setup, model, asking, workspace, make=partial(ForkEnvironment, self, asking))

    def go_live(self, model: Metered) -> None:
        """From here on the live model answers, and the limits hold."""
        self.began = time.monotonic()
        model.model, model.price = self.model, self.price
        model.account.budget = self.budget


class Continued:
    """A dialect that shows the recorded turns as they were shown, and speaks as it does from then on."""

    def __init__(self, dialect: Dialect, node: NodeRecord, at: int, model: Metered) -> None:
        self.dialect, self.node, self.at, self.model = dialect, node, at, model
        self.name, self.observation_cap = dialect.name, dialect.observation_cap
        self.action_mode: ActionMode = dialect.action_mode

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        today = self.dialect.format_task(problem, tools)
        return Prompt(tuple(self.node.said(0)) or today.messages, today.tools, today.stop, today.reply_schema)

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        if self.model.turn <= self.at:
            return self.node.steps[self.model.turn].actions
        return self.dialect.parse_reply(reply, tools)

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        recorded = self.node.said(turn.index) if turn.index <= self.at else []
        return recorded or self.dialect.format_turn(turn)


class ForkEnvironment(Environment):
    """An environment that is brought to where the record was, and acts from there on."""

    def __init__(self, fork: ForkPlan, asking: SubcallRunner, *tools: Any, **settings: Any) -> None:
        super().__init__(*tools, **settings)
        self._fork, self._node, self._asking = fork, fork.course.recorded.root, asking
        self._playback = Playback(fork.course, asking)

    def begin(self, patch: str) -> bool:
        if self.workspace is not None:
            restore(self._node, self._fork.at, self.workspace, self._fork.course.recorded.text)
        if not self._fork.at:
            self._fork.go_live(self._asking.agent)
        return super().begin(patch)

    def speaking(self, dialect: Dialect) -> Dialect:
        return Continued(dialect, self._node, self._fork.at, self._asking.agent) if self._fork.at else dialect

    def perform(self, actions: Sequence[Action]) -> tuple[Observation, ...]:
        turn, fork = self._asking.agent.turn, self._fork
        if turn > fork.at:
            return super().perform(actions)
        step = self._node.steps[turn]
        self._playback.turn(turn)
        fork.course.at(step.event)
        if turn == fork.at:
            fork.notes += self._resumed()
            fork.go_live(self._asking.agent)
        return step.observations

    def _resumed(self) -> tuple[str, ...]:
        recorded, cells, acted = self._fork.course.recorded, list[PastCell](), False
        for turn, step in self._node.until(self._fork.at):
            cells += cells_of(turn, step.actions, step.observations, self._calls(turn))
            acted |= any(o.failure is not None and o.failure.kind == "rejected" for o in step.observations)
        notes = self.resume(
            cells, lambda cell: past_answers(recorded, self._node, cell.turn), acted=acted or bool(cells)
        )
        who = {"node": ROOT, "depth": 0, "turn": self._fork.at}
        self._asking.agent.trace.record("resumed", **who, cells=len(cells), notes=notes)
        return notes

    def _calls(self, turn: int) -> list[CellCall]:
        return [
            CellCall(c["name"], c["asked"], self._outcome(c["outcome"]))
            for event in self._node.cells.get(turn, ())
            for c in event["calls"]
        ]

    def _outcome(self, stored: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if stored is None or "sha256" not in stored:
            return stored
        text = self._fork.course.recorded.text(stored["sha256"])
        return {"error": "RuntimeError: its result is missing from the trace"} if text is None else json.loads(text)


def restore(node: NodeRecord, at: int, workspace: Workspace, text: Callable[[str | None], str | None]) -> None:
    """Make a fresh workspace what it was after a turn; `ReplayError` where it is of another source."""
    base = node.problem["workspace"] if node.problem is not None else None
    if base and workspace.base != base:  # traces of before 2026-11 do not say it
        raise ReplayError(
            f"the workspace given begins as tree {workspace.base[:12]}, the recorded one as {base[:12]}: open it from "
            "the very same source"
        )
    trees = [str(o.effects["tree"]) for _, step in node.until(at) for o in step.observations if "tree" in o.effects]
    if not trees:
        return
    event = next((e for e in node.trees if e["tree"] == trees[-1]), None)
    patch = text(event["patch"]) if event is not None else None
    if patch is None:
        raise ReplayError(f"the files after turn {at} are not in the trace: their patch was too long, or cut away")
    workspace.apply(patch)
    if (now := workspace.snapshot()) != trees[-1]:
        raise ReplayError(
            f"the workspace given became tree {now[:12]} by the recorded patch, not {trees[-1][:12]}: open it from the "
            "very same source"
        )
