"""The tokens of a loop by turn, from five numbers and the price of a cached token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LoopTokens:
    """Prompt tokens of a loop whose requests only grow.

    `once` is in every request from the first on (system text, initiator, task), `schemas` are the tools, `per_turn` is
    added by the strategy in each turn, the first included, `reply` and `result` are the means of a turn's reply and of
    its results, which the next request has.  All are tokens.  A frame of 90 once and 40 a turn:

        >>> LoopTokens(once=90, per_turn=40).window(25)
        1090
    """

    once: float
    per_turn: float = 0
    schemas: float = 0
    reply: float = 0
    result: float = 0

    def window(self, turn: int) -> float:
        """Return the tokens of the request of a turn (1 is the first)."""
        return self.once + self.schemas + self.per_turn * turn + (self.reply + self.result) * (turn - 1)

    def bill(self, turns: int, cached_price: float = 1.0) -> float:
        """Return the tokens of the requests of all turns together, in tokens of the full price.

        A token that an earlier request had counts as `cached_price` of one: 1 is a bill without a prompt cache, less
        is a bill where the cache never misses.
        """
        before = turns - 1
        resent = before * self.window(1) + (self.per_turn + self.reply + self.result) * before * (before - 1) / 2
        return self.window(turns) + cached_price * resent

    @classmethod
    def fit(cls, requests: Sequence[float]) -> LoopTokens:
        """Fit a line to the tokens of the first requests of a session, by least squares.

        `once` is the intercept, `per_turn` the slope: with replies and results in them, a request grows by these.
        Raises `ValueError` for fewer than two requests.
        """
        from statistics import linear_regression  # its module is slow to import

        line = linear_regression(range(1, len(requests) + 1), requests)
        return cls(once=line.intercept, per_turn=line.slope)
