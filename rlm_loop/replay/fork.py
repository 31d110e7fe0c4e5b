"""`fork`: a recorded run goes on live from one of its turns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

from rlm_loop.accounting.budget import Account, Budget
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents import Agent
from rlm_loop.agents.config import agent_config
from rlm_loop.agents.environment import ToolLike
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.record_setup import record_start
from rlm_loop.agents.run_hooks import run_hooks
from rlm_loop.agents.runner import drive, unscored
from rlm_loop.agents.setup import NO_LIMITS
from rlm_loop.errors import nearest
from rlm_loop.models.base import Model, ModelError
from rlm_loop.models.names import names_a_place
from rlm_loop.outcome import Outcome
from rlm_loop.repl.contexts.fingerprint import context_fingerprint
from rlm_loop.repl.contexts.on_disk import as_context
from rlm_loop.replay.fork_environment import ForkPlan
from rlm_loop.replay.recorded import Recorded, RecordEnds, ReplayError
from rlm_loop.replay.replies import ReplayState, replies_of
from rlm_loop.replay.stubs import Again, agent_again, tools_of
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import as_tool
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.runs import Run
from rlm_loop.traces.trace import Trace
from rlm_loop.workspace import Workspace


def fork(
    source: str | Path | RunRecord,
    *,
    at: int,
    run: Run = None,
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

    The agent is made again from the record; `model` replaces its model, `settings` any other of its fields
    (`budget=...`), `agent` all of it.  What a trace does not hold has to be given: the `context`, the caller's own
    `tools`, `verify`; `task` brings all that a suite's task has.  `trace` is a file for the new run, which begins with
    a copy of the old one and says what it was forked from.
    Raises `ReplayError`, naming what to give, `TraceError`, and what `Agent.run` raises.
    """
    record = source if isinstance(source, RunRecord) else read(source, run=run)
    recorded = Recorded(record)
    if recorded.attempts:
        raise ReplayError("the run is several attempts at a task: fork the run of a single agent")
    if record.of("earlier"):
        number = record.start["session"]["question"]
        raise ReplayError(
            f"the run is question {number} of a session, whose REPL holds what earlier questions made: fork the first"
        )
    _check_turn(recorded, at)
    course = ReplayState(recorded)
    again = Again(agent) if agent is not None else agent_again(recorded)
    if missing := [name for name in again.functions if name not in settings]:
        raise ReplayError(f"the run had its own {', '.join(missing)}, which a trace cannot hold: give {missing[0]}=")
    known = set(signature(type(again.agent)).parameters)
    if unknown := sorted(settings.keys() - known):
        raise ReplayError(
            f"{type(again.agent).__name__} has no setting {', '.join(unknown)}{nearest(unknown[0], known)}"
        )
    driven = replace(again.agent, **settings)
    driven, put = _placed(driven, recorded, list(tools), task, context, workspace, of_record=agent is None)
    live = _live(driven, model, agent is None)
    plan = ForkPlan(course, at, live, live.price, driven.limits())
    account = Account(plan.budget, price=plan.price, clock=plan.clock)
    if at:
        account.budget = NO_LIMITS  # what was recorded is not stopped on its way
    driven = replace(driven, model=live)
    out = trace.for_run() if isinstance(trace, Trace) else Trace(trace)
    recursion = driven.recursion()
    sent: dict[str, Any] = {"max_tokens": driven.max_tokens, "temperature": driven.temperature}
    metered = Metered(replies_of(course, None), account, Ledger(), out, slots=recursion.tree.calls, **sent)
    forked = {
        "trace": None if isinstance(source, RunRecord) else str(source),
        "sha256": fingerprint_of(record),
        **{name: record.start.get(name) for name in ("task", "model")},
        "run": record.id,
        "at": at,
    }
    more = {"made": agent_config(driven), "price": plan.price, "forked": forked}
    about, context = driven.settings(), context_fingerprint(put.context)
    record_start(out, put, driven.name, about, live.name, plan.budget, context, **more)
    try:
        with run_hooks(driven.hooks, put, driven.name, metered) as told:
            outcome = drive(driven.setup(put), metered, recursion, workspace, environment=plan.environment)
            if plan.began is None:
                raise ReplayError(
                    f"today's loop ends the recorded part by itself ({outcome.stop}: {outcome.reason or 'answered'}) "
                    f"after turn {outcome.steps}: fork at an earlier turn"
                )
            return told(replace(outcome, notes=(*outcome.notes, *again.notes, *plan.notes)))
    except RecordEnds:
        raise ReplayError(f"the record does not hold the run up to turn {at}: fork at an earlier turn") from None
    finally:
        metered.node.end_children()
        if not isinstance(trace, Trace):
            out.close()


def fingerprint_of(record: RunRecord) -> str:
    """SHA-256 of a recorded run, by which a fork names it."""
    lines = (json.dumps(dict(e), sort_keys=True, separators=(",", ":")) for e in record.events)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _check_turn(recorded: Recorded, at: int) -> None:
    steps = recorded.root.steps
    if isinstance(at, bool) or not isinstance(at, int) or at < 0 or (at and at not in steps):
        there = f"0 to {recorded.root.last}" if steps else "only 0"
        raise ReplayError(f"at={at!r} is no turn of this run: it may be {there}")
    if missing := [turn for turn in range(1, at) if turn not in steps]:
        raise ReplayError(f"turn {missing[0]} is missing from the trace: it was cut or edited")
    if at and any(o.answer is not None for o in steps[at].observations):
        raise ReplayError(f"turn {at} gave the answer, so nothing follows it: fork at turn {at - 1} or earlier")


def _live(agent: Agent, model: str | Model | None, of_record: bool) -> Model:
    """The model that a fork goes on with."""
    wanted = agent.model if model is None else model
    if model is None and of_record and isinstance(wanted, str) and names_a_place(wanted):
        raise ReplayError(f"the trace names a place for its model, {wanted}: give model= if you trust it")
    try:
        return replace(agent, model=wanted).own_model()
    except (ModelError, ImportError, ValueError) as error:
        if model is None and of_record:
            raise ReplayError(f"the model of the run, {wanted}, cannot be had: give model= ({error})") from error
        raise


def _placed(
    agent: Agent,
    recorded: Recorded,
    tools: list[ToolLike],
    task: Task | None,
    context: Any,
    workspace: Workspace | None,
    *,
    of_record: bool,
) -> tuple[Agent, Task]:
    """The agent with its tools and the task with all it needs; `ReplayError` names what has to be given."""
    start, root = recorded.start, recorded.root
    question = str(start.get("question", ""))
    put = task if task is not None else Task(str(start.get("task", "")), question, unscored)
    if put.question != question:
        raise ReplayError(f"the task given asks something else than the run of task {start.get('task')!r} did")
    problem: Mapping[str, Any] = root.problem or {}
    if task is None:
        if problem.get("files"):
            raise ReplayError(f"the session began with the files {', '.join(problem['files'])}: give task=")
        action_mode = agent.dialect().action_mode
        setup = recorded.text(problem.get("setup")) or ""
        put = replace(put, context=context, setup=setup, needs_repl=bool(problem.get("repl", action_mode == "code")))
    elif context is not None:
        put = replace(put, context=context)
    put = replace(put, context=as_context(put.material()))
    _check_context(recorded, put.context)
    if problem.get("workspace") is not None and workspace is None and put.workspace is None:
        raise ReplayError("the run worked in a workspace: give workspace=Workspace(...) of the very same source")
    given = {t.name: t for t in map(as_tool, tools)}
    there = set(given) | {as_tool(t).name for t in put.tools}
    there |= {as_tool(t).name for t in (workspace.tools() if workspace is not None else ())}
    wanted = [t.name for t in tools_of(recorded, root)]
    if of_record and put.workspace is None and (missing := [n for n in wanted if n not in there]):
        raise ReplayError(f"the run had tools that a trace cannot hold: give tools= ({', '.join(missing)})")
    if of_record:
        ordered = [given.pop(name) for name in wanted if name in given]
        return replace(agent, tools=(*ordered, *given.values())), put
    return replace(agent, tools=tuple(tools)) if tools else agent, put


def _check_context(recorded: Recorded, context: Any) -> None:
    stated = recorded.context
    if stated and context is None:
        raise ReplayError(
            f"the run had a context ({stated.get('type')}, {stated.get('bytes')} bytes), which a trace does not hold: "
            "give context="
        )
    recorded.check_context(context)


def recorded_budget(record: RunRecord) -> Budget:
    """The limits of a recorded run."""
    stored: Mapping[str, Any] = record.start.get("budget") or {}
    known = {f.name for f in fields(Budget)}
    return Budget(**{k: v for k, v in stored.items() if k in known})
