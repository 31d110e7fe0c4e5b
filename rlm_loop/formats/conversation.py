"""A recorded run as the writers of other formats take it: agents, their calls of models, and the actions of replies."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from rlm_loop.accounting.charges import calls_of
from rlm_loop.accounting.tree import sort_key
from rlm_loop.actions import CallTool, Observation, RunCode
from rlm_loop.outcome import Score, Turn
from rlm_loop.replay.recorded import NodeRecord, Recorded, RecordedCall
from rlm_loop.traces.reader import RunRecord, whole


class FormatError(ValueError):
    """A run cannot be written or sent in a format; the message is one line that says what is wrong."""


@dataclass(frozen=True)
class Act:
    """An action that was run, as the tool call that other formats have: a cell is a call of `python` with its code."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    observation: Observation


@dataclass(frozen=True)
class Span:
    """Something of a run that took time: an agent or a single sub-call (`of` is its node), a model call, or an action.

    `id` is its place: "0" the root, "0.2" the second agent that it started, "0/3" a model call of the root, "0/3/1" an
    action of its reply.  `parent` is the agent of a call and of an action, and the action that started an agent.  Times
    are seconds since 1970.  `fault` is the kind of what went wrong and one line, `causes` are the input tokens of a
    model call by cause.
    """

    id: str
    parent: str | None
    began: float
    ended: float
    fault: tuple[str, str] | None
    of: NodeRecord | RecordedCall | Act
    causes: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Conversation:
    """A run: `about` is how it began, `spans` has each span after its parent, `score` is how it was judged.

    `episode` is empty outside of a study.
    """

    id: str
    about: Mapping[str, Any]
    spans: Sequence[Span]
    score: Score | None = None
    episode: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def calls(self) -> list[RecordedCall]:
        """The model calls of all agents."""
        return [span.of for span in self.spans if isinstance(span.of, RecordedCall)]

    @property
    def root(self) -> NodeRecord:
        """The agent that was asked."""
        return next(span.of for span in self.spans if isinstance(span.of, NodeRecord))

    def told(self, name: str, otherwise: str) -> str:
        """Return what the start of the run says under a name."""
        return str(self.about.get(name) or otherwise)


def conversation_of(
    record: RunRecord, score: Score | None = None, episode: Mapping[str, Any] | None = None
) -> Conversation:
    """Return the conversation of a recorded run.  Raises `TraceError` where the trace was cut or edited."""
    causes: dict[int, Counter[str]] = {}
    for call in calls_of(record):
        found = causes.setdefault(call.call, Counter())
        for row in call.rows:
            found[row.cause] += row.tokens
    spans: list[Span] = []
    acted: dict[tuple[str, int], str] = {}  # by agent and turn, the action that sub-calls are taken to be of: the last
    for node in sorted(Recorded(record).nodes.values(), key=lambda node: sort_key(node.path)):
        above = node.path.rpartition(".")[0]
        with whole(node.start or {"event": "nothing"}):
            parent = acted.get((above, int((node.start or {}).get("turn", 0))), above or None)
        spans.append(_agent(node, parent))
        for place, call in enumerate(node.calls):
            with whole(call.event):
                span = _call(call, f"{node.path}/{place}", node.path, causes)
                acts = list(_acts(node.steps.get(call.turn), span)) if call.of_turn else []
            spans += [span, *acts]
            if acts:
                acted[node.path, call.turn] = acts[-1].id
    for event in record.of("score"):
        with whole(event):
            score = Score(event["resolved"], event["value"], event["reason"])
    return Conversation(record.id, record.start, _to_their_ends(spans), score, episode or {})


def _agent(node: NodeRecord, parent: str | None) -> Span:
    start, end, over = node.start or {}, node.end or {}, node.over or {}
    first = start or next((call.event for call in node.calls), over or end)
    last = over or end or first
    with whole(last or {"event": "nothing"}):
        fault = None
        if over.get("error"):
            fault = str(over["error"]["kind"]), str(over["error"]["message"])
        elif end.get("stop") in ("failed", "interrupted"):  # others are limits that it met
            fault = str(end["stop"]), str(end.get("reason") or "")
        return Span(node.path, parent, float(first.get("at", 0.0)), float(last.get("at", 0.0)), fault, node)


def _call(call: RecordedCall, id: str, agent: str, causes: Mapping[int, Mapping[str, int]]) -> Span:
    over = call.ended or {}
    number = over.get("call", (over.get("charged") or {}).get("call"))  # the first where the run ended before a reply
    named = re.match(r"(\w+): ?", call.error or "")
    fault = None if call.error is None else (named[1] if named else "_OTHER", call.error)
    began = float(call.event["at"])
    ended = max(began, float(over.get("at", 0.0)))
    return Span(id, agent, began, ended, fault, call, {} if number is None else causes.get(int(number), {}))


def _acts(done: Turn | None, call: Span) -> Iterator[Span]:
    """Yield the actions that a turn ran, one after the other from the end of its model call on."""
    if done is None:
        return
    clock = call.ended
    ran = [(a, o) for a, o in zip(done.actions, done.observations, strict=True) if isinstance(a, (RunCode, CallTool))]
    for number, (action, seen) in enumerate(ran, 1):
        if isinstance(action, CallTool):
            name, arguments = action.name, arguments_of(action.arguments)
        else:
            name, arguments = "python", {"code": action.code}
        act = Act(action.call_id or f"call_{done.index}_{number}", name, arguments, seen)
        fault = None if seen.failure is None else (str(seen.failure.kind), seen.failure.message)
        yield Span(f"{call.id}/{number}", call.parent, clock, clock + seen.seconds, fault, act)
        clock += seen.seconds


def _to_their_ends(spans: Sequence[Span]) -> list[Span]:
    """The spans, each until the end of what is below it: one that waits has no time of its own for that, or no end."""
    latest: dict[str | None, float] = {}
    found: list[Span] = []
    for span in reversed(spans):
        ended = max(span.ended, latest.get(span.id, span.ended))
        latest[span.parent] = max(ended, latest.get(span.parent, ended))
        found.append(replace(span, ended=ended))
    return found[::-1]


def arguments_of(text: str) -> dict[str, Any]:
    """Return arguments as an object; text that is none is kept under `arguments`."""
    try:
        value: Any = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        value = None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"arguments": text}
