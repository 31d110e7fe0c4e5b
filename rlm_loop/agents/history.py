"""Makes the next request of the turns so far, and shortens it where it has grown too long.

`compaction` has the ways to shorten a prompt.  This module decides when, with the model's tokenizer, the budget and the
trace at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.agents.compaction import (
    Compaction,
    Policy,
    summary_request,
    turns_in,
    without_outputs,
    without_turns,
)
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.window import record_compaction, room_of
from rlm_loop.dialects.reader import without_reasoning
from rlm_loop.messages import Prompt
from rlm_loop.models.base import Diverged, ModelError
from rlm_loop.outcome import Turn


@dataclass
class History:
    """Makes the next request of a run of the prompt that grew.  It is called before each request.

    `plan` says when the prompt is shortened.

    Each change of the prompt is a `compaction` event in the trace, so a reader knows why a request does not begin with
    the one before.  `turn` in the event is the last turn that had ended.

    Where the part that must stay is longer than the plan's threshold, the run goes on with it (`over` in the event),
    and the next compaction is due when half a threshold has been added.  Where a summary cannot be made, a
    window takes its place (`fallback` in the event says why).
    """

    plan: Compaction
    model: Meter
    _limit: int | None = field(init=False, default=None)  # the threshold, or what the model's window has room for
    _due: int | None = field(init=False, default=None)  # compaction is due beyond so many tokens
    _sizes: dict[str, int] = field(init=False, default_factory=dict[str, int])

    def __post_init__(self) -> None:
        limits = [n for n in (self.plan.threshold_tokens, room_of(self.model)) if n is not None]
        self._limit = self._due = min(limits, default=None)

    def __call__(self, prompt: Prompt, turns: Sequence[Turn]) -> Prompt:
        plan = self.plan
        self._sizes.clear()
        before = self._size(prompt) if self._due is not None else 0
        long = self._due is not None and before > self._due
        many = plan.max_messages is not None and len(prompt.messages) > plan.max_messages
        if not turns or not (long or many):
            return prompt
        policy: Policy = "window" if many and plan.policy == "drop_outputs" else plan.policy
        after, policy, fallback = self._shorter(prompt, turns, policy, long)
        self._record(prompt, after, turns[-1], policy, fallback, "tokens" if long else "messages")
        return after

    def _shorter(
        self, prompt: Prompt, turns: Sequence[Turn], policy: Policy, long: bool
    ) -> tuple[Prompt, Policy, str | None]:
        """The shortened prompt, the policy that made it, and why that is not the one asked for."""
        if policy != "summary":
            return self._first_that_fits(prompt, turns, policy, long), policy, None
        room = self._first_that_fits(prompt, turns, "window", long, reserve=self.plan.summary_tokens)
        kept = set(turns_in(room))
        problem: str | None = None
        if dropped := [t for t in turns_in(prompt) if t not in kept]:
            text, problem = self._summary(prompt, dropped)
            if text is not None:
                shorter = without_turns(prompt, kept, summary=text)
                if self._size(shorter) < self._size(prompt):
                    return shorter, "summary", None
                problem = "the summary is no shorter than what it stands for"
        return self._first_that_fits(prompt, turns, "window", long), "window", problem

    def _first_that_fits(
        self, prompt: Prompt, turns: Sequence[Turn], policy: Policy, long: bool, reserve: int = 0
    ) -> Prompt:
        """The candidate that keeps the most turns within the limits, else the one that keeps the least."""
        candidate = prompt
        limit, most = self._limit, self.plan.max_messages
        for candidate in self._candidates(prompt, turns, policy, long):
            if most is not None and len(candidate.messages) > most:
                continue
            if limit is None or self._size(candidate) + reserve <= limit:
                break
        return candidate

    def _candidates(self, prompt: Prompt, turns: Sequence[Turn], policy: Policy, long: bool) -> Iterator[Prompt]:
        """Ever shorter prompts.  A turn whose answer still waits to be confirmed stays: the model has to know of it."""
        plan = self.plan
        there = turns_in(prompt)
        pending = [t.index for t in turns if t.pending is not None][-1:]
        shorten = without_outputs if policy == "drop_outputs" else without_turns
        few = long or plan.policy == "summary"  # a call a turn would be the price of leaving out one at a time
        for count in range(min(plan.keep_turns, len(there)) if few else len(there), 0, -1):
            yield shorten(prompt, {*there[-count:], *pending})

    def _summary(self, prompt: Prompt, dropped: Sequence[int]) -> tuple[str | None, str | None]:
        """The text of a summary, or why there is none."""
        tokens = self.plan.summary_tokens
        request = summary_request(prompt, dropped, words=tokens * 3 // 5)
        # the same caller, outside of its conversation: nothing of this prompt was sent before
        asks = self.model.apart("compaction", tokens)
        try:
            reply = asks.complete(request, turn=turns_in(prompt)[-1])
        except Diverged:
            raise
        except (ModelError, BudgetSpent) as error:
            return None, f"no summary: {error}"
        text = " ".join(without_reasoning(reply.text).split())
        if not text or reply.finish_reason in ("content_filter", "error"):
            return None, "no summary: the reply was empty or withheld"
        return text + (" ..." if reply.cut_off else ""), None

    def _record(self, prompt: Prompt, after: Prompt, turn: Turn, policy: str, fallback: str | None, due: str) -> None:
        """The event; and where even this is over the threshold, the length at which the next one is due."""
        limit, most = self._limit, self.plan.max_messages
        tokens = None if limit is None else self._size(after)
        over = tokens is not None and limit is not None and tokens > limit
        if limit is not None and tokens is not None:
            self._due = tokens + limit // 2 if over else limit
        record_compaction(
            self.model,
            prompt,
            after,
            self._sizes,
            turn=turn.index,
            policy=policy,
            asked=self.plan.policy,
            due=due,
            fallback=fallback,
            over=over or (most is not None and len(after.messages) > most),
        )

    def _size(self, prompt: Prompt) -> int:
        """Tokens by the model's own tokenizer, else estimated; each prompt is counted once."""
        name = prompt.digest()
        if name not in self._sizes:
            self._sizes[name] = self.model.model.prompt_tokens(prompt)
        return self._sizes[name]
