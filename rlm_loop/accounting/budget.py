"""An account that a whole call tree spends from, within the limits of a `Budget`.

A model call first *reserves* what it may cost, so threads cannot race past a limit, and then *settles* what
it did cost.  The bound: output tokens never exceed the limit; input exceeds it by at most the error of the
estimate, which is zero for a model that knows its tokenizer.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rlm_loop.accounting.scope import Scope
from rlm_loop.messages import Usage

PricePerToken = tuple[float, float]  # US dollars per input token and per output token

#: Limits that need not be whole numbers.
_MEASURED = ("seconds", "working_seconds", "cost", "cell_seconds", "tool_seconds")


@dataclass(frozen=True)
class Budget:
    """Limits of a run.  `None` (or infinity) means unlimited, `0` means none at all.

    `steps` are replies of the root model; `seconds` wall time from the start of the run; `working_seconds` the same
    without waits for rate limits and retries; `tokens` input plus output of all calls; `output_tokens` generated ones;
    `cost` US dollars; `calls` model calls, failed ones included; `depth` levels of recursion; `malformed` unreadable
    replies in a row; `tool_failures` failed tool calls in a row;
    `repeated` equal replies with equal results in a row, or as many rounds of the same two in turn (2 or more);
    `cell_seconds` the time of each cell, and `tool_seconds` that of each tool call.
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
    repeated: int | None = 2
    cell_seconds: float | None = 60.0
    tool_seconds: float | None = 60.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"Budget.{name} must be a number or None (unlimited), got {value!r}")
            if value == math.inf:
                object.__setattr__(self, name, None)
            elif not value >= 0:
                raise ValueError(f"Budget.{name} must be 0 or more (0: none at all) or None (unlimited), got {value}")
            elif name not in _MEASURED and value != int(value):
                raise ValueError(f"Budget.{name} must be a whole number or None, got {value}")
            elif name == "repeated" and value < 2:
                raise ValueError(f"Budget.repeated must be 2 or more equal turns in a row or None (off), got {value}")


#: For what has no limits of its own: what is recorded already, and several attempts together.
NO_LIMITS = Budget(steps=None, malformed=None, tool_failures=None)


class BudgetSpent(BaseException):
    """Nothing is left to spend.  Not an `Exception`: no `except Exception` in a cell may swallow it."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class UnknownPrice(ValueError):
    """A cost limit was set for a model whose price is not known."""


@dataclass(frozen=True, eq=False)
class Reservation:
    """The most that a call may use: `max_tokens` is the wish clamped to what is left (`None`: no limit).

    `price` is that of the calling model, `at` the time of the call by the account's clock.
    """

    input_tokens: int
    max_tokens: int | None
    price: PricePerToken
    at: float

    @property
    def cost(self) -> float:
        return self.input_tokens * self.price[0] + (self.max_tokens or 0) * self.price[1]


class Account:
    """The spending of a call tree and what is left of its budget.  Every method is safe to call from threads.

    `clock` gives seconds; the account's time starts when it is made.  Raises `UnknownPrice` where a cost limit
    cannot be kept because `price` is `None`.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        price: PricePerToken | None = None,
        clock: Callable[[], float] = time.monotonic,
        parent: Account | None = None,
    ) -> None:
        if budget.cost is not None and price is None:
            raise UnknownPrice("a cost limit needs a model whose price is known; limit tokens or calls instead")
        self.budget = budget
        self._chain: tuple[Account, ...] = (self,) if parent is None else (self, *parent._chain)
        above = () if parent is None else parent._limited
        limits = budget.seconds, budget.working_seconds, budget.tokens, budget.output_tokens, budget.cost, budget.calls
        self._limited: tuple[Account, ...] = above if set(limits) == {None} else (self, *above)
        self._price, self._clock, self._start = price, clock, clock()
        self._news: threading.Condition = threading.Condition() if parent is None else parent._news
        self.spent = Usage.NOTHING
        """Settled usage, with estimates where a provider reported none."""
        self.calls = 0
        """Settled calls, failed ones included."""
        self._waited = self._waited_until = 0.0
        self._held: set[Reservation] = set()
        self._callers = 1

    def scope(self, budget: Budget, *, price: PricePerToken | None = None) -> Account:
        """Return a part of this account with limits of its own, besides what is left here.

        What is spent there is spent here too.  Its clock starts now.  Raises `UnknownPrice` as the class does.
        """
        return Account(budget, price=price or self._price, clock=self._clock, parent=self)

    @property
    def seconds(self) -> float:
        """Wall time since the start."""
        return self._clock() - self._start

    @property
    def working_seconds(self) -> float:
        """Wall time without that in which a call waited for a rate limit or a retry."""
        return self._clock() - self._start - self._waited

    @property
    def priced(self) -> bool:
        """True if some limit is in dollars, so that every model needs a known price."""
        return any(a.budget.cost is not None for a in self._chain)

    def seconds_left(self) -> float | None:
        """Return the seconds until the nearest time limit; `None` if there is none."""
        if not self._limited:
            return None
        left = [limit - used for _, kind, _, limit, used in self._uses(held=False) if kind == "seconds"]
        return max(0.0, min(left)) if left else None

    def callers(self, change: int) -> None:
        """Change the number of concurrent calls expected by `change`; calls without a wish share what is left.

        The first caller is counted from the beginning, one that waits for its own sub-calls is not.
        """
        with self._news:
            for a in self._chain:
                a._callers += change

    def reserve(
        self,
        input_tokens: int,
        max_tokens: int | None,
        *,
        price: PricePerToken | None = None,
        scope: Scope | None = None,
    ) -> Reservation:
        """Set aside what a call may cost; raises `BudgetSpent` where not even one output token is left.

        With `scope`, what other calls under way hold is waited for, since they may give it back: then `BudgetSpent`
        is raised only where it is spent indeed, and `Cancelled` where the scope ends first.
        """
        price = price or self._price or (0.0, 0.0)
        with self._news:
            room, spent = max_tokens, None
            while self._limited:
                room, spent = self._room(input_tokens, max_tokens, price, held=True)
                fits = spent is None and max_tokens in (None, room)
                if fits or scope is None or not any(a._held for a in self._chain):
                    break  # also where a shorter reply than wished for fits
                if gone := self._room(input_tokens, max_tokens, price, held=False)[1]:
                    raise gone
                scope.wait(self._news, self.seconds_left())
            if spent is not None:
                raise spent
            reservation = Reservation(input_tokens, room, price, self._clock())
            for a in self._chain:
                a._held.add(reservation)
        return reservation

    def settle(self, reservation: Reservation | None, usage: Usage | None, waited: float = 0.0) -> None:
        """Replace a reservation by what the call used; with usage `None` the call failed.

        Without a reservation, the call was made before, and counts whatever the limits.
        """
        if usage is not None and reservation is not None:
            used_in = reservation.input_tokens if usage.input_tokens is None else usage.input_tokens
            used_out = (reservation.max_tokens or 0) if usage.output_tokens is None else usage.output_tokens
            price = reservation.price
            cost = used_in * price[0] + used_out * price[1] if usage.cost is None else usage.cost
            usage = replace(usage, input_tokens=used_in, output_tokens=used_out, cost=cost)
        with self._news:
            for a in self._chain:
                if reservation is not None:
                    a._held.discard(reservation)
                    if waited > 0:  # it came before the attempt that gave the reply
                        end = reservation.at + waited
                        a._waited += max(0.0, min(waited, end - a._waited_until))  # what overlaps counts once
                        a._waited_until = max(a._waited_until, end)
                a.calls += 1 if usage is None else usage.calls
                if usage is not None:
                    a.spent = a.spent + usage
            self._news.notify_all()

    def exceeded(self) -> tuple[str, str] | None:
        """Return the first limit that is reached, as its kind and one line; `None` while there is something left."""
        for _, kind, unit, limit, used in self._uses(held=False) if self._limited else ():
            if used >= limit:
                return kind, f"the limit of {limit:g} {unit} is reached"
        return None

    def spent_out(self) -> BudgetSpent | None:
        """Return the error that the smallest further call would raise once the calls under way gave back theirs."""
        with self._news:
            return self._room(0, None, self._price or (0.0, 0.0), held=False)[1]

    def over(self) -> bool:
        """Return True where more was spent than a limit allows (reaching it exactly is not over)."""
        return bool(self._limited) and any(used > limit for *_, limit, used in self._uses(held=False))

    def _uses(self, *, held: bool) -> Iterator[tuple[Account, str, str, float, float]]:
        """Yield each limit that is set, as account, kind, unit, limit and use; what is `held` counts as spent."""
        for a in self._limited:
            under_way = a._held if held else ()
            taken = (a.spent.input_tokens or 0) + sum(r.input_tokens for r in under_way)
            output = (a.spent.output_tokens or 0) + sum(r.max_tokens or 0 for r in under_way)
            cost = (a.spent.cost or 0.0) + sum(r.cost for r in under_way)
            for limit, kind, unit, used in (
                (a.budget.seconds, "seconds", "seconds", a.seconds),
                (a.budget.working_seconds, "seconds", "working seconds", a.working_seconds),
                (a.budget.tokens, "tokens", "tokens", taken + output),
                (a.budget.output_tokens, "tokens", "output tokens", output),
                (a.budget.cost, "cost", "dollars", cost),
                (a.budget.calls, "calls", "calls", a.calls + len(under_way)),
            ):
                if limit is not None:
                    yield a, kind, unit, limit, used

    def _room(
        self, input_tokens: int, wish: int | None, price: PricePerToken, *, held: bool
    ) -> tuple[int | None, BudgetSpent | None]:
        """Return the output tokens that a call may have (`None`: no limit), and the error where no call fits.

        What other calls hold counts as spent where `held`.
        """
        if (exceeded := self.exceeded()) is not None:
            return 0, BudgetSpent(*exceeded)
        room = wish
        for a, kind, unit, limit, used in self._uses(held=held):
            left: float = limit - used - (input_tokens if unit == "tokens" else 0)
            if unit == "dollars" and (left := left - input_tokens * price[0]) >= 0:
                left = left / price[1] if price[1] else math.inf
            if kind == "seconds" or left == math.inf:
                continue
            if left < 1:
                return 0, BudgetSpent(kind, f"what is left of {limit:g} {unit} does not cover another model call")
            if kind != "calls":
                share = max(1, int(left) // (max(1, a._callers - len(a._held)) if wish is None else 1))
                room = share if room is None else min(room, share)
        return room, None
