"""What a run may spend: one frozen value, and one account that a whole call tree spends from.

A model call first *reserves* what it may cost, so threads cannot race past a limit, and then *settles* what
it did cost.  The bound: output tokens never exceed the limit; input exceeds it by at most the error of the
estimate, which is zero for a model that knows its tokenizer.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, fields

from rlm_loop.messages import Usage

Price = tuple[float, float]  # US dollars per input token and per output token


@dataclass(frozen=True)
class Budget:
    """Limits of a run.  `None` means unlimited, `0` means none at all.

    `steps` are replies of the root model; `seconds` wall time from the start of the run; `working_seconds`
    the same without waits for rate limits and retries; `tokens` input plus output of all calls,
    `output_tokens` generated ones; `cost` US dollars; `calls` model calls; `depth` levels of recursion;
    `malformed` unreadable replies in a row; `tool_failures` failed tool calls in a row.
    """

    steps: int | None = 20
    seconds: float | None = None
    working_seconds: float | None = None
    tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    calls: int | None = None
    depth: int | None = None
    malformed: int | None = 3
    tool_failures: int | None = 3

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"Budget.{field.name} is a number or None (unlimited), not {value!r}")
            if math.isnan(value) or value < 0:
                raise ValueError(f"Budget.{field.name} cannot be {value}; None means unlimited, 0 means none at all")


class BudgetSpent(BaseException):
    """Nothing is left to spend.  Not an `Exception`: no `except Exception` in a cell may swallow it."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class UnknownPrice(ValueError):
    """A cost limit was set for a model whose price is not known."""


@dataclass(frozen=True)
class Reservation:
    """What a call may use at most: `max_tokens` is the wish clamped to what is left (`None`: no limit)."""

    input_tokens: int
    max_tokens: int | None
    output_tokens: int
    cost: float


class Account:
    """What a call tree has spent and may still spend.  Every method is safe to call from threads.

    `clock` gives seconds; the account's time starts when it is made.  Raises `UnknownPrice` where a cost limit
    cannot be kept because `price` is `None`.
    """

    def __init__(
        self, budget: Budget, *, price: Price | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if budget.cost is not None and price is None:
            raise UnknownPrice("a cost limit needs a model whose price is known; limit tokens or calls instead")
        self.budget = budget
        self._price = price or (0.0, 0.0)
        self._clock = clock
        self._start = clock()
        self._lock = threading.Lock()
        self._spent = Usage.nothing()
        self._waited = 0.0
        self._held_input = self._held_output = self._held_calls = 0
        self._held_cost = 0.0

    @property
    def seconds(self) -> float:
        """Wall time since the start."""
        return self._clock() - self._start

    @property
    def working_seconds(self) -> float:
        """Wall time without waiting for rate limits and retries."""
        return self.seconds - self._waited

    @property
    def spent(self) -> Usage:
        """Settled usage, with estimates where a provider reported none."""
        return self._spent

    def seconds_left(self) -> float | None:
        """Seconds until the nearer of the two time limits; `None` if there is none."""
        limits = [
            limit - used
            for limit, used in (
                (self.budget.seconds, self.seconds),
                (self.budget.working_seconds, self.working_seconds),
            )
            if limit is not None
        ]
        return max(0.0, min(limits)) if limits else None

    def reserve(self, input_tokens: int, max_tokens: int | None) -> Reservation:
        """Set aside what a call may cost; raises `BudgetSpent` where not even one output token is left."""
        with self._lock:
            self._refuse_if_spent()
            room = [max_tokens] if max_tokens is not None else []
            spent_in, spent_out = self._spent.input_tokens or 0, self._spent.output_tokens or 0
            if self.budget.tokens is not None:
                held = self._held_input + self._held_output
                room.append(self._room("tokens", self.budget.tokens - spent_in - spent_out - held - input_tokens))
            if self.budget.output_tokens is not None:
                left = self.budget.output_tokens - spent_out - self._held_output
                room.append(self._room("tokens", left))
            if self.budget.cost is not None:
                left_cost = self.budget.cost - (self._spent.cost or 0.0) - self._held_cost
                left_cost -= input_tokens * self._price[0]
                if left_cost < 0:
                    raise BudgetSpent("cost", f"the cost limit of ${self.budget.cost:g} is reached")
                if self._price[1]:
                    room.append(self._room("cost", int(left_cost / self._price[1])))
            limit = min(room) if room else None
            output = limit or 0
            cost = input_tokens * self._price[0] + output * self._price[1]
            self._held_input += input_tokens
            self._held_output += output
            self._held_calls += 1
            self._held_cost += cost
            return Reservation(input_tokens, limit, output, cost)

    def settle(self, reservation: Reservation, usage: Usage | None, waited: float = 0.0) -> None:
        """Replace a reservation by what the call used; `None` releases it (the call failed)."""
        with self._lock:
            self._held_input -= reservation.input_tokens
            self._held_output -= reservation.output_tokens
            self._held_calls -= 1
            self._held_cost -= reservation.cost
            self._waited += waited
            if usage is None:
                return
            used_in = reservation.input_tokens if usage.input_tokens is None else usage.input_tokens
            used_out = reservation.output_tokens if usage.output_tokens is None else usage.output_tokens
            cost = used_in * self._price[0] + used_out * self._price[1] if usage.cost is None else usage.cost
            self._spent = self._spent + Usage(used_in, used_out, usage.cached_tokens or 0, usage.calls, cost)

    def exceeded(self) -> tuple[str, str] | None:
        """The first limit that is reached, as its kind and one line; `None` while there is something left."""
        budget, spent = self.budget, self._spent
        total = (spent.input_tokens or 0) + (spent.output_tokens or 0)
        checks: list[tuple[str, str, float | None, float]] = [
            ("seconds", "seconds", budget.seconds, self.seconds),
            ("seconds", "working seconds", budget.working_seconds, self.working_seconds),
            ("tokens", "tokens", budget.tokens, total),
            ("tokens", "output tokens", budget.output_tokens, spent.output_tokens or 0),
            ("cost", "dollars", budget.cost, spent.cost or 0.0),
            ("calls", "calls", budget.calls, spent.calls),
        ]
        for kind, unit, limit, used in checks:
            if limit is not None and used >= limit:
                return kind, f"the limit of {limit:g} {unit} is reached"
        return None

    def over(self) -> bool:
        """More was spent than a limit allows (reaching it exactly is not over)."""
        budget, spent = self.budget, self._spent
        total = (spent.input_tokens or 0) + (spent.output_tokens or 0)
        pairs: list[tuple[float | None, float]] = [
            (budget.seconds, self.seconds),
            (budget.working_seconds, self.working_seconds),
            (budget.tokens, total),
            (budget.output_tokens, spent.output_tokens or 0),
            (budget.cost, spent.cost or 0.0),
            (budget.calls, spent.calls),
        ]
        return any(limit is not None and used > limit for limit, used in pairs)

    def _refuse_if_spent(self) -> None:
        found = self.exceeded()
        if found is not None:
            raise BudgetSpent(*found)
        if self.budget.calls is not None and self._spent.calls + self._held_calls >= self.budget.calls:
            raise BudgetSpent("calls", f"the limit of {self.budget.calls} calls is reached")

    def _room(self, kind: str, left: int) -> int:
        if left < 1:
            raise BudgetSpent(kind, "what is left of the budget does not cover another model call")
        return left
