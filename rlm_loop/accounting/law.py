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
        count = len(requests)
        if count < 2:
            raise ValueError(f"requests must be the tokens of at least 2 requests, got {count}")
        middle, mean = (count + 1) / 2, sum(requests) / count
        slope = sum((turn - middle) * (tokens - mean) for turn, tokens in enumerate(requests, 1))
        slope /= sum((turn - middle) ** 2 for turn in range(1, count + 1))
        return cls(once=mean - slope * middle, per_turn=slope)
