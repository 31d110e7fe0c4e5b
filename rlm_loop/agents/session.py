"""Questions that follow each other: the messages and the REPL live on, each question is a run of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rlm_loop.agents.background import BackgroundRun, awaited, started
from rlm_loop.agents.compaction import Compaction
from rlm_loop.agents.conversation import Conversation
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.question import asked
from rlm_loop.dialects.base import Dialect, Problem
from rlm_loop.messages import Message, Usage
from rlm_loop.outcome import Outcome
from rlm_loop.repl import open_repl
from rlm_loop.repl.base import CellResult, ReplError, Session
from rlm_loop.repl.contexts.on_disk import as_context
from rlm_loop.tasks.base import Task
from rlm_loop.traces.trace import Trace
from rlm_loop.workspace import Workspace

#: The history of a session whose agent has none: the oldest turns go only when the model's window is full.
WHOLE_WINDOW = Compaction("window", threshold_tokens=1_000_000_000)


@dataclass
class Exchange:
    """State that a session passes to one question's run.

    `conversation` has the messages so far, `sent` those that a model has read, and `repl` is the session's (`None`: the
    run opens its own).  `tells_context` says that the model has to be told of the context, `asks` that the messages do
    not hold the question yet, and `about` goes into the run's first event.
    """

    conversation: Conversation
    repl: Session | None = None
    sent: tuple[Message, ...] = ()
    tells_context: bool = True
    asks: bool = True
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    meter: Meter | None = field(default=None, init=False)
    """The run's meter, once it has begun: it knows what was sent last."""

    def problem(self, problem: Problem) -> Problem:
        """The problem without its context, where the model knows it."""
        return problem if self.tells_context else replace(problem, context="", inline="")

    def record(self, meter: Meter) -> None:
        """Tell the meter and the trace what was said before, so that the run can be read and replayed alone."""
        if self.conversation.prompt.messages:
            meter.follow(self.sent)
            meter.trace.record("earlier", messages=self.conversation.earlier(), sent=len(self.sent))


class Asking(Protocol):
    """What a session needs of its agent."""

    @property
    def repl(self) -> str | Callable[[], Session] | Session: ...

    def dialect(self) -> Dialect: ...

    def compaction(self) -> Compaction | None: ...

    def hearing(self, hooks: Iterable[object], live: bool) -> Asking: ...

    def attempt(
        self, task: Task, *, trace: Trace | None, workspace: Workspace | None, exchange: Exchange | None
    ) -> Outcome: ...


class AgentSession:
    """Questions to one agent, made by `agent.session(...)`.  Use it in a `with` block, or close it.

    `outcomes` are those of all questions, in order: each has the turns, usage, ledger and budget of its own question,
    and all are runs of one trace.  Turns are numbered on from question to question.  What a question sends again of
    those before it is in its own ledger, as `resent`.

    A question that is interrupted or fails is in `outcomes` too.  The turns that it finished stay in the conversation,
    as their cells have acted; a reply that never came leaves nothing, and a question without a turn is forgotten.
    """

    def __init__(
        self, agent: Asking, context: Any, workspace: Workspace | None, trace: str | Path | Trace | None
    ) -> None:
        self.outcomes: list[Outcome] = []
        self.trace, self._owned = (trace, False) if isinstance(trace, Trace) else (Trace(trace), True)
        self.context = as_context(context)
        self._agent, self._workspace = agent, workspace
        self._conversation = Conversation(agent.dialect(), agent.compaction() or WHOLE_WINDOW)
        self._repl = KeptSession(agent.repl)
        self._id = f"s{os.urandom(5).hex()}"
        self._sent: tuple[Message, ...] = ()
        self._context_known = self._closed = False
        self._busy = threading.Lock()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def usage(self) -> Usage:
        """Usage of all questions together."""
        return sum([outcome.usage for outcome in self.outcomes], Usage.nothing())

    def ask(self, question: str, *, context: Any = None, hooks: Iterable[object] = (), live: bool = False) -> Outcome:
        """Ask a question, with all that was said and done before; raises as `Agent.run` does.

        `context` replaces the session's from now on, and the model is told of it.  Raises `RuntimeError` while another
        question is under way, and once the session is closed.
        """
        if not self._busy.acquire(blocking=False):
            raise RuntimeError("another question of this session is under way; wait for it, or stop it")
        try:
            if self._closed:
                raise RuntimeError("the session is closed; begin another with agent.session(...)")
            return self._ask(question, context, tuple(hooks), live)
        finally:
            self._busy.release()

    def start(self, question: str, **options: Any) -> BackgroundRun:
        """Ask in the background: returns at once.  `options` are those of `ask`."""
        return started(self._work(question, options))

    async def aask(self, question: str, **options: Any) -> Outcome:
        """Ask without blocking the event loop; a cancelled task stops the question.  `options` are those of `ask`."""
        return await awaited(self._work(question, options))

    def close(self) -> None:
        """Close the REPL and the trace file, but not what the caller handed in; closing twice is harmless."""
        self._closed = True
        self._repl.close()
        if self._owned:
            self.trace.close()

    def __enter__(self) -> AgentSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        asked = f"{len(self.outcomes)} question{'' if len(self.outcomes) == 1 else 's'}"
        return f"<AgentSession of {asked}, {self._conversation.number} turns{', closed' if self._closed else ''}>"

    def _work(self, question: str, options: dict[str, Any]) -> Callable[[tuple[object, ...]], Outcome]:
        hooks = tuple(options.pop("hooks", ()))
        return lambda more: self.ask(question, hooks=(*hooks, *more), **options)

    def _ask(self, question: str, context: Any, hooks: tuple[object, ...], live: bool) -> Outcome:
        if context is not None and context is not self.context:
            self.context, self._context_known = as_context(context), False
        conversation = self._conversation
        before = conversation.prompt, list(conversation.turns), conversation.number
        first = not conversation.prompt.messages
        about = {
            "id": self._id,
            "question": len(self.outcomes) + 1,
            "after": self.outcomes[-1].run if self.outcomes else None,
            "turns": conversation.number,
            "tells_context": self.context is not None and not self._context_known,
        }
        tells = first or bool(about["tells_context"])
        exchange = Exchange(conversation, self._repl, self._sent, tells, about=about)
        agent = self._agent.hearing(hooks, live)
        outcome: Outcome | None = None
        try:
            task = asked(question, self.context)
            outcome = agent.attempt(task, trace=self.trace, workspace=self._workspace, exchange=exchange)
            return outcome
        except BaseException as error:
            left = getattr(error, "outcome", None)
            outcome = left if isinstance(left, Outcome) else None
            raise
        finally:
            if outcome is not None:
                self.outcomes.append(outcome)
            if outcome is not None and outcome.turns and exchange.meter is not None:
                self._sent, self._context_known = exchange.meter.sent, True
            else:
                conversation.prompt, conversation.turns, conversation.number = before


class KeptSession(Session):
    """The REPL of an agent's session: passes everything on to one that is opened when a cell first needs it.

    `source` is the agent's `repl`.  Closing it closes what it opened, never a session of the caller's.
    A context that is set again is the very same object: it crosses into the REPL once.
    """

    def __init__(self, source: str | Callable[[], Session] | Session) -> None:
        self._source = source
        self._session: Session | None = None
        self._context: Any = None

    @property
    def _open(self) -> Session:
        if self._session is None:
            source = self._source
            self._session = (
                open_repl(source) if isinstance(source, str) else source if isinstance(source, Session) else source()
            )
        return self._session

    @property
    def isolation(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "" if self._session is None else self._session.isolation

    @property
    def last(self) -> CellResult | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return None if self._session is None else self._session.last

    def run(self, code: str, *, timeout: float | None = None, grace: float | None = None) -> CellResult:
        return self._open.run(code, timeout=timeout, grace=grace)

    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        if name == "context" and self._context is value:
            return
        self._open.set(name, value, reserved=reserved)
        if name == "context":
            self._context = value

    def get(self, expression: str, *, timeout: float | None = None) -> Any:
        return self._open.get(expression, timeout=timeout)

    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        self._open.add_tools(tools)

    def give_back(self, names: Iterable[str]) -> None:
        if self._session is not None:
            self._session.give_back([name for name in names if name != "context"])

    def new_run(self) -> None:
        self._open.new_run()

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None and session is not self._source:
            session.close()
        elif session is not None:
            with suppress(ReplError):  # it was closed meanwhile, or is broken: there is nothing to give back
                session.give_back(["context"])
