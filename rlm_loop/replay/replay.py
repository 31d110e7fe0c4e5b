"""`replay`: today's loop, driven by what was recorded."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from rlm_loop.accounting.budget import Account
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents import Agent
from rlm_loop.agents.environment import ToolLike
from rlm_loop.agents.loop import Interrupted
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.recursion import Recursion
from rlm_loop.agents.runner import drive, unscored
from rlm_loop.agents.setup import RunSetup
from rlm_loop.outcome import Outcome
from rlm_loop.repl.base import Session
from rlm_loop.repl.contexts.on_disk import as_context
from rlm_loop.replay.differences import Difference, Replayed, damage
from rlm_loop.replay.recorded import ROOT, Recorded, RecordEnds, ReplayError
from rlm_loop.replay.recorded_environment import recorded_environment
from rlm_loop.replay.replies import ReplayState, replies_of
from rlm_loop.replay.stubs import Again, ToldContext, agent_again, told_context, tools_of
from rlm_loop.study.store.archive import TRACES, packed_traces
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import Tool, as_tool
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.runs import Run
from rlm_loop.traces.trace import Trace, TraceError


def replay(
    trace: str | Path | RunRecord,
    *,
    run: Run = None,
    agent: Agent | None = None,
    tools: Iterable[ToolLike] = (),
    context: Any = None,
    task: Task | None = None,
) -> Replayed:
    """Drive today's loop with the replies and effects of a recorded run, and say whether its root asks the same.

    No model and no code is run, so a trace of others is safe to replay.  `run` is which run of the file.  The agent is
    made again from the record; `agent` takes its place (its model is not called), `tools` take the places of the
    recorded help and schemas of tools with their names, `context` (of the recorded hash) that of the recorded line
    about it, and `task` gives both.
    Raises `TraceError` for a file that cannot be read, and `ReplayError` where the record does not say enough.
    """
    record = trace if isinstance(trace, RunRecord) else read(trace, run=run)
    recorded = Recorded(record)
    course = ReplayState(recorded)
    if recorded.attempts:
        raise ReplayError("the run is several attempts at a task: replaying them is not supported yet; replay one run")
    again = Again(agent) if agent is not None else agent_again(recorded)
    driven, about, notes = _placed(again, recorded, tools, task, context)
    account = Account(driven.limits(), price=_price(recorded, driven), clock=course.clock)
    model = replies_of(course, account_price(recorded))
    own = Trace()
    own.start()
    recursion = replace(driven, sub_model=None).recursion()
    metered = Metered(
        model, account, Ledger(), own, max_tokens=driven.max_tokens, slots=recursion.tree.calls, price=model.price
    )
    setup = driven.setup(about)
    if (earlier := recorded.earlier()) is not None:
        said, sent = earlier
        metered.follow(said.messages[:sent])
        setup = replace(setup, earlier=said, turn_offset=int(recorded.start["session"]["turns"]))
    outcome, ended = _driven(setup, metered, recursion, course)
    given, calls = course.given.get(ROOT, 0), recorded.root.calls
    if not ended and given < len(calls):
        asked = f"a request of {len(calls[given].prompt.messages)} messages"
        course.differs(Difference(int(calls[given].event["turn"]), "end", asked, "none"))
    if course.redacted:
        notes.append(f"{course.redacted} requests hold text that was redacted: compared as they were recorded")
    return Replayed(
        requests=given,
        equal=course.equal,
        turns=len(recorded.root.steps),
        difference=course.difference,
        damage=tuple(damage(record)),
        notes=tuple(notes),
        complete=record.end is not None,
        outcome=outcome,
    )


def _driven(
    setup: RunSetup, metered: Metered, recursion: Recursion, course: ReplayState
) -> tuple[Outcome | None, bool]:
    """Today's outcome, and whether the record came to its end before the loop did."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there was to warn of was said when the run was recorded
        try:
            return drive(setup, metered, recursion, environment=recorded_environment(course)), False
        except RecordEnds:
            return None, True
        except Interrupted as interrupted:
            return interrupted.outcome, False
        except Exception as error:
            outcome: object = getattr(error, "outcome", None)
            if isinstance(outcome, Outcome) and course.recorded.root.end is not None:
                return outcome, False
            raise


def account_price(recorded: Recorded) -> tuple[float, float] | None:
    price = recorded.start.get("price")
    return None if price is None else (float(price[0]), float(price[1]))


def _price(recorded: Recorded, agent: Agent) -> tuple[float, float] | None:
    """The recorded price; where a limit in dollars needs one and the trace has none, what was billed decides."""
    price = account_price(recorded)
    return (0.0, 0.0) if price is None and agent.budget.cost is not None else price


def _placed(
    again: Again, recorded: Recorded, tools: Iterable[ToolLike], task: Task | None, context: Any
) -> tuple[Agent, Task, list[str]]:
    """The agent with its tools, the task, and what could not be had: one line each."""
    agent, notes, root = again.agent, list(again.notes), recorded.root
    question = str(recorded.start.get("question", ""))
    action_mode = agent.dialect().action_mode
    given = {t.name: t for t in map(as_tool, tools)}
    if task is not None:
        given |= {t.name: t for t in map(as_tool, task.tools)}
    own: Sequence[Tool] = tools_of(recorded, root)
    own = [given.get(t.name, t) for t in own]
    of_agent = set((recorded.start.get("made") or {}).get("tools", ()))
    material = context if task is None or context is not None else task.material()
    put = Task(
        str(recorded.start.get("task", "")),
        question,
        unscored,
        context=_context(recorded, material, question, action_mode, notes),
        tools=tuple(t for t in own if t.name not in of_agent),
        inline=task.inline if task is not None and material is not None else "",
        needs_repl=bool(root.problem["repl"]) if root.problem is not None else action_mode == "code",
    )
    driven = replace(
        agent,
        model=str(recorded.start.get("model", "")),
        tools=tuple(t for t in own if t.name in of_agent),
        hooks=(),
        repl=_never,
        sub_model=None,
        verify=None,
        answer_type=None,
    )
    return driven, put, notes


def _never() -> Session:
    raise ReplayError("a replay runs no code")


def _context(recorded: Recorded, material: Any, question: str, action_mode: str, notes: list[str]) -> Any:
    stated = recorded.context
    if material is not None:
        value = as_context(material)
        recorded.check_context(value)
        return value
    told = told_context(recorded.root, question, action_mode)
    if told is not None and stated:
        notes.append("the context is not at hand: what was told of it is as recorded (give context= to check that too)")
    return told if told is not None or not stated else ToldContext()


def recorded_runs(path: str | Path, *, run: Run = None) -> Iterator[tuple[str, RunRecord | TraceError]]:
    """The run of each trace in a file, by name; one that cannot be read is given as its error.

    Raises `TraceError` where the file itself cannot be read.
    """
    if not str(path).endswith(TRACES):
        yield str(path), read(path, run=run)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, data in packed_traces(path).items():
            place = Path(folder) / PurePosixPath(name).name
            place.write_bytes(data)
            try:
                yield name, read(place, run=run)
            except TraceError as error:
                yield name, error
            place.unlink()
