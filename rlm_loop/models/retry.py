"""Trying again where it may help, and counting the time that this costs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

from rlm_loop.accounting.scope import call_scope
from rlm_loop.models.base import ModelError
from rlm_loop.models.listening import tell

T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long: at most `attempts` calls, waiting `first` seconds, then twice as long each time, at
    most `longest`.

    A server's own `Retry-After` is kept to, unless it asks for more than `patience` seconds: then the error is
    final.  Waits are shortened at random by up to a quarter, so that many callers do not return together; a
    `Retry-After` is never shortened.  No call is made for a run that has ended meanwhile.
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 30.0
    patience: float = 120.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.perf_counter
    chance: Callable[[], float] = random.random

    def call(self, attempt: Callable[[], T]) -> tuple[T, float]:
        """The result and the seconds that were lost before the attempt which gave it.

        Lost are the waits and the failed attempts.  Errors that say they are `retryable` are tried again; the last
        one is raised with `waited` set.
        """
        waited = 0.0
        for number in range(1, self.attempts + 1):
            if (scope := call_scope.get()) is not None:
                scope.check()  # nobody waits for the reply any more: it is not to be paid for
            start = self.clock()
            try:
                return attempt(), waited
            except ModelError as error:
                waited += self.clock() - start
                pause = min(self.first * 2 ** (number - 1), self.longest) * (1 - self.chance() / 4)
                if error.retry_after is not None:
                    pause = max(pause, error.retry_after)
                if not error.retryable or number == self.attempts or pause > self.patience:
                    error.waited = waited
                    raise
                tell("retry", f"asked again in {pause:.1f} s: {error}")
                self.sleep(pause)
                waited += pause
        raise ValueError("a RetryPolicy needs at least one attempt")


def retry_after(header: str | None, now: float | None = None) -> float | None:
    """The seconds that a `Retry-After` header asks for: a number, or a date (RFC 9110, 10.2.3)."""
    if not header:
        return None
    try:
        asked = float(header)
        return None if asked != asked else max(asked, 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(header).timestamp() - (time.time() if now is None else now), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
