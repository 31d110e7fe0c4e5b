"""One account that a whole call tree spends from, within the limits of a `Budget`.

A model call first *reserves* what it may cost, so threads cannot race past a limit, and then *settles* what
it did cost.  The bound: output tokens never exceed the limit; input exceeds it by at most the error of the
estimate, which is zero for a model that knows its tokenizer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rlm_loop.accounting.limits import Budget, BudgetSpent, UnknownPrice
from rlm_loop.accounting.scope import Scope
from rlm_loop.messages import Usage

__all__ = ["Account", "Budget", "BudgetSpent", "PricePerToken", "Reservation", "UnknownPrice"]

PricePerToken = tuple[float, float]  # US dollars per input token and per output token


@dataclass(frozen=True)
class Reservation:
    """What a call may use at most: `max_tokens` is the wish clamped to what is left (`None`: no limit).

    `price` is that of the calling model, `at` the time of the call by the account's clock.
    """

    input_tokens: int
    max_tokens: int | None
    output_tokens: int
    cost: float
    price: PricePerToken = (0.0, 0.0)
    at: float = 0.0


class Account:
    """What a call tree has spent and may still spend.  Every method is safe to call from threads.

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
        self._price = price
        self._clock = clock
        self._start = clock()
        self._news: threading.Condition = threading.Condition() if parent is None else parent._news
        self._spent = Usage.nothing()
        self._failed = 0
        self._waits: list[tuple[float, float]] = []
        self._held_input = self._held_output = self._held_calls = 0
        self._held_cost = 0.0
        self._callers = 1

    def scope(self, budget: Budget, *, price: PricePerToken | None = None) -> Account:
        """A part of this account with limits of its own, besides what is left here.

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
        waited = sum([end - begin for begin, end in self._waits]) if self._waits else 0.0
        return self._clock() - self._start - waited

    @property
    def spent(self) -> Usage:
        """Settled usage, with estimates where a provider reported none."""
        return self._spent

    @property
    def priced(self) -> bool:
        """Whether some limit is in dollars, so that every model needs a known price."""
        return any(a.budget.cost is not None for a in self._chain)

    def seconds_left(self) -> float | None:
        """Seconds until the nearest time limit; `None` if there is none."""
        left: float | None = None
        for a in self._chain:
            if (limit := a.budget.seconds) is not None:
                left = limit - a.seconds if left is None else min(left, limit - a.seconds)
            if (limit := a.budget.working_seconds) is not None:
                left = limit - a.working_seconds if left is None else min(left, limit - a.working_seconds)
        return None if left is None else max(0.0, left)

    def calls_left(self) -> int | None:
        """Model calls that may still begin, those under way not counted; `None` if there is no limit."""
        with self._news:
            left = [
                a.budget.calls - a._spent.calls - a._failed - a._held_calls
                for a in self._chain
                if a.budget.calls is not None
            ]
        return max(0, int(min(left))) if left else None

    def callers(self, change: int) -> None:
        """Change the number of concurrent calls expected by `change`; calls without a wish share what is left.

        One is there from the beginning; who waits for its own sub-calls is not counted.
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
            while True:
                fits, limit = self._fits(input_tokens, max_tokens, price)
                if fits:
                    break
                if scope is None or not any(a._held_calls for a in self._chain):
                    self._refuse(input_tokens, price, held=True)  # or else a shorter reply than wished for fits
                    break
                self._refuse(input_tokens, price, held=False)
                with scope.waking(self._wake):
                    scope.check()
                    self._news.wait(self.seconds_left())
                scope.check()
            return self._hold(input_tokens, limit, price)

    def settle(self, reservation: Reservation, usage: Usage | None, waited: float = 0.0) -> None:
        """Replace a reservation by what the call used; `None` releases it (the call failed)."""
        with self._news:
            for a in self._chain:
                a._settle(reservation, usage, waited)
            self._news.notify_all()

    def exceeded(self) -> tuple[str, str] | None:
        """The first limit that is reached, as its kind and one line; `None` while there is something left."""
        for a in self._chain:
            for kind, unit, limit, used in a._used():
                if used >= limit:
                    return kind, f"the limit of {limit:g} {unit} is reached"
        return None

    def spent_out(self) -> BudgetSpent | None:
        """What the smallest further call would raise, once the calls under way gave back what they hold."""
        try:
            with self._news:
                self._refuse(0, self._price or (0.0, 0.0), held=False)
        except BudgetSpent as spent:
            return spent
        return None

    def over(self) -> bool:
        """More was spent than a limit allows (reaching it exactly is not over)."""
        return any(used > limit for a in self._chain for _, _, limit, used in a._used())

    # -- how

    def _used(self) -> list[tuple[str, str, float, float]]:
        """What was used of each limit that is set, as kind, unit, limit and use."""
        budget, spent, found = self.budget, self._spent, list[tuple[str, str, float, float]]()
        if budget.seconds is not None:
            found.append(("seconds", "seconds", budget.seconds, self.seconds))
        if budget.working_seconds is not None:
            found.append(("seconds", "working seconds", budget.working_seconds, self.working_seconds))
        if budget.tokens is not None:
            total = (spent.input_tokens or 0) + (spent.output_tokens or 0)
            found.append(("tokens", "tokens", budget.tokens, total))
        if budget.output_tokens is not None:
            found.append(("tokens", "output tokens", budget.output_tokens, spent.output_tokens or 0))
        if budget.cost is not None:
            found.append(("cost", "dollars", budget.cost, spent.cost or 0.0))
        if budget.calls is not None:
            found.append(("calls", "calls", budget.calls, spent.calls + self._failed))
        return found

    def _rooms(self, input_tokens: int, price: PricePerToken, held: bool) -> Iterator[tuple[str, int]]:
        """Output tokens that each limit leaves, as its kind and a number; below 1 means that no call fits."""
        spent_in, spent_out = self._spent.input_tokens or 0, self._spent.output_tokens or 0
        if self.budget.tokens is not None:
            taken = self._held_input + self._held_output if held else 0
            yield "tokens", int(self.budget.tokens) - spent_in - spent_out - taken - input_tokens
        if self.budget.output_tokens is not None:
            yield "tokens", int(self.budget.output_tokens) - spent_out - (self._held_output if held else 0)
        if self.budget.cost is not None:
            left = self.budget.cost - (self._spent.cost or 0.0) - (self._held_cost if held else 0.0)
            left -= input_tokens * price[0]
            if left < 0:
                yield "cost", 0
            elif price[1]:
                yield "cost", int(left / price[1])

    def _fits(self, input_tokens: int, wish: int | None, price: PricePerToken) -> tuple[bool, int | None]:
        """Whether a call may begin now as it is wished, and the output tokens that it may have at most."""
        limit = wish
        fits = True
        for a in self._chain:
            calls = a.budget.calls
            if calls is not None and a._spent.calls + a._failed + a._held_calls >= calls:
                return False, 0
            for _, room in a._rooms(input_tokens, price, held=True):
                if room < 1:
                    return False, 0
                fits = fits and (wish is None or room >= wish)
                share = max(1, room // max(1, a._callers - a._held_calls)) if wish is None else room
                limit = share if limit is None else min(limit, share)
        return fits and self.exceeded() is None, limit

    def _refuse(self, input_tokens: int, price: PricePerToken, *, held: bool) -> None:
        """Raise `BudgetSpent` where no call fits; what others hold counts as spent where `held`."""
        found = self.exceeded()
        if found is not None:
            raise BudgetSpent(*found)
        for a in self._chain:
            calls = a.budget.calls
            if calls is not None and a._spent.calls + a._failed + (a._held_calls if held else 0) >= calls:
                raise BudgetSpent("calls", f"the limit of {calls} calls is reached")
            for kind, room in a._rooms(input_tokens, price, held):
                if room < 1 and kind == "cost":
                    raise BudgetSpent("cost", f"the cost limit of ${a.budget.cost:g} is reached")
                if room < 1:
                    raise BudgetSpent(kind, "what is left of the budget does not cover another model call")

    def _hold(self, input_tokens: int, limit: int | None, price: PricePerToken) -> Reservation:
        output = limit or 0
        cost = input_tokens * price[0] + output * price[1]
        for a in self._chain:
            a._held_input += input_tokens
            a._held_output += output
            a._held_calls += 1
            a._held_cost += cost
        return Reservation(input_tokens, limit, output, cost, price, self._clock())

    def _settle(self, reservation: Reservation, usage: Usage | None, waited: float) -> None:
        self._held_input -= reservation.input_tokens
        self._held_output -= reservation.output_tokens
        self._held_calls -= 1
        self._held_cost -= reservation.cost
        if waited > 0:  # it came before the attempt that gave the reply; calls may wait at the same time
            self._waits = _merged([*self._waits, (reservation.at, reservation.at + waited)])
        if usage is None:
            self._failed += 1
            return
        used_in = reservation.input_tokens if usage.input_tokens is None else usage.input_tokens
        used_out = reservation.output_tokens if usage.output_tokens is None else usage.output_tokens
        price = reservation.price
        cost = used_in * price[0] + used_out * price[1] if usage.cost is None else usage.cost
        self._spent = self._spent + replace(usage, input_tokens=used_in, output_tokens=used_out, cost=cost)

    def _wake(self) -> None:
        with self._news:
            self._news.notify_all()


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same stretches of time without overlaps."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return merged
