"""`replay`: a run on recorded parts, whose requests are compared with the recorded ones."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from rlm_loop.accounting.budget import Account
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents import Agent
from rlm_loop.agents.conversation import Conversation
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.question import in_workspace, unscored
from rlm_loop.agents.record import RunLog
from rlm_loop.agents.recursion import SubcallRunner
from rlm_loop.agents.run import Interrupted, Run
from rlm_loop.agents.session import Exchange
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.injectors import Told
from rlm_loop.messages import Prompt, Reply
from rlm_loop.outcome import Outcome, Turn
from rlm_loop.repl.base import Session
from rlm_loop.repl.contexts.on_disk import as_context
from rlm_loop.replay.differences import Difference, Replayed, damage
from rlm_loop.replay.parts import (
    RebuiltAgent,
    RecordedInjector,
    ToldContext,
    agent_of,
    told_context,
    told_names,
    tools_of,
)
from rlm_loop.replay.playing import Progress, RecordedEnvironment, Replies
from rlm_loop.replay.recorded import Recorded, RecordEnds, ReplayError
from rlm_loop.study.store.archive import TRACES, packed_traces
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import Tool, as_tool
from rlm_loop.tools.serving import ToolLike
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.runs import Run as WhichRun
from rlm_loop.traces.trace import Trace, TraceError


def replay(
    trace: str | Path | RunRecord,
    *,
    run: WhichRun = None,
    agent: Agent | None = None,
    tools: Iterable[ToolLike] = (),
    context: Any = None,
    task: Task | None = None,
) -> Replayed:
    """Run today's loop on the replies and results of a recorded run, and say whether its root asks the same.

    Sub-calls are not made again: what they came to stands in the results.  No model and no code is run, so a trace of
    others is safe to replay.  `run` is which run of the file.  The agent is
    made again from the record; `agent` takes its place (its model is not called), `tools` take the places of the
    recorded help and schemas of tools with their names, `context` (of the recorded hash) that of the recorded line
    about it, and `task` gives both.
    Raises `TraceError` for a file that cannot be read, and `ReplayError` where the record does not say enough.
    """
    record = trace if isinstance(trace, RunRecord) else read(trace, run=run)
    recorded = Recorded(record)
    if recorded.attempts:
        raise ReplayError("the run is several attempts at a task: replaying them is not supported yet; replay one run")
    rebuilt = RebuiltAgent(agent) if agent is not None else agent_of(recorded)
    driven, about, notes = _placed(rebuilt, recorded, tools, task, context)
    progress = Progress(recorded)
    outcome, ended = _solved(driven, about, progress)
    calls = recorded.root.calls
    if not ended and progress.answered < len(calls):
        left = calls[progress.answered]
        asked = f"a request of {len(left.prompt.messages)} messages"
        progress.differs(Difference(int(left.event["turn"]), "end", asked, "none"))
    if progress.redacted:
        notes.append(f"{progress.redacted} requests hold text that was redacted: compared as they were recorded")
    return Replayed(
        requests=progress.answered,
        equal=progress.equal,
        turns=len(recorded.root.steps),
        difference=progress.difference,
        damage=tuple(damage(record)),
        notes=tuple(notes),
        complete=record.end is not None,
        outcome=outcome,
    )


def _solved(agent: Agent, task: Task, progress: Progress) -> tuple[Outcome | None, bool]:
    """Today's outcome, and whether the record came to its end before the loop did."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there was to warn of was said when the run was recorded
        try:
            return _run(agent, task, progress).solve(), False
        except RecordEnds:
            return None, True
        except Interrupted as interrupted:
            return interrupted.outcome, False
        except Exception as error:
            outcome: object = getattr(error, "outcome", None)
            if isinstance(outcome, Outcome) and progress.recorded.root.end is not None:
                return outcome, False
            raise


def _run(agent: Agent, task: Task, progress: Progress) -> Run:
    """The run on recorded parts, with its task put."""
    recorded = progress.recorded
    model = Replies(progress, account_price(recorded))
    own = Trace()
    own.start()
    account = Account(agent.limits(), price=_price(recorded, agent), clock=progress.clock)
    meter = Meter(model, account, Ledger(), own, max_tokens=agent.max_tokens, price=model.price)
    recursion = agent.recursion()
    asks = SubcallRunner(meter, recursion, _no_sub_agent)
    make = partial(RecordedEnvironment, progress, meter)
    place = agent.environment(task, agent.tools, asks, meter, RunLog(meter), None, Exchange(), make)
    problem = _told(agent, task, recorded)
    if recorded.root.problem is not None and recorded.root.problem["workspace"] is not None:
        problem = in_workspace(problem, place.tools)
    conversation, asked = Conversation(agent.dialect(), agent.compaction()), True
    messages, sent = recorded.earlier()
    if messages:
        about = recorded.start["session"]
        meter.follow(messages[:sent])
        shown = [Turn(number, Reply(), (), ()) for number in dict.fromkeys(m.turn for m in messages if m.turn)]
        conversation = replace(conversation, prompt=Prompt(messages), turns=shown, number=int(about["turns"]))
        asked = bool(about.get("asks", True))
        problem = problem if about["tells_context"] else replace(problem, context="", inline="")
    said = [(name, RecordedInjector(name, recorded.root)) for name in told_names(recorded.root)]
    brief = [Told(injector.opening(Problem(task.question)), name) for name, injector in said]
    conversation.start(problem, place.tools, meter, brief, asks=asked)
    return Run(task, conversation, place, meter, agent=agent.name)


def _told(agent: Agent, task: Task, recorded: Recorded) -> Problem:
    """Today's words about a context that is at hand, else the recorded ones."""
    if isinstance(task.context, ToldContext):
        return task.context.problem(task.question)
    return agent.problem(replace(task, workspace=None), None)[0]


def _no_sub_agent(question: str, context: Any, meter: Meter) -> Outcome:
    raise ReplayError("a replay asks no model")


def account_price(recorded: Recorded) -> tuple[float, float] | None:
    price = recorded.start.get("price")
    return None if price is None else (float(price[0]), float(price[1]))


def _price(recorded: Recorded, agent: Agent) -> tuple[float, float] | None:
    """The recorded price; where a limit in dollars needs one and the trace has none, what was billed decides."""
    price = account_price(recorded)
    return (0.0, 0.0) if price is None and agent.budget.cost is not None else price


def _placed(
    rebuilt: RebuiltAgent, recorded: Recorded, tools: Iterable[ToolLike], task: Task | None, context: Any
) -> tuple[Agent, Task, list[str]]:
    """The agent with its tools, the task, and what could not be had: one line each."""
    agent, notes, root = rebuilt.agent, list(rebuilt.notes), recorded.root
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
        subcalls=replace(agent.subcalls, model=None, models=()),
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


def recorded_runs(path: str | Path, *, run: WhichRun = None) -> Iterator[tuple[str, RunRecord | TraceError]]:
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
