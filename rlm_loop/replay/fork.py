"""`fork`: a recorded run goes on live from one of its turns."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from rlm_loop.accounting.budget import Account
from rlm_loop.agents import Agent
from rlm_loop.agents.config import agent_config
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.past_run import ledger_of, turns_of
from rlm_loop.agents.question import unscored, with_context
from rlm_loop.agents.record import record_start
from rlm_loop.agents.run import Run, noted, with_hooks
from rlm_loop.models.base import Model
from rlm_loop.outcome import Outcome, Turn
from rlm_loop.repl.base import CellCall
from rlm_loop.repl.contexts.fingerprint import context_fingerprint
from rlm_loop.repl.rebuild import cells_of
from rlm_loop.repl.records import CellRecord
from rlm_loop.replay.rebuilt import RebuiltAgent, agent_of
from rlm_loop.replay.recorded import ROOT, Recorded, ReplayError
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import as_tool
from rlm_loop.tools.hooks import Hooks
from rlm_loop.tools.serving import ToolLike
from rlm_loop.traces.reader import Run as WhichRun
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.trace import Trace
from rlm_loop.workspace import Workspace


def fork(
    source: str | Path | RunRecord,
    *,
    at: int,
    run: WhichRun = None,
    model: str | Model | None = None,
    agent: Agent | None = None,
    tools: Iterable[ToolLike] = (),
    context: Any = None,
    workspace: Workspace | None = None,
    task: Task | None = None,
    trace: str | Path | Trace | None = None,
    **settings: Any,
) -> Outcome:
    """Go on live after turn `at` of a recorded run (0: before the first).

    What the model sees of the turns until then is what it saw; they are not paid for again, but count: in the budget,
    the ledger and the outcome.  The REPL is rebuilt by running the recorded cells again with the recorded results of
    what they asked of the host, sub-calls included; a `workspace` of the same source gets the files of that turn.
    `outcome.notes` says what was not as before.

    The agent is made again from the record, and asks `model`: a trace may come from a stranger, so the model that it
    names is not asked unless the user names it.  `settings` replace any other of its fields
    (`budget=...`), `agent` all of it.  What a trace does not hold has to be given: the `context`, the caller's own
    `tools`, `verify`; `task` brings all that a suite's task has.  `trace` is a file for the new run, which begins with
    a copy of the old one and says what it was forked from.
    Raises `ReplayError`, naming what to give, `TraceError`, and what `Agent.run` raises.
    """
    record = source if isinstance(source, RunRecord) else read(source, run=run)
    recorded = Recorded(record)
    _require_turn(recorded, at)
    rebuilt = RebuiltAgent(agent) if agent is not None else agent_of(recorded)
    driven = _with_settings(rebuilt, settings)
    if model is None and agent is None:
        raise ReplayError(f"the trace names the model {driven.model!r:.100}: give model= with the one to ask")
    live = replace(driven, model=driven.model if model is None else model).own_model()
    put = _task(recorded, task, driven.dialect.action_mode, context, workspace)
    given = _tools(recorded, list(tools), put, workspace) if agent is None else tuple(tools) or driven.tools
    driven = replace(driven, model=live, tools=given)
    past = _until(record, at)
    seconds = max(0.0, float(past.events[-1]["at"]) - float(past.start["at"])) if at else 0.0
    out = trace.for_run() if isinstance(trace, Trace) else Trace(trace)
    recursion = driven.recursion()
    meter = Meter(
        live,
        Account(driven.budget, price=live.price, clock=_going_on(seconds)),
        ledger_of(past),
        out,
        max_tokens=driven.max_tokens,
        temperature=driven.temperature,
        slots=recursion.tree.calls,
        hooks=Hooks(driven.hooks),
        price=live.price,
    )
    forked = {
        "trace": None if isinstance(source, RunRecord) else str(source),
        **{name: record.start.get(name) for name in ("task", "model")},
        "run": record.id,
        "at": at,
    }
    more = {"made": agent_config(driven), "price": live.price, "forked": forked}
    about, told = driven.settings(), context_fingerprint(put.context)
    record_start(out, put, driven.name, about, live.name, driven.budget, told, **more)
    try:
        _copy(past, out)
        _spend(past, meter)

        def solve() -> Outcome:
            with driven.open(put, meter, recursion, workspace=workspace) as going_on:
                notes = _load(past, recorded, going_on) if at else ()
                outcome = going_on.solve()
            return noted(outcome, (*going_on.environment.faults, *rebuilt.notes, *notes))

        return with_hooks(put, driven.name, meter, solve)
    finally:
        meter.node.end_children()
        if not isinstance(trace, Trace):
            out.close()


def _going_on(seconds: float) -> Callable[[], float]:
    """Return a clock whose first reading, an account's start, is so many seconds ago."""
    readings = iter([time.monotonic() - seconds])
    return lambda: next(readings, None) or time.monotonic()


def _until(record: RunRecord, at: int) -> RunRecord:
    """Return the part of a recorded run until the end of turn `at`."""
    events = record.events
    ends = [n for n, e in enumerate(events) if e["event"] == "turn" and _of_root(e) and e["turn"] == at]
    return RunRecord(events[: ends[0] + 1] if ends else ())


def _copy(past: RunRecord, trace: Trace) -> None:
    """Begin a trace with the events until then; the run that goes on writes its own start and problem."""
    for event in past.events:
        kind = event["event"]
        if kind in ("run_start", "context") or (kind == "problem" and _of_root(event)):
            continue
        if kind == "request":
            trace.next_call()
        trace.copy(kind, {k: v for k, v in event.items() if k not in ("run", "event", "at")})


def _spend(past: RunRecord, meter: Meter) -> None:
    """Charge the calls until then to the run's account; no limit stops what was recorded."""
    for call in meter.ledger.calls:
        meter.account.settle(None, call.usage)
        meter.node.spend(call.usage)
    for event in past.of("model_error"):
        if "call" not in event:
            meter.account.settle(None, None)


def _load(past: RunRecord, recorded: Recorded, run: Run) -> tuple[str, ...]:
    """Bring a run that took no turn to where the record was; return what is not as it was, a line each."""
    place, conversation, meter = run.environment, run.conversation, run.meter
    turns, root = turns_of(past), recorded.root
    at = turns[-1].index
    last = [call for call in root.calls if call.of_turn and call.turn <= at][-1].prompt
    shown = root.request_of(at + 1)  # as it was sent; where none followed, the last one and the turn
    messages = (*last.messages, *conversation.dialect.format_turn(turns[-1])) if shown is None else shown.messages
    conversation.prompt = replace(conversation.prompt, messages=messages)
    conversation.turns, conversation.number, run.turns = list(turns), at, list(turns)
    meter.follow(last.messages)
    meter.turn = at
    asked = [e for e in past.of("subcall_start") if e["parent"] == ROOT]  # the next ones are numbered on
    meter.node.numbers(len(asked))
    for _ in {e["batch"] for e in asked if e.get("batch")}:
        meter.node.batch()
    if place.workspace is not None:
        _restore(past, recorded, turns, place.workspace)
    cells = [cell for turn in turns for cell in _cells(past, turn)]
    if cells or any(o.failure and o.failure.kind == "rejected" for turn in turns for o in turn.observations):
        place.acted()
    notes = place.cells.resume(cells) if cells and place.cells is not None else ()
    meter.trace.record("resumed", node=ROOT, depth=0, turn=at, cells=len(cells), notes=notes)
    return notes


def _cells(past: RunRecord, turn: Turn) -> list[CellRecord]:
    """Return the cells of a turn with the recorded results of their host calls."""
    made = [c for e in past.of("cell_calls") if _of_root(e) and e["turn"] == turn.index for c in e["calls"]]
    calls = [CellCall(c["name"], c["asked"], _result(past, c["outcome"])) for c in made]
    return cells_of(turn.index, turn.actions, turn.observations, calls)


def _result(past: RunRecord, stored: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if stored is None or "sha256" not in stored:
        return stored
    text = past.texts.get(stored["sha256"])
    return {"error": "RuntimeError: its result is missing from the trace"} if text is None else json.loads(text)


def _restore(past: RunRecord, recorded: Recorded, turns: Sequence[Turn], workspace: Workspace) -> None:
    """Make a fresh workspace what it was after the turn; raise `ReplayError` where it is of another source."""
    base = recorded.problem.get("workspace")
    if workspace.base != base:
        raise ReplayError(
            f"the workspace given begins as tree {workspace.base[:12]}, the recorded one as {base!s:.12}: open it "
            "from the very same source"
        )
    trees = [str(o.effects["tree"]) for turn in turns for o in turn.observations if "tree" in o.effects]
    if not trees:
        return
    texts = [past.texts.get(e["patch"]) for e in past.of("tree") if e["tree"] == trees[-1]]
    if not texts or texts[0] is None:
        raise ReplayError(
            f"the files after turn {turns[-1].index} are not in the trace: their patch was too long, or cut away"
        )
    workspace.apply(texts[0])


def _of_root(event: Mapping[str, Any]) -> bool:
    return event.get("node", ROOT) == ROOT and not event.get("depth", 0)


def _require_turn(recorded: Recorded, at: int) -> None:
    """Raise `ReplayError` where the run cannot go on after that turn."""
    recorded.require_one_run()
    if recorded.record.of("earlier"):
        number = recorded.start["session"]["question"]
        raise ReplayError(
            f"the run is question {number} of a session, whose REPL holds what earlier questions made: fork the first"
        )
    steps = recorded.root.steps
    if isinstance(at, bool) or not isinstance(at, int) or at < 0 or (at and at not in steps):
        turns = f"0 to {recorded.root.last}" if steps else "only 0"
        raise ReplayError(f"at={at!r} is no turn of this run: it may be {turns}")
    if missing := [turn for turn in range(1, at) if turn not in steps]:
        raise ReplayError(f"turn {missing[0]} is missing from the trace: it was cut or edited")
    if at and any(o.answer is not None for o in steps[at].observations):
        raise ReplayError(f"turn {at} gave the answer, so nothing follows it: fork at turn {at - 1} or earlier")


def _with_settings(rebuilt: RebuiltAgent, settings: Mapping[str, Any]) -> Agent:
    """Return the agent with other settings; raise `ReplayError` for unknown ones, and where a needed one is missing."""
    if missing := [name for name in rebuilt.functions if name not in settings]:
        raise ReplayError(f"the run had its own {', '.join(missing)}, which a trace cannot hold: give {missing[0]}=")
    kind = type(rebuilt.agent)
    if unknown := sorted(settings.keys() - set(signature(kind).parameters)):
        raise ReplayError(f"{kind.__name__} has no setting {', '.join(unknown)}")
    return replace(rebuilt.agent, **settings)


def _task(recorded: Recorded, task: Task | None, mode: str, context: Any, workspace: Workspace | None) -> Task:
    """Return the task with its context; raise `ReplayError` for what has to be given."""
    start, problem, question = recorded.start, recorded.problem, recorded.question
    put = task if task is not None else Task(str(start.get("task", "")), question, unscored)
    if put.question != question:
        raise ReplayError(f"the task given asks something else than the run of task {start.get('task')!r} did")
    if task is None:
        if problem.get("files"):
            raise ReplayError(f"the session began with the files {', '.join(problem['files'])}: give task=")
        setup = recorded.record.texts.get(problem.get("setup") or "", "")
        put = replace(put, setup=setup, needs_repl=bool(problem.get("repl", mode == "code")))
    put = with_context(put if context is None else replace(put, context=context))
    if (stated := recorded.context) and put.context is None:
        raise ReplayError(
            f"the run had a context ({stated.get('type')}, {stated.get('bytes')} bytes), which a trace does not hold: "
            "give context="
        )
    recorded.check_context(put.context)
    if problem.get("workspace") is not None and workspace is None and put.workspace is None:
        raise ReplayError("the run worked in a workspace: give workspace=Workspace(...) of the very same source")
    return put


def _tools(recorded: Recorded, tools: list[ToolLike], task: Task, workspace: Workspace | None) -> tuple[ToolLike, ...]:
    """Return the given tools, in the recorded order; raise `ReplayError` for those that have to be given."""
    given = {t.name: t for t in map(as_tool, tools)}
    others = {as_tool(t).name for t in (*task.tools, *(workspace.tools() if workspace is not None else ()))}
    wanted = [str(t["name"]) for t in recorded.tools()]
    missing = [name for name in wanted if name not in given and name not in others]
    if missing and task.workspace is None:
        raise ReplayError(f"the run had tools that a trace cannot hold: give tools= ({', '.join(missing)})")
    ordered = [given.pop(name) for name in wanted if name in given]
    return (*ordered, *given.values())
