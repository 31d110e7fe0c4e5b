"""Forwarded requests, counted by one thread that nobody waits for, in the order in which the replies ended.

A client asks again as soon as it has the end of a reply, which may be before the reply was noted as ended here.  So a
request is not counted while one of its session is under way whose reply may have ended before this one arrived: whose
latest piece went out by then.  It is counted when that one is over, or else when somebody asks for the figures and
that one has said more since.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from rlm_loop.meter.forward import ForwardedExchange


class InOrder:
    """Calls `count` with each exchange that is over."""

    def __init__(self, count: Callable[[ForwardedExchange], None]) -> None:
        self._count = count
        self._worker = ThreadPoolExecutor(1, "meter")
        self._under_way: list[ForwardedExchange] = []
        self._over: list[ForwardedExchange] = []
        self._closing = False
        self._lock = threading.Lock()

    def begin(self, exchange: ForwardedExchange) -> None:
        with self._lock:
            self._under_way.append(exchange)

    def over(self, exchange: ForwardedExchange) -> None:
        with self._lock:
            self._under_way.remove(exchange)
            self._over.append(exchange)
        self._worker.submit(self._work)

    def wait(self) -> None:
        """Return when all is counted that can be by now."""
        self._worker.submit(self._work).result()

    def hurry(self) -> None:
        """Return when all is counted that is over; from now on nothing waits for what is under way."""
        self._closing = True
        self.wait()

    def close(self) -> None:
        self._worker.shutdown()

    def _work(self) -> None:
        while (exchange := self._next()) is not None:
            self._count(exchange)

    def _next(self) -> ForwardedExchange | None:
        with self._lock:
            self._over.sort(key=lambda exchange: exchange.ended)
            found = next((one for one in self._over if self._closing or not self._may_follow(one)), None)
            if found is not None:
                self._over.remove(found)
            return found

    def _may_follow(self, exchange: ForwardedExchange) -> bool:
        """Return whether it may go on from a reply that is not over here."""
        own = (one for one in self._under_way if one.session is exchange.session and one.first is not None)
        return any(one.ended <= exchange.call.arrived for one in own)
