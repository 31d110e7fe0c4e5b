"""`fork`: a recorded run goes on live from one of its turns."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from rlm_loop.accounting.budget import Account
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents import Agent
from rlm_loop.agents.config import agent_config
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.past_run import ledger_of, turns_of
from rlm_loop.agents.question import unscored, with_context
from rlm_loop.agents.record import record_start
from rlm_loop.agents.run import Run, noted, with_hooks
from rlm_loop.models.base import Model
from rlm_loop.outcome import Outcome
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
    past = _Past(recorded, at)
    out = trace.for_run() if isinstance(trace, Trace) else Trace(trace)
    recursion = driven.recursion()
    meter = Meter(
        live,
        Account(driven.budget, price=live.price, clock=_going_on(past.seconds)),
        past.ledger,
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
        past.copy(out)
        past.spend(meter)

        def solve() -> Outcome:
            with driven.open(put, meter, recursion, workspace=workspace) as going_on:
                notes = past.load(going_on) if at else ()
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


class _Past:
    """The part of a recorded run until turn `at`, from which a run goes on."""

    def __init__(self, recorded: Recorded, at: int) -> None:
        self._recorded, self._at = recorded, at
        events = recorded.record.events
        ends = [n for n, e in enumerate(events) if e["event"] == "turn" and _of_root(e) and e["turn"] == at]
        self._events = events[: ends[0] + 1] if ends else ()
        start = float(recorded.start["at"])
        self.seconds = max(0.0, float(self._events[-1]["at"]) - start) if self._events else 0.0
        numbers = {e["charged"]["call"] for e in self._of("reply") if "charged" in e}
        numbers |= {e["call"] for e in self._of("model_error") if "call" in e}
        asked = {e["node"] for e in self._of("subcall_end")}
        ledger = ledger_of(recorded.record)
        calls = [call for call in ledger.calls if call.call in numbers]
        self.ledger = Ledger(calls, [one for one in ledger.cached if one.node in asked])

    def _of(self, kind: str) -> list[Mapping[str, Any]]:
        return [event for event in self._events if event["event"] == kind]

    def spend(self, meter: Meter) -> None:
        """Charge the calls until then to the run's account; no limit stops what was recorded."""
        for call in self.ledger.calls:
            meter.account.settle(None, call.usage)
            meter.node.spend(call.usage)
        for event in self._of("model_error"):
            if "call" not in event:
                meter.account.settle(None, None)

    def copy(self, trace: Trace) -> None:
        """Begin a trace with the events until then; the run that goes on writes its own start and problem."""
        for event in self._events:
            kind = event["event"]
            if kind in ("run_start", "context") or (kind == "problem" and _of_root(event)):
                continue
            if kind == "request":
                trace.next_call()
            trace.copy(kind, {k: v for k, v in event.items() if k not in ("run", "event", "at")})

    def load(self, run: Run) -> tuple[str, ...]:
        """Bring a run that took no turn to where the record was; return what is not as it was, a line each."""
        recorded, root, at = self._recorded, self._recorded.root, self._at
        place, conversation, meter = run.environment, run.conversation, run.meter
        turns = [turn for turn in turns_of(recorded.record) if turn.index <= at]
        last = [call for call in root.calls if call.of_turn and call.turn <= at][-1].prompt
        shown = root.request_of(at + 1)  # as it was sent; where none followed, the last one and the turn
        messages = (*last.messages, *conversation.dialect.format_turn(turns[-1])) if shown is None else shown.messages
        conversation.prompt = replace(conversation.prompt, messages=messages)
        conversation.turns, conversation.number, run.turns = list(turns), at, list(turns)
        meter.follow(last.messages)
        meter.turn = at
        self._number_children(meter)
        if place.workspace is not None:
            self._restore(place.workspace)
        cells = [cell for turn in turns for cell in self._cells(turn.index)]
        rejected = any(o.failure and o.failure.kind == "rejected" for turn in turns for o in turn.observations)
        if cells or rejected:
            place.acted()
        notes = place.cells.resume(cells) if cells and place.cells is not None else ()
        meter.trace.record("resumed", node=ROOT, depth=0, turn=at, cells=len(cells), notes=notes)
        return notes

    def _number_children(self, meter: Meter) -> None:
        """Number sub-calls and batches on from the recorded ones."""
        starts = [e for e in self._of("subcall_start") if e["parent"] == ROOT]
        meter.node.numbers(len(starts))
        for _ in {e["batch"] for e in starts if e.get("batch")}:
            meter.node.batch()

    def _cells(self, turn: int) -> list[CellRecord]:
        """Return the cells of a turn with the recorded results of their host calls."""
        step = self._recorded.root.steps[turn]
        made = [c for e in self._of("cell_calls") if _of_root(e) and e["turn"] == turn for c in e["calls"]]
        calls = [CellCall(c["name"], c["asked"], self._result(c["outcome"])) for c in made]
        return cells_of(turn, step.actions, step.observations, calls)

    def _result(self, stored: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if stored is None or "sha256" not in stored:
            return stored
        text = self._recorded.record.texts.get(stored["sha256"])
        return {"error": "RuntimeError: its result is missing from the trace"} if text is None else json.loads(text)

    def _restore(self, workspace: Workspace) -> None:
        """Make a fresh workspace what it was after the turn; raise `ReplayError` where it is of another source."""
        base = self._recorded.problem.get("workspace")
        if workspace.base != base:
            raise ReplayError(
                f"the workspace given begins as tree {workspace.base[:12]}, the recorded one as {base!s:.12}: open it "
                "from the very same source"
            )
        seen = [o for e in self._of("turn") if _of_root(e) for o in self._recorded.root.steps[e["turn"]].observations]
        trees = [str(o.effects["tree"]) for o in seen if "tree" in o.effects]
        if not trees:
            return
        texts = [self._recorded.record.texts.get(e["patch"]) for e in self._of("tree") if e["tree"] == trees[-1]]
        if not texts or texts[0] is None:
            raise ReplayError(
                f"the files after turn {self._at} are not in the trace: their patch was too long, or cut away"
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
