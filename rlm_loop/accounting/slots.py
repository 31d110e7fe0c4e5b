"""A limit on what goes on at once in a whole call tree."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Generator, Hashable

from rlm_loop.accounting.scope import Scope

_POOL = object()  # the owner of a slot that nobody lent


class Slots:
    """At most `limit` holders at a time, served in the order in which they came.

    Work that waits for its own children must not keep them from starting.  So it may be their `lender`: one child at
    a time then runs in its place, over the limit of the pool.  Whatever waits can always be overtaken by its own
    children, down to some that wait for nothing here, so there is no deadlock.
    """

    def __init__(self, limit: int) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ValueError(f"concurrency must be a number of calls at once, 1 or more, got {limit!r}")
        self.limit = limit
        self._free = limit
        self._lent: set[Hashable] = set()
        self._queue: deque[object] = deque()
        self._news = threading.Condition()

    @contextlib.contextmanager
    def held(self, scope: Scope, lender: Hashable = None) -> Generator[None]:
        """Wait for a slot and hold it for the block; raises `Cancelled` where the scope ends first."""
        with self._news:
            owner = _POOL if self._free and lender is None and not self._queue and scope.reason is None else None
            self._free -= owner is _POOL
        owner = owner or self._take(scope, lender)
        try:
            yield
        finally:
            with self._news:
                if owner is _POOL:
                    self._free += 1
                else:
                    self._lent.discard(owner)
                self._news.notify_all()

    def _take(self, scope: Scope, lender: Hashable) -> Hashable:
        ticket = object()
        with self._news:
            self._queue.append(ticket)
            try:
                while True:
                    scope.check()
                    if lender is not None and lender not in self._lent:
                        self._lent.add(lender)
                        return lender
                    if self._free and self._queue[0] is ticket:
                        self._free -= 1
                        return _POOL
                    with scope.waking(self._wake):
                        if not scope.ended:
                            self._news.wait()
            finally:
                self._queue.remove(ticket)
                self._news.notify_all()

    def _wake(self) -> None:
        with self._news:
            self._news.notify_all()
