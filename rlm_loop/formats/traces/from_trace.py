"""A recorded run as the conversation that every format sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rlm_loop.accounting.attribution import Row
from rlm_loop.accounting.charges import calls_of
from rlm_loop.accounting.tree import ROOT, sort_key
from rlm_loop.formats.traces.conversation import AgentConversation, RunConversation, Step, kept_of
from rlm_loop.outcome import Score
from rlm_loop.replay.recorded import NodeRecord, Recorded, RecordedCall, RecordedStep
from rlm_loop.traces.reader import RunRecord

#: Fields of an event that say when it was and whose: a conversation has them in other places.
_WHERE = ("run", "event", "at", "schema", "node", "depth")


def conversation_of(record: RunRecord, score: Score | None = None) -> RunConversation:
    """The conversation of a recorded run.  Raises `TraceError` where the trace was cut or edited."""
    causes = {call.call: _by_cause(call.rows) for call in calls_of(record)}
    nodes = sorted(Recorded(record).nodes.values(), key=lambda node: sort_key(node.path))
    agents = [_agent(node, causes) for node in nodes if node.calls or node.start or node.over or node.end]
    if not agents or agents[0].path != ROOT:
        agents.insert(0, AgentConversation(ROOT))
    for event in record.of("score"):
        score = Score(event["resolved"], event["value"], event["reason"])
    return RunConversation(record.id, _rest(record.start), tuple(agents), score)


def _agent(node: NodeRecord, causes: Mapping[int, dict[str, int]]) -> AgentConversation:
    last = {call.event["turn"]: call for call in node.calls if call.event.get("purpose") != "compaction"}
    steps = list[Step]()
    for call in node.calls:
        turn = call.event["turn"]
        steps.append(_step(call, node.steps.get(turn) if last.get(turn) is call else None, steps, causes))
    first = next(e for e in (node.start, *(call.event for call in node.calls[:1]), node.over, node.end) if e)
    return AgentConversation(
        node.path,
        tuple(steps),
        {} if node.start is None else _rest(node.start),
        None if node.end is None else _rest(node.end),
        None if node.over is None else _rest(node.over),
        float(first.get("at", 0.0)),
        float((node.over or node.end or {}).get("at", 0.0)),
    )


def _rest(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in _WHERE}


def _by_cause(rows: Iterable[Row]) -> dict[str, int]:
    return dict(sum((Counter({row.cause: row.tokens}) for row in rows), Counter[str]()))


def _step(
    call: RecordedCall, done: RecordedStep | None, before: list[Step], causes: Mapping[int, dict[str, int]]
) -> Step:
    """A call with what was done after it; `before` are the agent's calls until then."""
    event, over = call.event, call.ended or {}
    purpose = str(event.get("purpose", "agent"))
    charged: Mapping[str, Any] | None = over.get("charged")
    if "call" in over:  # under way when the run ended
        charged = {"call": int(over["call"])}
    return Step(
        int(event["turn"]),
        purpose,
        str(event.get("model") or ""),
        call.prompt.messages,
        call.reply,
        kept_of(call.prompt.messages, purpose, before),
        () if done is None else done.actions,
        () if done is None else done.observations,
        call.error,
        tuple(call.prompt.tools),
        {} if charged is None else causes.get(int(charged["call"]), {}),
        charged,
        float(event.get("at", 0.0)),
        float(over.get("at", 0.0)),
        None if done is None else done.event.get("seconds"),
    )
