"""`replay`: a run on recorded parts, whose requests are compared with the recorded ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from rlm_loop.accounting.budget import Account, BudgetSpent
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.actions import Action, Observation
from rlm_loop.agents import Agent
from rlm_loop.agents.checking import in_workspace, unscored
from rlm_loop.agents.compaction import plan_of
from rlm_loop.agents.conversation import Conversation
from rlm_loop.agents.environment import Environment
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.run import Interrupted, Run
from rlm_loop.agents.subcalls import Recursion, SubcallRunner, query_tools
from rlm_loop.dialects.base import Problem
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models.base import Model, ModelError
from rlm_loop.models.recorded import first_difference, sizes_of
from rlm_loop.outcome import Outcome, Turn
from rlm_loop.replay.rebuilt import RecordedInjector, agent_of, not_here, recorded_tool
from rlm_loop.replay.recorded import Recorded, RecordedCall
from rlm_loop.tasks.base import Task
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.redact import REDACTED
from rlm_loop.traces.trace import Trace
from rlm_loop.traces.values import plain

#: Limits that a replay does not keep: it ends where the record does.  Those that count turns hold as ever.
_SPENT: dict[str, Any] = dict.fromkeys(("seconds", "working_seconds", "tokens", "output_tokens", "cost", "calls"))
_STOPS = ("seconds", "tokens", "cost", "calls", "window")


@dataclass(frozen=True)
class Difference:
    """The first difference: its turn, its place (`what`) in the request, and the text there; messages count from 0."""

    turn: int
    what: str
    recorded: str
    today: str
    message: int | None = None

    def __str__(self) -> str:
        return f"turn {self.turn}, {self.what}: recorded {self.recorded:.180}, today {self.today:.180}"


@dataclass(frozen=True)
class Replayed:
    """A recorded run, driven again by today's loop.

    `requests` of the root were compared, `equal` of them were the same byte for byte; `difference` is the first that
    was not, or that was changed in the record.  `complete` says that the record has an end (a killed run has none),
    `notes` what could not be checked.  `outcome` is today's; `None` where the record ended before the run did.
    """

    requests: int
    equal: int
    turns: int
    difference: Difference | None = None
    notes: tuple[str, ...] = ()
    complete: bool = True
    outcome: Outcome | None = None

    @property
    def same(self) -> bool:
        return self.difference is None

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        """Readable, a line for each thing to say."""
        counts = f"{self.equal} of {self.requests} requests equal byte for byte, {self.turns} turns"
        lines = [f"same: {counts}"] if self.same else [f"differs: {self.difference}", counts]
        if not self.complete:
            lines.append("the record has no end: the run was killed, or the file was cut")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def replay(trace: str | Path | RunRecord, *, run: int | str | None = None, agent: Agent | None = None) -> Replayed:
    """Run today's loop on the replies and results of a recorded run, and compare the requests of its root.

    Sub-calls are not made again: what they came to stands in the results.  No model and no code is run, so a trace of
    others is safe to replay.  `run` chooses a run of the file.  The agent is made again from the record; `agent` takes
    its place (its model is not called).  The line about a context is as recorded.
    Raises `TraceError` for a file that cannot be read, and `ReplayError` where the record does not say enough.
    """
    recorded = Recorded(trace if isinstance(trace, RunRecord) else read(trace, run=run))
    driven, notes, _ = agent_of(recorded) if agent is None else (agent, list[str](), ())
    playback, outcome = Playback(recorded), None
    try:
        outcome = _run_of(driven, playback).solve()
    except RecordEnds:
        pass
    except (Interrupted, ModelError) as ended:
        outcome = getattr(ended, "outcome", None)
    if outcome is not None and (left := playback.next_call) is not None:
        playback.differs(left.turn, "end", f"a request of {len(left.prompt.messages)} messages", "none")
    if playback.redacted:
        notes.append(f"{playback.redacted} requests hold text that was redacted: compared as they were recorded")
    steps, complete = len(recorded.root.steps), recorded.root.end is not None
    return Replayed(playback.answered, playback.equal, steps, playback.difference, tuple(notes), complete, outcome)


class RecordEnds(BaseException):
    """The record has nothing more to drive the loop with.  The loop must not take it for an error of its own."""


class Playback(Model):
    """Gives the recorded replies of the root, and compares each request with the recorded one."""

    immediate = True

    def __init__(self, recorded: Recorded) -> None:
        self.recorded, self.root = recorded, recorded.root
        self.name, self.window = str(recorded.start.get("model", "")), recorded.start.get("window")
        self._sizes, self.answered, self.equal, self.redacted = sizes_of(recorded.record), 0, 0, 0
        self.difference: Difference | None = None

    @property
    def next_call(self) -> RecordedCall | None:
        return next(iter(self.root.calls[self.answered :]), None)

    def differs(self, turn: int, what: str, recorded: str, today: str, message: int | None = None) -> None:
        self.difference = self.difference or Difference(turn, what, recorded, today, message)

    def estimate(self, prompt: Prompt) -> int:
        """Return the tokens that the prompt had when it was recorded."""
        size = self._sizes.get(prompt.digest)
        return super().estimate(prompt) if size is None else size

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """Return the recorded reply or raise the recorded error; a request that differs is answered all the same."""
        call, end = self.next_call, self.root.end
        if call is None:
            if end is not None and isinstance(self.ending(), RecordEnds):  # today's loop goes on where it had ended
                last, old = max(self.root.steps, default=0), f"{end['stop']} ({end.get('reason', '')})"
                self.differs(last, "end", old, f"a further request of {len(prompt.messages)} messages")
            raise self.ending()
        self.answered += 1
        self._compare(call, prompt)
        if call.reply is not None:
            return call.reply
        raise self.ending() if self.next_call is None else ModelError(str(call.error))

    def _compare(self, call: RecordedCall, prompt: Prompt) -> None:
        """Note the first message that differs, else the first setting."""
        before = call.prompt
        if before.digest != call.event["digest"]:
            if any(REDACTED in message.text for message in before.messages):
                self.redacted += 1
            else:
                self.differs(call.turn, "request", "changed after it was written", "as sent")
        if prompt.digest == before.digest:
            self.equal += 1
            return
        what, old, new, index = first_difference(before, prompt)
        self.differs(call.turn, what, old, new, index)

    def ending(self) -> BaseException:
        """Return the exception that ends the run as it was ended."""
        end = self.root.end or {}
        stop, reason = str(end.get("stop", "")), str(end.get("reason", ""))
        if stop == "interrupted":
            return KeyboardInterrupt()
        if stop in _STOPS:
            return BudgetSpent(stop, reason)
        return ModelError(reason) if stop == "failed" else RecordEnds()


class RecordedEnvironment(Environment):
    """An environment that does nothing: an action leads to what it led to."""

    playback: Playback

    def perform(self, actions: Sequence[Action]) -> tuple[Observation, ...]:
        """Return the recorded observations of this turn."""
        playback, turn = self.playback, self._record.turn
        step = playback.root.steps.get(turn)
        if step is None:  # the reply is there, but not what came of it
            raise playback.ending()
        if plain(tuple(actions)) != plain(step.actions):
            old, new = (", ".join(map(_named, each)) for each in (step.actions, actions))
            playback.differs(turn, "what the reply asks for", old, new)
            if len(actions) != len(step.actions):
                raise RecordEnds
        self.interrupted = playback.next_call is None and isinstance(playback.ending(), KeyboardInterrupt)
        return step.observations


def _named(action: Action) -> str:
    return f"{type(action).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(action).items() if v)})"


def _run_of(agent: Agent, playback: Playback) -> Run:
    """Return the run on recorded parts, with its task put: no limit holds that the record keeps."""
    recorded, start, told = playback.recorded, playback.recorded.start, playback.recorded.problem
    agent = replace(
        agent,
        budget=replace(agent.budget, **_SPENT),
        tools=tuple(map(recorded_tool, recorded.tools())),
        hooks=(),
        repl=cast("Any", not_here),
        subcalls=replace(agent.subcalls, model=None, models=(), budget=None),
        verify=None,
        answer_type=None,
    )
    inline = _inlined(recorded) if agent.dialect.action_mode == "none" else ""
    problem = Problem(recorded.question, str(told.get("context", "")), inline)
    material, repl = recorded.context or problem.context or None, bool(told.get("repl"))
    task = Task(str(start.get("task", "")), recorded.question, unscored, context=material, needs_repl=repl)
    trace = Trace()
    trace.start()
    meter = Meter(playback, Account(agent.budget), Ledger(), trace, max_tokens=agent.max_tokens)
    queries = query_tools(SubcallRunner(meter, Recursion(agent.subcalls, agent.budget), not_here))
    place = RecordedEnvironment(agent, task, agent.tools, queries, meter)
    place.playback = playback
    if told.get("workspace") is not None:
        problem = in_workspace(problem, place.tools)
    conversation, asks = Conversation(agent.dialect, plan_of(agent.history)), True
    messages, sent = recorded.earlier()
    if messages:
        about = start["session"]
        meter.follow(messages[:sent])
        shown = [Turn(number, Reply(), (), ()) for number in dict.fromkeys(m.turn for m in messages if m.turn)]
        conversation = replace(conversation, prompt=Prompt(messages), turns=shown, number=int(about["turns"]))
        asks = bool(about.get("asks", True))
        problem = problem if about["tells_context"] else replace(problem, context="", inline="")
    brief = [RecordedInjector(str(name), recorded.root) for name in told.get("told", ())]
    conversation.start(problem, place.tools, meter, brief, asks=asks)
    return Run(task, conversation, place, meter)


def _inlined(recorded: Recorded) -> str:
    """Return the text that stood in front of the question."""
    spans = next((message.spans for message in recorded.root.added(0) if message.role == "user"), ())
    task = "".join(span.text for span in spans if span.cause == "task")
    return task.removesuffix(recorded.question).removesuffix("\n\n")
