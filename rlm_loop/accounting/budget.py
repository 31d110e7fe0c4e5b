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

from rlm_loop.accounting.limits import Budget, BudgetSpent, UnknownPrice
from rlm_loop.accounting.scope import Scope
from rlm_loop.messages import Usage

__all__ = ["Account", "Budget", "BudgetSpent", "PricePerToken", "Reservation", "UnknownPrice"]

PricePerToken = tuple[float, float]  # US dollars per input token and per output token

#: Field of `Budget`, kind of its stop, and unit.
_LIMITS = (
    ("seconds", "seconds", "seconds"),
    ("working_seconds", "seconds", "working seconds"),
    ("tokens", "tokens", "tokens"),
    ("output_tokens", "tokens", "output tokens"),
    ("cost", "cost", "dollars"),
    ("calls", "calls", "calls"),
)


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
        self._limits: list[tuple[str, str, float]] = []
        for name, kind, unit in _LIMITS:
            if (limit := getattr(budget, name)) is not None:
                self._limits.append((kind, unit, limit))
        self._chain: tuple[Account, ...] = (self,) if parent is None else (self, *parent._chain)
        above = () if parent is None else parent._limited
        self._limited: tuple[Account, ...] = (self, *above) if self._limits else above
        self._price, self._clock, self._start = price, clock, clock()
        self._news: threading.Condition = threading.Condition() if parent is None else parent._news
        self.spent = Usage.NOTHING
        """Settled usage, with estimates where a provider reported none."""
        self.calls = 0
        """Settled calls, failed ones included."""
        self._waits: list[tuple[float, float]] = []
        self._waited = 0.0
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
        return any(kind == "cost" for a in self._limited for kind, *_ in a._limits)

    def seconds_left(self) -> float | None:
        """Return the seconds until the nearest time limit; `None` if there is none."""
        if not self._limited:
            return None
        left = [limit - used for _, kind, _, limit, used in self._uses(held=False) if kind == "seconds"]
        return max(0.0, min(left)) if left else None

    def calls_left(self) -> int | None:
        """Return the model calls that may still begin, those under way not counted; `None` if there is no limit."""
        with self._news:
            left = [limit - used for _, kind, _, limit, used in self._uses(held=True) if kind == "calls"]
        return max(0, int(min(left))) if left else None

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
            while self._limited:
                room, spent = self._room(input_tokens, max_tokens, price, held=True)
                if spent is None and (max_tokens is None or room == max_tokens):
                    break
                if scope is None or not any(a._held for a in self._chain):
                    if spent is not None:
                        raise spent
                    break  # a shorter reply than wished for fits
                if (spent := self._room(input_tokens, max_tokens, price, held=False)[1]) is not None:
                    raise spent
                with scope.waking(self._wake):
                    scope.check()
                    self._news.wait(self.seconds_left())
                scope.check()
            else:
                room = max_tokens
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
                    if waited > 0:  # it came before the attempt that gave the reply; calls may wait at the same time
                        a._waits = _merged([*a._waits, (reservation.at, reservation.at + waited)])
                        a._waited = sum(end - begin for begin, end in a._waits)
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
            seconds, under_way = a._clock() - a._start, a._held if held else ()
            taken = (a.spent.input_tokens or 0) + sum(r.input_tokens for r in under_way)
            output = (a.spent.output_tokens or 0) + sum(r.max_tokens or 0 for r in under_way)
            uses = {
                "seconds": seconds,
                "working seconds": seconds - a._waited,
                "tokens": taken + output,
                "output tokens": output,
                "dollars": (a.spent.cost or 0.0) + sum(r.cost for r in under_way),
                "calls": a.calls + len(under_way),
            }
            for kind, unit, limit in a._limits:
                yield a, kind, unit, limit, uses[unit]

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
            left: float = limit - used
            if unit == "dollars":
                left -= input_tokens * price[0]
                left = left if left < 0 else left / price[1] if price[1] else math.inf
            elif unit == "tokens":
                left -= input_tokens
            if kind == "seconds" or left == math.inf:
                continue
            if left < 1:
                return 0, BudgetSpent(kind, f"what is left of {limit:g} {unit} does not cover another model call")
            if kind != "calls":
                sharers = max(1, a._callers - len(a._held)) if wish is None else 1
                share = max(1, int(left) // sharers)
                room = share if room is None else min(room, share)
        return room, None

    def _wake(self) -> None:
        with self._news:
            self._news.notify_all()


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the same stretches of time without overlaps."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return merged
