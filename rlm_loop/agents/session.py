"""Questions that follow each other: the messages and the REPL live on, each question is a run of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rlm_loop.agents.checking import asked
from rlm_loop.agents.compaction import plan_of
from rlm_loop.agents.conversation import Conversation
from rlm_loop.agents.meter import Meter
from rlm_loop.dialects.base import Problem
from rlm_loop.messages import Message, Usage
from rlm_loop.outcome import Outcome
from rlm_loop.repl import open_repl
from rlm_loop.repl.contexts.on_disk import as_context
from rlm_loop.repl.session import Session
from rlm_loop.traces.trace import Trace
from rlm_loop.workspace import Workspace


class AgentSession(AbstractContextManager["AgentSession"]):
    """Questions to one agent, made by `agent.session(...)`.  Use it in a `with` block, or close it.

    `outcomes` are those of all questions, in order: each has the turns, usage, ledger and budget of its own question,
    and all are runs of one trace.  Turns are numbered on from question to question.  What a question sends again of
    those before it is in its own ledger, as `resent`.

    A question that is interrupted or fails is in `outcomes` too.  The turns that it finished stay in the conversation,
    as their cells have acted; a reply that never came leaves nothing, and a question without a turn is forgotten.
    """

    def __init__(
        self,
        agent: Any,
        context: Any = None,
        workspace: Workspace | None = None,
        trace: str | Path | Trace | None = None,
    ) -> None:
        self.outcomes: list[Outcome] = []
        self.trace, self._owned = (trace, False) if isinstance(trace, Trace) else (Trace(trace), True)
        self.context = as_context(context)
        self.conversation = Conversation(agent.dialect, plan_of(agent.history))
        self.about: dict[str, Any] = {}
        """Facts of the question under way, for the first event of its run; `asks` is off where it was put already."""
        self._agent, self._workspace = agent, workspace
        self._id = f"s{os.urandom(5).hex()}"
        self._meter: Meter | None = None  # of the question under way
        self._sent: tuple[Message, ...] = ()  # messages that a model has read
        self._context_known = self.closed = False
        self._busy = threading.Lock()

    @cached_property
    def repl(self) -> Session:
        """The session in which the cells of all questions run."""
        source = self._agent.repl
        if isinstance(source, str):
            return open_repl(source)
        return source if isinstance(source, Session) else source()

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
        before, outcome = replace(self.conversation, turns=[*self.conversation.turns]), None
        try:
            if self.closed:
                raise RuntimeError("the session is closed; begin another with agent.session(...)")
            if context is not None and context is not self.context:
                self.context, self._context_known = as_context(context), False
            self.about = {
                "id": self._id,
                "question": len(self.outcomes) + 1,
                "after": self.outcomes[-1].run if self.outcomes else None,
                "turns": before.number,
                "tells_context": self.context is not None and not self._context_known,
            }
            agent = self._agent.hearing(hooks, live) if hooks or live else self._agent
            about = {"workspace": self._workspace, "exchange": self, "session": self.about}
            outcome = agent.attempt(asked(question, self.context), trace=self.trace, **about)
            return outcome
        except BaseException as error:
            outcome = getattr(error, "outcome", None)
            raise
        finally:
            if outcome is not None:
                self.outcomes.append(outcome)
            if outcome is not None and outcome.turns and self._meter is not None:
                self._sent, self._context_known = self._meter.sent, True
            else:
                self.conversation = before
            self._busy.release()

    def begin(self, problem: Problem, meter: Meter) -> Problem:
        """Tell a run's meter and trace what was said before; return the problem without what the model knows of it."""
        self._meter, conversation = meter, self.conversation
        if conversation.prompt.messages:
            meter.follow(self._sent)
            meter.trace.record("earlier", messages=conversation.earlier(), sent=len(self._sent))
            if not self.about["tells_context"]:
                return replace(problem, context="", inline="")
        return problem

    def close(self) -> None:
        """Close the REPL and the trace file, but not what the caller handed in; closing twice is harmless."""
        self.closed = True
        if "repl" in vars(self) and self.repl is not self._agent.repl:
            self.repl.close()
        if self._owned:
            self.trace.close()

    def __exit__(self, *_: object) -> None:
        self.close()
