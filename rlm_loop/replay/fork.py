"""`fork`: a recorded run goes on live from one of its turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop.accounting.tree import ROOT, node_of
from rlm_loop.agents.checking import unscored
from rlm_loop.agents.past_run import ledger_of
from rlm_loop.agents.run import Run
from rlm_loop.messages import Prompt
from rlm_loop.models.base import Model
from rlm_loop.outcome import Outcome, Turn
from rlm_loop.repl.base import CellCall
from rlm_loop.repl.contexts.on_disk import as_context, context_fingerprint
from rlm_loop.repl.records import CellRecord, cells_of
from rlm_loop.replay.rebuilt import agent_of
from rlm_loop.replay.recorded import NodeRecord, Recorded, ReplayError
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import as_tool
from rlm_loop.tools.gateway import ToolLike
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.trace import Trace


def fork(
    source: str | Path | RunRecord,
    *,
    at: int,
    run: int | str | None = None,
    model: str | Model | None = None,
    tools: Sequence[ToolLike] = (),
    context: Any = None,
    trace: str | Path | Trace | None = None,
    **settings: Any,
) -> Outcome:
    """Go on live after turn `at` of a recorded run (0: before the first).

    What the model sees of the turns until then is what it saw; they are not paid for again, but count: in the budget
    (but for its seconds), the ledger and the outcome.  The REPL is rebuilt by running the recorded cells again with the
    recorded results of what they asked of the host, sub-calls included.  `outcome.notes` says what was not as before.

    The agent is made again from the record, and asks `model`: a trace may come from a stranger, so the model that it
    names is not asked.  `settings` replace any other of its fields (`budget=...`).  What a trace does not hold has to
    be given: the `context`, the caller's own `tools`, `verify`.  `trace` is a file for the new run, which begins with
    a copy of the old one and says what it was forked from.
    Raises `ReplayError`, naming what to give, `TraceError`, and what `Agent.run` raises.
    """
    record = source if isinstance(source, RunRecord) else read(source, run=run)
    recorded = Recorded(record)
    _require_turn(recorded, at)
    driven, differences, functions = agent_of(recorded)
    if missing := [name for name in functions if name not in settings]:
        raise ReplayError(f"the run had its own {', '.join(missing)}, which a trace cannot hold: give {missing[0]}=")
    if model is None:
        raise ReplayError(f"the trace names the model {driven.model!r:.100}: give model= with the one to ask")
    names = {as_tool(t).name for t in tools}
    if missing := [t["name"] for t in recorded.tools() if t["name"] not in names]:
        raise ReplayError(f"the run had tools that a trace cannot hold: give tools= ({', '.join(missing)})")
    live = replace(driven, model=model).own_model()
    driven = replace(driven, model=live, tools=tuple(tools), **settings)
    put = Task(
        str(recorded.start.get("task", "")),
        recorded.question,
        unscored,
        context=as_context(context),
        setup=record.texts.get(recorded.problem.get("setup") or "", ""),
        needs_repl=bool(recorded.problem.get("repl")),
    )
    _require_context(recorded.context, context_fingerprint(put.context))
    cut = (n for n, e in enumerate(record.events, 1) if e["event"] == "turn" and node_of(e) == ROOT and e["turn"] == at)
    past = record.events[: next(cut, 0)]
    forked = {"trace": None if isinstance(source, RunRecord) else str(source), "run": record.id, "at": at}

    def resume(going_on: Run) -> Sequence[str]:
        return (*differences, *_load(past, recorded.root, at, going_on)) if at else differences

    return driven.attempt(put, trace=trace, resume=resume, forked=forked)


def _require_turn(recorded: Recorded, at: int) -> None:
    """Raise `ReplayError` where the run cannot go on after that turn."""
    if recorded.record.of("earlier"):
        raise ReplayError(f"it is question {recorded.start['session']['question']} of a session: only the first forks")
    if recorded.problem.get("workspace") is not None:
        raise ReplayError("the run worked in a workspace, whose files are not brought back: it cannot be forked")
    steps = recorded.root.steps
    if at < 0 or any(turn not in steps for turn in range(1, at + 1)):
        raise ReplayError(f"at={at!r} is no turn of this run: it may be 0 to {max(steps, default=0)}")
    if files := recorded.problem.get("files"):
        raise ReplayError(f"the session began with the files {', '.join(files)}, which a trace does not hold")
    if at and any(o.answer is not None for o in steps[at].observations):
        raise ReplayError(f"turn {at} gave the answer, so nothing follows it: fork at turn {at - 1} or earlier")


def _require_context(stated: Mapping[str, Any], given: Mapping[str, Any] | None) -> None:
    """Raise `ReplayError` where a context is missing, or another than the recorded one."""
    if stated and given is None:
        about = f"{stated.get('type')}, {stated.get('bytes')} bytes"
        raise ReplayError(f"the run had a context ({about}), which a trace does not hold: give context=")
    if given is not None and stated.get("sha256", given["sha256"]) != given["sha256"]:
        raise ReplayError("the context given is another than the recorded one (by SHA-256): give the very same")


def _copy(past: Sequence[Mapping[str, Any]], trace: Trace) -> None:
    """Begin a trace with the events until then; the run that goes on writes its own start and problem."""
    for event in past:
        kind = event["event"]
        if kind in ("run_start", "context") or (kind == "problem" and node_of(event) == ROOT):
            continue
        if kind == "request":
            trace.next_call()
        trace.record(kind, False, **{k: v for k, v in event.items() if k not in ("run", "event", "at")})


def _load(past: Sequence[Mapping[str, Any]], root: NodeRecord, at: int, run: Run) -> tuple[str, ...]:
    """Bring a run that took no turn to where the record was; return what is not as it was, a line each."""
    place, conversation, meter = run.environment, run.conversation, run.meter
    _copy(past, meter.trace)
    meter.ledger.calls += ledger_of(RunRecord(tuple(past))).calls
    for call in meter.ledger.calls:  # no limit stops what was recorded
        meter.account.settle(None, call.usage)
    turns = [root.steps[number] for number in range(1, at + 1)]
    last = root.request_of(at) or Prompt()
    shown = root.request_of(at + 1)  # as it was sent; where none followed, the last one and the turn
    shown = last + conversation.dialect.format_turn(turns[-1]) if shown is None else shown
    conversation.prompt = replace(conversation.prompt, messages=shown.messages)
    conversation.turns, conversation.number, run.turns = list(turns), at, list(turns)
    meter.follow(last.messages)
    meter.turn = at
    asked = [e for e in past if e["event"] == "subcall_start" and e["parent"] == ROOT]  # the next are numbered on
    meter.node.numbers(len(asked))
    for _ in {e["batch"] for e in asked if e.get("batch")}:
        meter.node.batch()
    cells = [cell for turn in turns for cell in _cells(past, turn)]
    if cells or any(o.failure and o.failure.kind == "rejected" for turn in turns for o in turn.observations):
        place.asks_for_code = False
    notes = place.resume(cells) if cells else ()
    meter.trace.record("resumed", node=ROOT, depth=0, turn=at, cells=len(cells), notes=notes)
    return notes


def _cells(past: Sequence[Mapping[str, Any]], turn: Turn) -> list[CellRecord]:
    """Return the cells of a turn with the recorded results of their host calls."""
    asking = [e for e in past if e["event"] == "cell_calls" and node_of(e) == ROOT and e["turn"] == turn.index]
    calls = [CellCall(c["name"], c["asked"], c["outcome"]) for event in asking for c in event["calls"]]
    return cells_of(turn.index, turn.actions, turn.observations, calls)
