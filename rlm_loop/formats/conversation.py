"""A recorded run as the writers of other formats take it: agents, their calls of models, and what these set off."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rlm_loop.accounting.charges import calls_of
from rlm_loop.accounting.tree import ROOT, sort_key
from rlm_loop.actions import CallTool, Observation, RunCode
from rlm_loop.messages import Message, Reply
from rlm_loop.outcome import Score, Turn
from rlm_loop.replay.recorded import NodeRecord, Recorded, RecordedCall
from rlm_loop.traces.reader import RunRecord, whole

#: Stops that are an error of the run, not a limit that it met.
FAILED = ("failed", "interrupted")


class FormatError(ValueError):
    """A run cannot be written or sent in a format; the message is one line that says what is wrong."""


@dataclass(frozen=True)
class Act:
    """An action that was run, as the tool call that other formats have: a cell is a call of `python` with its code.

    `agents` are those that it started.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    observation: Observation
    started: float
    ended: float
    agents: tuple[Agent, ...] = ()


@dataclass(frozen=True)
class Step:
    """A call of a model and what came of it.

    `reply` is `None` where there was none; `fault` then is the kind of the error and one line, if that is known.
    `causes` are its input tokens by cause.  Times are seconds since 1970.
    """

    turn: int
    purpose: str
    model: str
    messages: tuple[Message, ...]
    tools: Sequence[Mapping[str, Any]]
    reply: Reply | None
    fault: tuple[str, str] | None
    causes: Mapping[str, int]
    started: float
    ended: float
    acts: tuple[Act, ...] = ()


@dataclass(frozen=True)
class Agent:
    """The root, a sub-agent or a single sub-call (`kind` "completion"), with all below it.

    `path` is its place in the call tree ("0" the root, "0.2" the second that the root started).  `end` is how its run
    ended as the trace says it, `fault` the kind of what went wrong and one line.  `ended` is the time of its beginning
    where it never came to its end.  `agents` are those that no action is known to have started.
    """

    path: str
    kind: str
    turn: int
    model: str
    end: Mapping[str, Any]
    fault: tuple[str, str] | None
    began: float
    ended: float
    steps: tuple[Step, ...]
    agents: tuple[Agent, ...]

    def all_steps(self) -> Iterator[Step]:
        """Yield its calls and those of all below it."""
        for step in self.steps:
            yield step
            for act in step.acts:
                for agent in act.agents:
                    yield from agent.all_steps()
        for agent in self.agents:
            yield from agent.all_steps()


@dataclass(frozen=True)
class Conversation:
    """A run: `about` is how it began, `score` how it was judged; `episode` is empty outside of a study."""

    id: str
    about: Mapping[str, Any]
    root: Agent
    score: Score | None = None
    episode: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(self.root.all_steps())

    def told(self, name: str, otherwise: str) -> str:
        """Return what the start of the run says under a name."""
        return str(self.about.get(name) or otherwise)


def conversation_of(
    record: RunRecord, score: Score | None = None, episode: Mapping[str, Any] | None = None
) -> Conversation:
    """Return the conversation of a recorded run.  Raises `TraceError` where the trace was cut or edited."""
    causes = dict[int, Counter[str]]()
    for call in calls_of(record):
        causes[call.call] = Counter()
        for row in call.rows:
            causes[call.call][row.cause] += row.tokens
    nodes = sorted(Recorded(record).nodes.values(), key=lambda node: sort_key(node.path))
    below: dict[str, list[Agent]] = {}
    for node in reversed(nodes):  # each before the one that started it
        parent = node.path.rpartition(".")[0]
        below.setdefault(parent, []).append(_agent(node, causes, below.get(node.path, ())))
    for event in record.of("score"):
        with whole(event):
            score = Score(event["resolved"], event["value"], event["reason"])
    [root] = (agent for agent in below[""] if agent.path == ROOT)
    return Conversation(record.id, record.start, root, score, episode or {})


def _agent(node: NodeRecord, causes: Mapping[int, Mapping[str, int]], children: Sequence[Agent]) -> Agent:
    steps, waiting = list[Step](), sorted(children, key=lambda child: (child.began, child.path))
    for call in node.calls:
        done = node.steps.get(call.turn) if call.of_turn else None
        with whole(call.event):
            steps.append(_step(call, done, causes, waiting))
    start, end, over = node.start or {}, node.end or {}, node.over or {}
    first = start or next((call.event for call in node.calls), over or end)
    last = over or end or first
    with whole(last or {"event": "nothing"}):
        fault = None
        if over.get("error"):
            fault = str(over["error"]["kind"]), str(over["error"]["message"])
        elif end.get("stop") in FAILED:
            fault = str(end["stop"]), str(end.get("reason") or "")
        about = str(start.get("kind", "agent")), int(start.get("turn", 0)), str(start.get("model") or "")
        times = float(first.get("at", 0.0)), float(last.get("at", 0.0))
        return Agent(node.path, *about, end, fault, *times, tuple(steps), tuple(waiting))


def _step(call: RecordedCall, done: Turn | None, causes: Mapping[int, Mapping[str, int]], waiting: list[Agent]) -> Step:
    """A call with what its turn did; takes the agents that its actions started out of those that wait."""
    event, over = call.event, call.ended or {}
    number = over.get("call", (over.get("charged") or {}).get("call"))  # the first where the run ended before a reply
    named = re.match(r"(\w+): ?", call.error or "")
    began, ended = float(event["at"]), float(over.get("at", 0.0))
    return Step(
        call.turn,
        str(event.get("purpose", "agent")),
        str(event.get("model") or ""),
        call.prompt.messages,
        call.prompt.tools,
        call.reply,
        None if call.error is None else (named[1] if named else "_OTHER", call.error),
        {} if number is None else causes.get(int(number), {}),
        began,
        max(began, ended),
        () if done is None else tuple(_acts(done, max(began, ended), waiting)),
    )


def _acts(done: Turn, clock: float, waiting: list[Agent]) -> Iterator[Act]:
    """Return what the actions of a turn ran, one after the other.

    A trace says how long a cell ran without its sub-calls, and when these were: a sub-call belongs to the first action
    that was not over when it began.
    """
    mine = [child for child in waiting if child.turn == done.index]
    ran = [(a, o) for a, o in zip(done.actions, done.observations, strict=True) if isinstance(a, (RunCode, CallTool))]
    for number, (action, seen) in enumerate(ran, 1):
        start, end, agents = clock, clock + seen.seconds, list[Agent]()
        while mine and (number == len(ran) or mine[0].began <= end):
            child = mine.pop(0)
            end += max(0.0, child.ended - max(child.began, start, *(other.ended for other in agents)))
            agents.append(child)
            waiting.remove(child)
        clock = max(end, *(child.ended for child in agents), start)
        if isinstance(action, CallTool):
            name, arguments = action.name, arguments_of(action.arguments)
        else:
            name, arguments = "python", {"code": action.code}
        id = action.call_id or f"call_{done.index}_{number}"
        yield Act(id, name, arguments, seen, start, clock, tuple(agents))


def arguments_of(text: str) -> dict[str, Any]:
    """Return arguments as an object; text that is none is kept under `arguments`."""
    try:
        value: Any = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        value = None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"arguments": text}
