"""The only model that an agent is ever handed: no call escapes the budget, the ledger or the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rlm_loop.budget import Account
from rlm_loop.charges import difference
from rlm_loop.ledger import Ledger, Part, apportion
from rlm_loop.messages import Message, Prompt, Reply, Usage
from rlm_loop.models.base import Measuring, Model
from rlm_loop.models.counting import prompt_tokens
from rlm_loop.trace import Trace, common


@dataclass
class Metered:
    """A model with its account.  `depth` and `purpose` say who calls; `max_tokens` limits each reply."""

    model: Model
    account: Account
    ledger: Ledger
    trace: Trace
    depth: int = 0
    purpose: str = "agent"
    max_tokens: int | None = None
    _sent: tuple[Message, ...] = field(default=(), repr=False)
    _counted: tuple[int, Sequence[Part]] = field(default=(0, ()), repr=False)  # the last call whose parts are kept

    @property
    def name(self) -> str:
        return self.model.name

    def scoped(self, *, depth: int, purpose: str, model: Model | None = None, max_tokens: int | None = None) -> Metered:
        """The same account for another caller of the tree."""
        chosen = max_tokens if max_tokens is not None else self.max_tokens
        return replace(
            self, model=model or self.model, depth=depth, purpose=purpose, max_tokens=chosen, _sent=(), _counted=(0, ())
        )

    def complete(self, prompt: Prompt, *, turn: int = 0) -> Reply:
        """Reserve, call, settle, charge, record; the reply is billed before anybody reads it.

        Raises `BudgetSpent` where nothing is left, and whatever the model raises (`ModelError`).
        """
        measured = list(self.model.measure(prompt)) if isinstance(self.model, Measuring) else None
        estimate = sum(p.tokens for p in measured) if measured is not None else prompt_tokens(self.model, prompt)
        held = self.account.reserve(estimate, self.max_tokens)
        request = self.trace.request(
            prompt,
            turn=turn,
            depth=self.depth,
            purpose=self.purpose,
            model=self.name,
            max_tokens=held.max_tokens,
            estimate=estimate,
        )
        try:
            reply = self.model.complete(prompt, max_tokens=held.max_tokens)
        except BaseException as error:
            self.account.settle(held, None)
            self.trace.record("model_error", request=request, turn=turn, error=f"{type(error).__name__}: {error}")
            raise
        usage = reply.usage or Usage(None, None)
        self.account.settle(held, usage, reply.waited)
        parts, counted = _reconcile(prompt, measured, usage.input_tokens)
        sent = common(self._sent, prompt.messages)
        call = self.ledger.charge(
            parts,
            usage,
            turn=turn,
            depth=self.depth,
            purpose=self.purpose,
            sent_messages=sent,
            exact=counted and usage.input_tokens is not None,
            seconds=reply.seconds,
            waited=reply.waited,
        )
        after, before = self._counted
        charged = {
            "call": call.call,
            "purpose": self.purpose,
            "exact": call.exact,
            "sent": sent,
            "after": after,
            "parts": difference(before, parts) if counted else None,
        }
        self._sent = prompt.messages
        if counted:
            self._counted = call.call, parts
        self.trace.record("reply", request=request, turn=turn, depth=self.depth, reply=reply, charged=charged)
        return reply


def _reconcile(prompt: Prompt, measured: list[Part] | None, reported: int | None) -> tuple[Sequence[Part], bool]:
    """Parts that sum to what the provider reported, and whether they were counted rather than shared out.

    Where nothing was reported the parts are the measured ones, or none: unknown tokens are not invented.
    """
    if reported is None:
        return measured or [], True
    if measured is not None and sum(p.tokens for p in measured) == reported:
        return measured, True
    return apportion(prompt, reported), False
