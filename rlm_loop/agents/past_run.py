"""A run as it was: turns, ledger and outcome read back from a trace, with no model and no REPL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from rlm_loop.accounting.charges import calls_of
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.actions import Action, Answer, CallTool, Display, Failure, FinalAnswer, Malformed, Observation, RunCode
from rlm_loop.messages import Reply
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.traces.reader import RunRecord, reply_of, whole

#: Facts of an outcome that its last event has as they are; older traces have not all of them.
_AT_END = ("answer_form", "over_budget", "reason", "seconds", "working_seconds", "isolation")
_ACTIONS: dict[str, type[Action]] = {"RunCode": RunCode, "CallTool": CallTool, "Answer": Answer, "Malformed": Malformed}
T = TypeVar("T")


def turns_of(record: RunRecord) -> tuple[Turn, ...]:
    """The turns of the root agent.  A reply whose turn was never finished is not among them.

    Raises `TraceError` for a damaged event, as all functions here do.
    """
    replies: dict[int, Reply] = {}
    turns: list[Turn] = []
    for event in record.events:
        if event["event"] not in ("reply", "turn") or event.get("depth", 0):
            continue
        with whole(event):
            if event["event"] == "turn":
                turns.append(turn_of(event, replies.get(event["turn"], Reply())))
            elif event.get("charged", {}).get("purpose") != "compaction":
                replies[event["turn"]] = reply_of(event["reply"])
    return tuple(turns)


def turn_of(event: Mapping[str, Any], reply: Reply) -> Turn:
    """A finished turn from its event and the reply to its request."""
    actions = tuple(action_of(a) for a in event["actions"])
    observations = tuple(observation_of(o) for o in event["observations"])
    return Turn(event["turn"], reply, actions, observations, event.get("seconds", 0.0))


def ledger_of(record: RunRecord) -> Ledger:
    """Every model call of the run, sub-calls included, with its rows as they were counted."""
    return Ledger(sorted(calls_of(record), key=lambda call: call.call))


def outcome_of(record: RunRecord, *, trace: str | None = None) -> Outcome:
    """The outcome of a recorded run.

    Values that were not JSON come back as their `repr`.  A run that never came to its end (the process was
    killed) has the stop `failed` and says so.
    """
    turns, ledger, start = turns_of(record), ledger_of(record), record.start
    end = record.end or {
        "stop": Stop.FAILED,
        "reason": "the trace has no end: the run was killed, or is still going on",
        "seconds": sum(turn.seconds for turn in turns),
    }
    with whole({"event": "run_end", **end}):
        return Outcome(
            answer=value_of(end.get("answer")),
            stop=Stop(end["stop"]),
            turns=turns,
            usage=ledger.usage,
            ledger=ledger,
            artifact=value_of(end.get("artifact")),
            trace=trace,
            question=str(start.get("question", "")),
            model=str(start.get("model", "")),
            agent=str(start.get("agent", "")),
            run=record.id,
            **{name: end[name] for name in _AT_END if name in end},
        )


def _made(data: Mapping[str, Any], kind: type[T], *values: str) -> T:
    """Return an object of this kind from its stored form, of which `values` may hold anything."""
    fields = {name: value for name, value in data.items() if name != "is"}
    return kind(**fields | {name: value_of(fields[name]) for name in values if name in fields})


def action_of(data: Mapping[str, Any]) -> Action:
    """An `Action` from its stored form."""
    return _made({**data, "notes": tuple(data["notes"])} if "notes" in data else data, _ACTIONS[data["is"]], "value")


def observation_of(data: Mapping[str, Any]) -> Observation:
    """An `Observation` from its stored form; of its displays, the pictures that a trace holds."""
    fields = {name: value for name, value in data.items() if name != "variables"}  # as older traces
    shown = fields.get("displays", ())
    fields["displays"] = tuple(Display(one["mime"], one["data"]) for one in shown if "data" in one)
    for name, kind in (("failure", Failure), ("answer", FinalAnswer), ("pending", FinalAnswer)):
        if fields.get(name) is not None:
            fields[name] = _made(fields[name], kind, "value")
    return _made(fields, Observation)


def value_of(stored: Any) -> Any:
    """A stored value; what was kept as its `repr` comes back as that text."""
    if isinstance(stored, dict) and set(cast("dict[str, Any]", stored)) == {"repr"}:
        return cast("dict[str, Any]", stored)["repr"]
    if isinstance(stored, list):
        return [value_of(item) for item in cast("list[Any]", stored)]
    return cast("Any", stored)
