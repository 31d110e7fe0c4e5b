"""How much may go on at once in a whole call tree."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Generator, Hashable

from rlm_loop.accounting.scope import Scope


class _Waiter:
    def __init__(self, lender: Hashable) -> None:
        self.lender = lender
        self.woken = threading.Event()
        self.granted: Hashable | None = None


_POOL = object()  # what a slot belongs to that nobody lent


class Slots:
    """At most `limit` holders at a time; who comes first is served first.

    Work that waits for its own children must not keep them from starting.  So it may be their `lender`: one child at
    a time then runs in its place, over the limit of the pool.  Whatever waits can always be overtaken by its own
    children, down to some that wait for nothing here, so there is no deadlock.
    """

    def __init__(self, limit: int) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ValueError(f"concurrency is a number of calls at once, 1 or more, not {limit!r}")
        self.limit = limit
        self._free = limit
        self._lent: set[Hashable] = set()
        self._queue: deque[_Waiter] = deque()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def held(self, scope: Scope, lender: Hashable = None) -> Generator[None]:
        """A slot for the time of the block, waited for; raises `Cancelled` where the scope ends first."""
        owner = self._take(scope, lender)
        try:
            yield
        finally:
            self._give(owner)

    def _take(self, scope: Scope, lender: Hashable) -> Hashable:
        scope.check()
        with self._lock:
            if lender is not None and lender not in self._lent:
                self._lent.add(lender)
                return lender
            if self._free:
                self._free -= 1
                return _POOL
            waiter = _Waiter(lender)
            self._queue.append(waiter)
        try:
            with scope.waking(waiter.woken.set):
                waiter.woken.wait()
            scope.check()
            assert waiter.granted is not None
            return waiter.granted
        except BaseException:
            with self._lock:
                granted = waiter.granted
                if granted is None:
                    self._queue.remove(waiter)
            if granted is not None:
                self._give(granted)
            raise

    def _give(self, owner: Hashable) -> None:
        with self._lock:
            for waiter in self._queue:
                if owner is _POOL or waiter.lender is owner:
                    self._queue.remove(waiter)
                    waiter.granted = owner
                    waiter.woken.set()
                    return
            if owner is _POOL:
                self._free += 1
            else:
                self._lent.discard(owner)
