"""A run as every format sees it: who asked which model what, what came back, what was done, and what it cost.

`from_trace` reads it from a recorded run, `as_trace` writes it as one, so that whatever reads our traces (pages,
ledger, call tree) reads an imported run as well.  A writer of a format takes a `RunConversation`, a reader makes one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.accounting.tree import ROOT
from rlm_loop.actions import Action, Observation
from rlm_loop.formats.traces.calls import Called, called
from rlm_loop.messages import Message, Reply, Usage, common
from rlm_loop.outcome import Score
from rlm_loop.traces.values import body_of


@dataclass(frozen=True)
class Step:
    """One call of a model and what came of it.

    `messages` are the whole request, `kept` how many of them the call before by the same agent for the same purpose
    already had.  `reply` is `None` where there was none: `error` then says why, if that is known.  `actions` and
    `observations` are of equal length, and empty where the turn was never finished.  `causes` are the call's input
    tokens by cause (see `rlm_loop.messages.CAUSES`); they sum to `usage.input_tokens`, and are empty where a format has
    no ledger.  `charged` is what a trace keeps of the ledger (see `accounting.charges`), `None` where nobody counted.
    `started` and `ended` are seconds since 1970, `seconds` the whole turn on the clock.
    """

    turn: int
    purpose: str
    model: str
    messages: tuple[Message, ...]
    reply: Reply | None
    kept: int = 0
    actions: tuple[Action, ...] = ()
    observations: tuple[Observation, ...] = ()
    error: str | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    causes: Mapping[str, int] = field(default_factory=dict[str, int])
    charged: Mapping[str, Any] | None = None
    started: float = 0.0
    ended: float = 0.0
    seconds: float | None = None

    def acts(self, prefix: str) -> Iterator[tuple[Action, Observation, Called | None]]:
        """Each action with what it led to and, where it asks for something to be run, the tool call that it is.

        A call without an id has the prefix and its number.
        """
        for number, (action, observation) in enumerate(zip(self.actions, self.observations, strict=True), 1):
            yield action, observation, called(action, f"{prefix}_{number}")

    @property
    def request(self) -> dict[str, Any]:
        """The request as a file may store it: how many messages the call before had already, and the others."""
        return {"kept": self.kept, "added": [body_of(message) for message in self.messages[self.kept :]]}

    @property
    def usage(self) -> Usage | None:
        """What the call cost; `None` where there was no reply, or its usage is not known."""
        return None if self.reply is None else self.reply.usage


@dataclass(frozen=True)
class AgentConversation:
    """The root, a sub-agent or a single sub-call: its calls in order, and how it began and ended as a trace says it.

    `path` is its place in the call tree ("0" the root, "0.2" the second that the root started).
    """

    path: str
    steps: tuple[Step, ...] = ()
    start: Mapping[str, Any] = field(default_factory=dict[str, Any])
    end: Mapping[str, Any] | None = None
    over: Mapping[str, Any] | None = None
    began: float = 0.0
    ended: float = 0.0

    @property
    def parent(self) -> str:
        """The path of the agent that started it; empty for the root."""
        return self.path.rpartition(".")[0]


@dataclass(frozen=True)
class RunConversation:
    """One run: `agents` are the root and all below it, each parent before its children; `about` is how it began.

    `id` is the id of the run, `score` how it was judged (a trace alone does not say that: a study's row does).  For a
    run of a study `about` has its arm, model, suite, task and seed under `episode`.
    """

    id: str
    about: Mapping[str, Any]
    agents: tuple[AgentConversation, ...]
    score: Score | None = None

    @property
    def root(self) -> AgentConversation:
        return self.agents[0]

    @property
    def steps(self) -> tuple[Step, ...]:
        """All model calls, agent by agent."""
        return tuple(step for agent in self.agents for step in agent.steps)

    @property
    def usage(self) -> Usage:
        """The sum over all calls that got a reply; a figure is `None` where one of them does not know it."""
        spent = [step.usage or Usage(None, None) for step in self.steps if step.reply is not None]
        return sum(spent, Usage.NOTHING)

    @property
    def causes(self) -> dict[str, int]:
        """Input tokens by cause, over all calls."""
        return dict(sum((Counter(step.causes) for step in self.steps), Counter[str]()))

    @property
    def question(self) -> str:
        return str(self.about.get("question") or "")

    @property
    def task(self) -> str:
        return str(self.about.get("task") or "question")

    @property
    def agent(self) -> str:
        return str(self.about.get("agent") or "agent")

    @property
    def model(self) -> str:
        return str(self.about.get("model") or "unknown")

    @property
    def episode(self) -> Mapping[str, Any]:
        """Of which study, arm, model, suite, task and seed the run is; empty outside of a study."""
        return self.about.get("episode") or {}

    @property
    def answer(self) -> Any:
        return (self.root.end or {}).get("answer")

    @property
    def stop(self) -> str | None:
        """Why the run ended; `None` where it never came to its end."""
        return (self.root.end or {}).get("stop")

    def in_order(self, agent: AgentConversation) -> Iterator[tuple[int, Step, list[AgentConversation]]]:
        """The calls of an agent with their places, each with the agents that were started in its turn.

        Of several calls of one turn (one that summarises has no turn of its own) the last has them.
        """
        last = {step.turn: number for number, step in enumerate(agent.steps)}
        for number, step in enumerate(agent.steps):
            yield number, step, self.children(agent.path, step.turn) if last[step.turn] == number else []

    def unplaced(self, agent: AgentConversation) -> list[AgentConversation]:
        """The agents that one started in a turn of which there is no call."""
        turns = {step.turn for step in agent.steps}
        return [child for child in self.children(agent.path) if child.start.get("turn") not in turns]

    def children(self, path: str, turn: int | None = None) -> list[AgentConversation]:
        """The agents that one started, in that turn."""
        return [a for a in self.agents if a.path != ROOT and a.parent == path and turn in (None, a.start.get("turn"))]


def kept_of(messages: tuple[Message, ...], purpose: str, before: list[Step]) -> int:
    """How many leading messages the latest call before for the same purpose already had."""
    return common(_latest(purpose, before), messages)


def _latest(purpose: str, before: list[Step]) -> tuple[Message, ...]:
    return next((step.messages for step in reversed(before) if step.purpose == purpose), ())
