"""Questions that follow each other: the messages and the REPL live on, each question is a run of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from rlm_loop.agents.background import BackgroundRun, awaited, started
from rlm_loop.agents.compaction import Compaction
from rlm_loop.agents.exchange import Exchange, KeptSession
from rlm_loop.dialects.base import Dialect
from rlm_loop.dialects.earlier import FIRST_ATTEMPT, follow_up, with_turn
from rlm_loop.messages import Message, Usage
from rlm_loop.outcome import Outcome
from rlm_loop.repl.contexts.on_disk import as_context
from rlm_loop.traces.trace import Trace

#: The history of a conversation whose agent has none: the oldest turns go only when the model's window is full.
WHOLE_WINDOW = Compaction("window", threshold_tokens=1_000_000_000)

Answering = Callable[[str, Any, tuple[object, ...], bool, Exchange], Outcome]
"""Runs one question: its text, its context, its hooks, whether it is shown live, and its place in the conversation."""


class Conversation:
    """Questions to one agent, made by `agent.session(...)`.  Use it in a `with` block, or close it.

    `outcomes` are those of all questions, in order: each has the turns, usage, ledger and budget of its own question,
    and all are runs of one trace.  Turns are numbered on from question to question.  What a question sends again of
    those before it is in its own ledger, as `resent`.

    A question that is interrupted or fails is in `outcomes` too.  The turns that it finished stay in the conversation,
    as their cells have acted; a reply that never came leaves nothing, and a question without a turn is forgotten.
    """

    def __init__(
        self,
        answering: Answering,
        dialect: Dialect,
        repl: KeptSession,
        context: Any,
        trace: Trace,
        *,
        owned: bool = True,
    ) -> None:
        self.outcomes: list[Outcome] = []
        self.trace, self._owned = trace, owned
        self.context = as_context(context)
        self._answering, self._dialect, self._repl = answering, dialect, repl
        self._id = f"s{os.urandom(5).hex()}"
        self._messages: tuple[Message, ...] = ()
        self._sent: tuple[Message, ...] = ()
        self._turns = 0
        self._told = self._closed = False
        self._busy = threading.Lock()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def usage(self) -> Usage:
        """What all questions cost together."""
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

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        asked = f"{len(self.outcomes)} question{'' if len(self.outcomes) == 1 else 's'}"
        return f"<Conversation of {asked}, {self._turns} turns{', closed' if self._closed else ''}>"

    def _work(self, question: str, options: dict[str, Any]) -> Callable[[tuple[object, ...]], Outcome]:
        hooks = tuple(options.pop("hooks", ()))
        return lambda more: self.ask(question, hooks=(*hooks, *more), **options)

    def _ask(self, question: str, context: Any, hooks: tuple[object, ...], live: bool) -> Outcome:
        if context is not None and context is not self.context:
            self.context, self._told = as_context(context), False
        tells = self.context is not None and not self._told
        exchange = Exchange(
            self._repl,
            {
                "id": self._id,
                "question": len(self.outcomes) + 1,
                "after": self.outcomes[-1].run if self.outcomes else None,
                "turns": self._turns,
                "tells_context": tells,
            },
            follow_up(self._messages, tells) if self._messages else FIRST_ATTEMPT,
            self._turns,
            self._sent,
        )
        try:
            outcome = self._answering(question, self.context, hooks, live, exchange)
        except BaseException as error:
            left = getattr(error, "outcome", None)
            if isinstance(left, Outcome):
                self._keep(left, exchange)
            raise
        self._keep(outcome, exchange)
        return outcome

    def _keep(self, outcome: Outcome, exchange: Exchange) -> None:
        """What was said in a run, for the next question."""
        self.outcomes.append(outcome)
        if exchange.model is None or not outcome.turns:
            return
        sent, last = exchange.model.sent, outcome.turns[-1]
        there = any(m.turn == last.index and m.role == "assistant" for m in sent)
        self._messages = sent if there else with_turn(sent, self._dialect, last)
        self._sent, self._turns, self._told = sent, last.index, True
