"""One sub-call, from its start to its end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.accounting.call_tree import Caller
from rlm_loop.accounting.ledger import Cached
from rlm_loop.accounting.scope import Cancelled
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.recursion.record import Record, SubCall
from rlm_loop.agents.recursion.settings import DepthExceeded, Recursion, SubCallError
from rlm_loop.agents.rules import Beyond
from rlm_loop.dialects.reader import without_reasoning
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models.base import ModelError
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.repl.contexts.context import inline_context

FALLBACK = "(not asked: the depth limit is reached)"

SubAgent = Callable[[str, Any, Meter], Outcome]
"""Runs the loop one level down: the question, its context, and the model to run on."""


@dataclass
class SubcallRunner:
    """The sub-calls of one agent, which runs on `agent`."""

    agent: Meter
    settings: Recursion
    sub_agent: SubAgent
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _waiting: int = field(default=0, init=False)

    def ask(self, asked: SubCall, node: Caller) -> str:
        """The answer as text, worked out in this thread.

        Raises `SubCallError` where there is none, `BudgetSpent` where nothing is left for the agent that asks, and
        `Cancelled` where nobody waits for the answer any more.
        """
        record = Record(asked, node, self.agent, self.clock)
        try:
            node.begin(lambda: record.end(error=("cancelled", "still under way when the run ended")))
            try:
                text, details = self._answer(asked, node, record)
            finally:
                node.end_children()  # whichever way it ended, and before its own end is told
            node.scope.check()
            record.end(text, **details)
            return text
        except BaseException as error:
            kind, reason = _why(error)
            record.end(error=(kind, reason), stop=error.stop if isinstance(error, SubCallError) else None)
            if kind == "runtime" and not isinstance(error, SubCallError):
                raise SubCallError(reason) from error
            raise
        finally:
            node.over()

    def wait(self, change: int) -> None:
        """Count who waits: an agent that waits for sub-calls is not counted when the rest of the budget is shared."""
        with self._lock:
            before, self._waiting = self._waiting, self._waiting + change
            if not before or not self._waiting:
                self.agent.account.callers(-change)

    def _answer(self, asked: SubCall, node: Caller, record: Record) -> tuple[str, dict[str, Any]]:
        """The text, and what else there is to say of the end."""
        settings, most = self.settings, self.settings.max_depth
        beyond = settings.on_depth if node.depth > most else None
        if beyond == "text":
            record.start("fallback", policy=beyond)
            return FALLBACK, {}
        if beyond == "error":
            record.start("denied", policy=beyond)
            raise DepthExceeded(f"llm_query may not go deeper than max_depth={most}")
        model, price = settings.model_for(asked.model, self.agent)
        inner = self.agent.scoped(
            node,
            purpose="llm_query",
            model=model,
            price=price,
            max_tokens=asked.max_tokens,
            account=settings.account_for(self.agent),
        )
        answers = settings.tree.answers
        if answers is None:
            return self._asked(asked, inner, record, beyond)
        key = self._key(asked, node.depth, model.name)
        if (known := answers.find(key, node.scope)) is not None:
            text, cost = known
            record.start("cached", model=model.name, policy=beyond)
            self.agent.ledger.reuse(Cached(node.path, node.depth, self.agent.turn, cost))
            return text, {"saved": cost}
        answer: tuple[str, Usage] | None = None
        try:
            text, details = self._asked(asked, inner, record, beyond)
            answer = text, node.usage
            return text, details
        finally:
            answers.settle(key, answer)

    def _asked(self, asked: SubCall, inner: Meter, record: Record, beyond: Beyond | None) -> tuple[str, dict[str, Any]]:
        agent = inner.node.depth < self.settings.max_depth
        record.start("agent" if agent else "completion", model=inner.name, policy=beyond)
        return (
            (self._by_agent(asked, inner), {"stop": Stop.ANSWERED})
            if agent
            else (self._by_completion(asked, inner), {})
        )

    def _key(self, asked: SubCall, depth: int, model: str) -> Hashable:
        """What has to be the same for an answer to be used again.

        The depth of a sub-agent counts: it may go less deep than the one before.
        """
        about = asked.fingerprint
        level = depth if depth < self.settings.max_depth else None
        return (level, model, asked.max_tokens, asked.prompt, tuple(sorted((k, str(v)) for k, v in about.items())))

    def _by_completion(self, asked: SubCall, inner: Meter) -> str:
        text = asked.prompt
        if asked.context is not None:
            text = f"{text}\n\n{inline_context(asked.context, limit=sys.maxsize)}"
        try:
            reply = inner.complete(Prompt.ask(text))
        except BudgetSpent as spent:
            raise self._out_of(spent, inner) from None
        return _whole(reply, asked.max_tokens)

    def _by_agent(self, asked: SubCall, inner: Meter) -> str:
        with self.settings.tree.agents.held(inner.node.scope, lender=self.agent.node):
            outcome = self.sub_agent(asked.prompt, asked.context, inner)
        if outcome.answered:
            return str(outcome.answer)
        if outcome.stop in (Stop.SECONDS, Stop.TOKENS, Stop.COST, Stop.CALLS):
            spent = self.agent.account.spent_out()  # nothing is left for who asked either
            if spent is None and not inner.node.usage.calls and inner.account is self.agent.account:
                spent = BudgetSpent(str(outcome.stop), outcome.reason)  # not even its first call was covered
            if spent is not None:
                raise spent
        pending = next((t.pending for t in reversed(outcome.turns) if t.pending is not None), None)
        held = outcome.answer if pending is None else pending.value
        words = (outcome.last_reply.strip() if pending is None else "") or ("" if held is None else str(held))
        last = f"; its last words: {words[:200]!r}" if words else ""
        error = SubCallError(f"the sub-agent gave no answer ({outcome.stop}: {outcome.reason}){last}")
        error.stop = str(outcome.stop)
        raise error

    def _out_of(self, spent: BudgetSpent, inner: Meter) -> BaseException:
        """Whether what is spent is everything, or only the part that this sub-call was given."""
        if inner.account is self.agent.account or self.agent.account.spent_out() is not None:
            return spent
        return SubCallError(f"the limits of a sub-call are reached: {spent.reason}", "budget")


def _why(error: BaseException) -> tuple[str, str]:
    """The kind of what a sub-call failed with, and one line of it."""
    match error:
        case SubCallError():
            return error.kind, error.reason
        case BudgetSpent():
            return "budget", error.reason
        case Cancelled():
            return "cancelled", str(error)
        case ModelError():
            return "runtime", str(error)
        case _:
            kind = "runtime" if isinstance(error, Exception) else "interrupted"
            return kind, f"{type(error).__name__}: {error}"


def _whole(reply: Reply, asked: int | None) -> str:
    """The text of a reply that can stand as an answer."""
    used = reply.usage.output_tokens if reply.usage is not None else None
    if reply.cut_off and (asked is None or (used is not None and used < asked)):
        begin = f"; it began {reply.text[:200]!r}" if reply.text else ""
        length = "" if used is None else f" after {used} tokens"
        raise SubCallError(f"the reply was cut off{length}: ask for less, or split the prompt{begin}", "cut_off")
    if reply.finish_reason == "content_filter":
        raise SubCallError("the reply was withheld by a content filter: ask in another way")
    if not (text := without_reasoning(reply.text)).strip():
        raise SubCallError("the reply was empty: ask in another way")
    return text
