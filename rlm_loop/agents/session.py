"""Questions that follow each other: the messages and the REPL live on, each question is a run of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rlm_loop.agents.cells import Cells
from rlm_loop.agents.conversation import Conversation
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.question import asked
from rlm_loop.dialects.base import Problem
from rlm_loop.messages import Message, Usage
from rlm_loop.outcome import Outcome
from rlm_loop.repl.contexts.on_disk import as_context
from rlm_loop.tasks.base import Task
from rlm_loop.traces.trace import Trace
from rlm_loop.workspace import Workspace


@dataclass
class Exchange:
    """State that a session passes to one question's run.

    `conversation` has the messages so far, `sent` those that a model has read, and `cells` is the REPL (`None`: the
    run opens its own).  `tells_context` says that the model has to be told of the context, `asks` that the messages do
    not hold the question yet, and `about` goes into the run's first event.
    """

    conversation: Conversation
    cells: Cells | None = None
    sent: tuple[Message, ...] = ()
    tells_context: bool = True
    asks: bool = True
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    meter: Meter | None = field(default=None, init=False)
    """The run's meter, once it has begun: it knows what was sent last."""

    def begin(self, problem: Problem, meter: Meter) -> Problem:
        """Tell the meter and the trace what was said before; return the problem without what the model knows of it."""
        self.meter = meter
        if self.conversation.prompt.messages:
            meter.follow(self.sent)
            meter.trace.record("earlier", messages=self.conversation.earlier(), sent=len(self.sent))
        return problem if self.tells_context else replace(problem, context="", inline="")


class Asking(Protocol):
    """What a session needs of its agent."""

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
        self,
        agent: Asking,
        conversation: Conversation,
        cells: Cells,
        context: Any,
        workspace: Workspace | None,
        trace: str | Path | Trace | None,
    ) -> None:
        self.outcomes: list[Outcome] = []
        self.trace, self._owned = (trace, False) if isinstance(trace, Trace) else (Trace(trace), True)
        self.context = as_context(context)
        self._agent, self._conversation, self._cells, self._workspace = agent, conversation, cells, workspace
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
        return sum([outcome.usage for outcome in self.outcomes], Usage.NOTHING)

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

    def close(self) -> None:
        """Close the REPL and the trace file, but not what the caller handed in; closing twice is harmless."""
        self._closed = True
        self._cells.close()
        if self._owned:
            self.trace.close()

    def __enter__(self) -> AgentSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        asked = f"{len(self.outcomes)} question{'' if len(self.outcomes) == 1 else 's'}"
        return f"<AgentSession of {asked}, {self._conversation.number} turns{', closed' if self._closed else ''}>"

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
        exchange = Exchange(conversation, self._cells, self._sent, tells, about=about)
        agent = self._agent.hearing(hooks, live) if hooks or live else self._agent
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
