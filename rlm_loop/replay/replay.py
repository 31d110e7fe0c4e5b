"""`replay`: a run on recorded parts, whose requests are compared with the recorded ones."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from rlm_loop.accounting.budget import Account
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.accounting.limits import BudgetSpent
from rlm_loop.actions import Action, Observation
from rlm_loop.agents import Agent
from rlm_loop.agents.conversation import Conversation
from rlm_loop.agents.environment import Environment, Unfinished
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.past_run import value_of
from rlm_loop.agents.question import in_workspace, unscored
from rlm_loop.agents.record import RunLog
from rlm_loop.agents.recursion import SubcallRunner
from rlm_loop.agents.run import Interrupted, Run
from rlm_loop.dialects.injectors import Told
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models.base import Model, ModelError
from rlm_loop.outcome import Outcome, Turn
from rlm_loop.repl.contexts.on_disk import as_context
from rlm_loop.replay.rebuilt import RebuiltAgent, RecordedInjector, RecordedTool, agent_of, not_here
from rlm_loop.replay.recorded import Recorded, RecordedCall
from rlm_loop.replay.replayed import Difference, Replayed, first_difference
from rlm_loop.tasks.base import Task
from rlm_loop.traces.reader import Run as WhichRun
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.redact import REDACTED
from rlm_loop.traces.trace import Trace
from rlm_loop.traces.values import plain

#: Limits that a replay does not keep: it ends where the record does.  Those that count turns hold as ever.
_SPENT: dict[str, Any] = dict.fromkeys(("seconds", "working_seconds", "tokens", "output_tokens", "cost", "calls"))
_STOPS = ("seconds", "tokens", "cost", "calls", "window")


class RecordEnds(BaseException):
    """The record has nothing more to drive the loop with.  The loop must not take it for an error of its own."""


@dataclass(frozen=True)
class RecordedContext:
    """The words about a context that is not at hand: a line, or the text in full where it was inlined."""

    line: str = ""
    inline: str = ""

    def __str__(self) -> str:
        return self.inline


def replay(
    trace: str | Path | RunRecord, *, run: WhichRun = None, agent: Agent | None = None, context: Any = None
) -> Replayed:
    """Run today's loop on the replies and results of a recorded run, and compare the requests of its root.

    Sub-calls are not made again: what they came to stands in the results.  No model and no code is run, so a trace of
    others is safe to replay.  `run` chooses a run of the file.  The agent is made again from the record; `agent` takes
    its place (its model is not called), and `context` (of the recorded hash) that of the recorded line about it.
    Raises `TraceError` for a file that cannot be read, and `ReplayError` where the record does not say enough.
    """
    record = trace if isinstance(trace, RunRecord) else read(trace, run=run)
    recorded = Recorded(record)
    recorded.require_one_run()
    rebuilt = RebuiltAgent(agent) if agent is not None else agent_of(recorded)
    notes = list(rebuilt.notes)
    driven, task = _recorded_parts(rebuilt.agent, recorded, context, notes)
    playback = Playback(recorded)
    outcome = _solved(driven, task, playback)
    if outcome is not None and (left := playback.next_call) is not None:
        asked = f"a request of {len(left.prompt.messages)} messages"
        playback.differs(Difference(left.turn, "end", asked, "none"))
    if playback.redacted:
        notes.append(f"{playback.redacted} requests hold text that was redacted: compared as they were recorded")
    return Replayed(
        requests=playback.answered,
        equal=playback.equal,
        turns=len(recorded.root.steps),
        difference=playback.difference,
        notes=tuple(notes),
        complete=record.end is not None,
        outcome=outcome,
    )


class Playback(Model):
    """Gives the recorded replies of the root, and compares each request with the recorded one."""

    immediate = True

    def __init__(self, recorded: Recorded) -> None:
        self.recorded, start = recorded, recorded.start
        self.name, self.window = str(start.get("model", "")), start.get("window")
        self.answered = self.equal = self.redacted = 0
        self.difference: Difference | None = None

    @property
    def next_call(self) -> RecordedCall | None:
        calls = self.recorded.root.calls
        return calls[self.answered] if self.answered < len(calls) else None

    def differs(self, difference: Difference) -> None:
        self.difference = self.difference or difference

    def estimate(self, prompt: Prompt) -> int:
        """Return the tokens that the prompt had when it was recorded."""
        size = self.recorded.sizes.get(prompt.digest())
        return super().estimate(prompt) if size is None else size

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """Return the recorded reply or raise the recorded error; a request that differs is answered all the same."""
        call = self.next_call
        if call is None:
            raise self._no_more(prompt)
        self.answered += 1
        self._compare(call, prompt)
        if call.reply is not None:
            return call.reply
        raise self.ending() if self.next_call is None else ModelError(str(call.error))

    def _compare(self, call: RecordedCall, prompt: Prompt) -> None:
        stated = call.event["digest"]
        hidden = any(REDACTED in message.text for message in call.prompt.messages)
        if prompt.digest() == stated:
            self.equal += 1
            if call.prompt.digest() != stated and not hidden:
                self.differs(Difference(call.turn, "request", "changed after it was written", "as sent"))
            return
        difference = first_difference(call.prompt, prompt, call.turn)
        if difference is None and hidden:
            self.equal += 1
            self.redacted += 1
        else:
            self.differs(difference or Difference(call.turn, "hash", stated[:12], prompt.digest()[:12]))

    def _no_more(self, prompt: Prompt) -> BaseException:
        ending, root = self.ending(), self.recorded.root
        if root.end is not None and isinstance(ending, RecordEnds):  # today's loop goes on where it had ended
            today = f"a further request of {len(prompt.messages)} messages"
            self.differs(Difference(root.last, "end", f"{root.end['stop']} ({root.end.get('reason', '')})", today))
        return ending

    def ending(self) -> BaseException:
        """Return the exception that ends the run as it was ended."""
        end = self.recorded.root.end or {}
        stop, reason = str(end.get("stop", "")), str(end.get("reason", ""))
        if stop == "interrupted":
            return KeyboardInterrupt()
        if stop in _STOPS:
            return BudgetSpent(stop, reason)
        if stop == "failed":
            name, _, text = reason.partition(": ")
            return type(name if name.isidentifier() else "Exception", (Exception,), {})(text)
        return RecordEnds()


class RecordedEnvironment(Environment):
    """An environment that does nothing: an action leads to what it led to."""

    def __init__(self, playback: Playback, meter: Meter, *parts: Any) -> None:
        super().__init__(*parts)
        self._playback, self._meter, self._root = playback, meter, playback.recorded.root

    @property
    def isolation(self) -> str:
        return str((self._root.end or {}).get("isolation", ""))

    def perform(self, actions: Sequence[Action]) -> tuple[Observation, ...]:
        """Return the recorded observations of this turn."""
        turn = self._meter.turn
        step = self._root.steps.get(turn)
        if step is None:  # the reply is there, but not what came of it
            raise self._playback.ending()
        if plain(tuple(actions)) != plain(step.actions):
            old, new = (", ".join(map(_named, each)) for each in (step.actions, actions))
            self._playback.differs(Difference(turn, "what the reply asks for", old, new))
            if len(actions) != len(step.actions):
                raise RecordEnds
        if self._playback.next_call is None and isinstance(self._playback.ending(), KeyboardInterrupt):
            raise Unfinished(step.observations)
        return step.observations

    def collect(self, expression: str) -> Any:
        return self.partial_artifact()

    def partial_artifact(self) -> Any:
        return value_of((self._root.end or {}).get("artifact"))


def _named(action: Action) -> str:
    return f"{type(action).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(action).items() if v)})"


def _solved(agent: Agent, task: Task, playback: Playback) -> Outcome | None:
    """Return today's outcome; `None` where the record came to its end before the loop did."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there was to warn of was said when the run was recorded
        try:
            return _run(agent, task, playback).solve()
        except RecordEnds:
            return None
        except Interrupted as interrupted:
            return interrupted.outcome
        except Exception as error:
            outcome: object = getattr(error, "outcome", None)
            if isinstance(outcome, Outcome) and playback.recorded.root.end is not None:
                return outcome
            raise


def _run(agent: Agent, task: Task, playback: Playback) -> Run:
    """Return the run on recorded parts, with its task put."""
    recorded, root = playback.recorded, playback.recorded.root
    own = Trace()
    own.start()
    meter = Meter(playback, Account(agent.budget), Ledger(), own, max_tokens=agent.max_tokens)
    asks = SubcallRunner(meter, agent.recursion(), not_here)
    make = partial(RecordedEnvironment, playback, meter)
    place = agent.environment(task, agent.tools, asks, meter, RunLog(meter), None, None, make)
    problem = agent.problem(task, None)[0]
    if isinstance(task.context, RecordedContext):
        problem = replace(problem, context=task.context.line, inline=task.context.inline)
    if recorded.problem.get("workspace") is not None:
        problem = in_workspace(problem, place.tools)
    conversation, asked = Conversation(agent.dialect, agent.compaction()), True
    messages, sent = recorded.earlier()
    if messages:
        about = recorded.start["session"]
        meter.follow(messages[:sent])
        shown = [Turn(number, Reply(), (), ()) for number in dict.fromkeys(m.turn for m in messages if m.turn)]
        conversation = replace(conversation, prompt=Prompt(messages), turns=shown, number=int(about["turns"]))
        asked = bool(about.get("asks", True))
        problem = problem if about["tells_context"] else replace(problem, context="", inline="")
    names = [str(name) for name in recorded.problem.get("told", ())]
    brief = [Told(RecordedInjector(name, root).opening(problem), name) for name in names]  # of a workspace's files
    conversation.start(problem, place.tools, meter, brief, asks=asked)
    return Run(task, conversation, place, meter, agent=agent.name)


def _recorded_parts(agent: Agent, recorded: Recorded, context: Any, notes: list[str]) -> tuple[Agent, Task]:
    """Return the agent with recorded tools and no limit that the record keeps, and the task."""
    mode = agent.dialect.action_mode
    material = as_context(context)
    if material is not None:
        recorded.check_context(material)
    else:
        told = _told(recorded, mode)
        material = told if recorded.context or told != RecordedContext() else None
        if recorded.context and told != RecordedContext():
            notes.append("the context is not at hand: what was told of it is as recorded (context= checks that too)")
    repl = bool(recorded.problem.get("repl", mode == "code"))
    task = Task(str(recorded.start.get("task", "")), recorded.question, unscored, context=material, needs_repl=repl)
    tools = [RecordedTool(str(t["name"]), str(t["description"]), not_here, told=t) for t in recorded.tools()]
    agent = replace(
        agent,
        model=str(recorded.start.get("model", "")),
        budget=replace(agent.budget, **_SPENT),
        tools=tuple(tools),
        hooks=(),
        repl=cast("Any", not_here),
        subcalls=replace(agent.subcalls, model=None, models=(), budget=None),
        verify=None,
        answer_type=None,
    )
    return agent, task


def _told(recorded: Recorded, mode: str) -> RecordedContext:
    """Return what the first request says of a context."""
    if mode != "none":
        return RecordedContext(line=str(recorded.problem.get("context", "")))
    question, messages = recorded.question, recorded.root.added(0)
    spans = next((message.spans for message in messages if message.role == "user"), ())
    task = "".join(span.text for span in spans if span.cause == "task")
    return RecordedContext(inline=task.removesuffix(question).removesuffix("\n\n") if task.endswith(question) else "")
