"""`fork`: a recorded run goes on live from one of its turns."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

from rlm_loop.accounting.budget import Account, Budget
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents import Agent
from rlm_loop.agents.config import agent_config
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.past_run import ledger_of, turns_of
from rlm_loop.agents.question import unscored, with_context
from rlm_loop.agents.record import record_start
from rlm_loop.agents.recursion.record import sha256_of
from rlm_loop.agents.run import Run, noted
from rlm_loop.errors import nearest
from rlm_loop.messages import Message
from rlm_loop.models.base import Model
from rlm_loop.outcome import Outcome
from rlm_loop.repl.cell_calls import CellCall
from rlm_loop.repl.contexts.fingerprint import context_fingerprint
from rlm_loop.repl.rebuild import Fallback, PastCell, cells_of
from rlm_loop.repl.worker import SubAnswer, SubFailure
from rlm_loop.replay.parts import RebuiltAgent, agent_of, tools_of
from rlm_loop.replay.playing import spend
from rlm_loop.replay.recorded import ROOT, NodeRecord, Recorded, ReplayError
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import as_tool
from rlm_loop.tools.hooks import Hooks
from rlm_loop.tools.serving import ToolLike
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.runs import Run as WhichRun
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
    if recorded.attempts:
        raise ReplayError("the run is several attempts at a task: fork the run of a single agent")
    if record.of("earlier"):
        number = record.start["session"]["question"]
        raise ReplayError(
            f"the run is question {number} of a session, whose REPL holds what earlier questions made: fork the first"
        )
    _check_turn(recorded, at)
    rebuilt = RebuiltAgent(agent) if agent is not None else agent_of(recorded)
    if missing := [name for name in rebuilt.functions if name not in settings]:
        raise ReplayError(f"the run had its own {', '.join(missing)}, which a trace cannot hold: give {missing[0]}=")
    known = set(signature(type(rebuilt.agent)).parameters)
    if unknown := sorted(settings.keys() - known):
        name = type(rebuilt.agent).__name__
        raise ReplayError(f"{name} has no setting {', '.join(unknown)}{nearest(unknown[0], known)}")
    driven = replace(rebuilt.agent, **settings)
    driven, put = _placed(driven, recorded, list(tools), task, context, workspace, of_record=agent is None)
    live = _live(driven, model, agent is None)
    driven = replace(driven, model=live)
    out = trace.for_run() if isinstance(trace, Trace) else Trace(trace)
    past = _Past(recorded, at)
    account = Account(driven.limits(), price=live.price, clock=_going_on(past.seconds))
    recursion = driven.recursion()
    limits: dict[str, Any] = {"max_tokens": driven.max_tokens, "temperature": driven.temperature}
    watched: dict[str, Any] = {"slots": recursion.tree.calls, "hooks": Hooks(driven.hooks), "price": live.price}
    meter = Meter(live, account, past.ledger(), out, **limits, **watched)
    forked = {
        "trace": None if isinstance(source, RunRecord) else str(source),
        "sha256": fingerprint_of(record),
        **{name: record.start.get(name) for name in ("task", "model")},
        "run": record.id,
        "at": at,
    }
    more = {"made": agent_config(driven), "price": live.price, "forked": forked}
    about, told = driven.settings(), context_fingerprint(put.context)
    record_start(out, put, driven.name, about, live.name, driven.limits(), told, **more)
    try:
        past.copy(out)
        spend(meter, past.usages())
        with driven.reported(put, meter) as reported:
            with driven.open(put, meter, recursion, workspace=workspace) as going_on:
                notes = past.load(going_on) if at else ()
                outcome = going_on.solve()
            return reported(noted(outcome, (*going_on.environment.faults, *rebuilt.notes, *notes)))
    finally:
        meter.node.end_children()
        if not isinstance(trace, Trace):
            out.close()


def _going_on(seconds: float) -> Callable[[], float]:
    """A clock of the live part that begins after so many recorded seconds."""
    now, first = time.monotonic(), True

    def clock() -> float:
        nonlocal first
        if first:  # the account takes its start from the first reading
            first = False
            return now - seconds
        return time.monotonic()

    return clock


class _Past:
    """The part of a recorded run until turn `at`, from which a run goes on."""

    def __init__(self, recorded: Recorded, at: int) -> None:
        self._recorded, self._at = recorded, at
        events = recorded.record.events
        ends = [n for n, e in enumerate(events) if e["event"] == "turn" and _of_root(e) and e["turn"] == at]
        self._events = events[: ends[0] + 1] if ends else ()
        start = float(recorded.start["at"])
        self.seconds = max(0.0, float(self._events[-1]["at"]) - start) if self._events else 0.0

    def ledger(self) -> Ledger:
        """The calls until then."""
        whole = ledger_of(self._recorded.record)
        numbers = {e["charged"]["call"] for e in self._events if e["event"] == "reply" and "charged" in e}
        numbers |= {e["call"] for e in self._events if e["event"] == "model_error" and "call" in e}
        asked = {e["node"] for e in self._events if e["event"] == "subcall_end"}
        calls = [call for call in whole.calls if call.call in numbers]
        return Ledger(calls, [one for one in whole.cached if one.node in asked])

    def usages(self) -> list[Any]:
        """What the calls until then used; `None` for one that failed."""
        failed = [None for e in self._events if e["event"] == "model_error" and "call" not in e]
        return [*(call.usage for call in self.ledger().calls), *failed]

    def copy(self, trace: Trace) -> None:
        """Begin a trace with the events until then."""
        for event in self._events:
            if event["event"] in ("run_start", "context"):
                continue
            if event["event"] == "problem" and _of_root(event):  # the run that goes on has its own
                continue
            if event["event"] == "request":
                trace.next_call()
            trace.copy(event["event"], **{k: v for k, v in event.items() if k not in ("run", "event", "at")})

    def load(self, run: Run) -> tuple[str, ...]:
        """Bring a run that took no turn to where the record was; returns what is not as it was, a line each."""
        recorded, node, at = self._recorded, self._recorded.root, self._at
        place, conversation, meter = run.environment, run.conversation, run.meter
        turns = [turn for turn in turns_of(recorded.record) if turn.index <= at]
        self._number_children(run)
        conversation.prompt = replace(conversation.prompt, messages=self._messages(run))
        conversation.turns, conversation.number = list(turns), at
        run.turns = list(turns)
        last = [c for c in node.calls if c.event["turn"] <= at and c.event.get("purpose") != "compaction"][-1]
        meter.follow(last.prompt.messages)
        meter.turn = at
        if place.workspace is not None:
            restore(node, at, place.workspace, recorded.text)
        cells, acted = list[PastCell](), False
        for turn, step in node.until(at):
            cells += cells_of(turn, step.actions, step.observations, self._calls(turn))
            acted |= any(o.failure is not None and o.failure.kind == "rejected" for o in step.observations)
        if acted or cells:
            place.acted()
        notes = ()
        if cells and place.cells is not None:
            notes = place.cells.resume(cells, lambda cell: past_answers(recorded, node, cell.turn))
        meter.trace.record("resumed", node=ROOT, depth=0, turn=at, cells=len(cells), notes=notes)
        return notes

    def _messages(self, run: Run) -> tuple[Message, ...]:
        """The messages as they were sent after the turn; where none followed, the last ones and that turn."""
        sent = self._recorded.root.prompt_after(self._at)
        if sent is not None:
            return sent.messages
        turn = next(t for t in turns_of(self._recorded.record) if t.index == self._at)
        before = self._recorded.root.prompt_after(self._at - 1)
        assert before is not None  # the turn's own request
        return (*before.messages, *run.conversation.dialect.format_turn(turn))

    def _number_children(self, run: Run) -> None:
        """Number sub-calls and batches on from the recorded ones."""
        starts = [e for e in self._events if e["event"] == "subcall_start" and e["parent"] == ROOT]
        run.meter.node.numbers(len(starts))
        for _ in {e["batch"] for e in starts if e.get("batch")}:
            run.meter.node.batch()

    def _calls(self, turn: int) -> list[CellCall]:
        return [
            CellCall(c["name"], c["asked"], self._outcome(c["outcome"]))
            for event in self._recorded.root.cells.get(turn, ())
            for c in event["calls"]
        ]

    def _outcome(self, stored: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if stored is None or "sha256" not in stored:
            return stored
        text = self._recorded.text(stored["sha256"])
        return {"error": "RuntimeError: its result is missing from the trace"} if text is None else json.loads(text)


def _of_root(event: Mapping[str, Any]) -> bool:
    return event.get("node", ROOT) == ROOT and not event.get("depth", 0)


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
    """The model that a fork goes on with: one that the user names, never one that only a trace names."""
    if model is None and of_record:
        raise ReplayError(f"the trace names the model {agent.model!r:.100}: give model= with the one to ask")
    return replace(agent, model=agent.model if model is None else model).own_model()


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
    put = with_context(put)
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


def restore(node: NodeRecord, at: int, workspace: Workspace, text: Callable[[str | None], str | None]) -> None:
    """Make a fresh workspace what it was after a turn; `ReplayError` where it is of another source."""
    base = node.problem["workspace"] if node.problem is not None else None
    if base and workspace.base != base:  # traces of before 2026-11 do not say it
        raise ReplayError(
            f"the workspace given begins as tree {workspace.base[:12]}, the recorded one as {base[:12]}: open it from "
            "the very same source"
        )
    trees = [str(o.effects["tree"]) for _, step in node.until(at) for o in step.observations if "tree" in o.effects]
    if not trees:
        return
    event = next((e for e in node.trees if e["tree"] == trees[-1]), None)
    patch = text(event["patch"]) if event is not None else None
    if patch is None:
        raise ReplayError(f"the files after turn {at} are not in the trace: their patch was too long, or cut away")
    workspace.apply(patch)
    if (now := workspace.snapshot()) != trees[-1]:
        raise ReplayError(
            f"the workspace given became tree {now[:12]} by the recorded patch, not {trees[-1][:12]}: open it from the "
            "very same source"
        )


def past_answers(recorded: Recorded, node: NodeRecord, turn: int) -> Fallback:
    """A function that answers `llm_query` and `llm_query_batched` as they were answered in that turn."""
    left = [dict(start) for start in node.children.get(turn, ())]

    def take(prompt: Any) -> Mapping[str, Any]:
        for place, start in enumerate(left):
            if isinstance(prompt, str) and start["prompt_sha256"] == sha256_of(prompt):
                return left.pop(place)
        raise LookupError(prompt)

    def answer(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if name == "llm_query":
            text, failed = _answer(recorded, take(args[0] if args else kwargs.get("prompt")))
            if failed:  # raised under the name by which cells know it
                raise type(failed, (Exception,), {})(text)
            return text
        if name == "llm_query_batched":
            prompts = args[0] if args else kwargs.get("prompts", ())
            answers = [_answer(recorded, take(p)) for p in prompts]
            return [SubFailure(text) if failed else SubAnswer(text) for text, failed in answers]
        raise LookupError(name)

    return answer


def _answer(recorded: Recorded, start: Mapping[str, Any]) -> tuple[str, str]:
    """What a sub-call came to; with it the name of the error that it was, else nothing."""
    node = recorded.node(start["node"])
    over = node.over
    if over is not None and not over["ok"]:
        return over["error"]["message"], "DepthExceeded" if start["kind"] == "denied" else "SubCallError"
    if start["kind"] == "agent" and node.end is not None:
        return str(node.end["answer"]), ""
    if node.calls and node.calls[-1].reply is not None:
        return node.calls[-1].reply.text, ""
    wanted = (over or {}).get("answer_sha256")  # answered from an earlier one
    for other in recorded.nodes.values():
        for call in other.calls:
            if call.reply is not None and sha256_of(call.reply.text) == wanted:
                return call.reply.text, ""
    raise LookupError(start["node"])


def recorded_budget(record: RunRecord) -> Budget:
    """The limits of a recorded run."""
    stored: Mapping[str, Any] = record.start.get("budget") or {}
    known = {f.name for f in fields(Budget)}
    return Budget(**{k: v for k, v in stored.items() if k in known})
