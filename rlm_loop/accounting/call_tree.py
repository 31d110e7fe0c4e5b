"""The tree of callers of one run: each ends those below it.

The root run is node "0"; the sub-calls of node N are "N.1", "N.2", ... in the order in which they were asked for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rlm_loop.accounting.scope import Cancelled, Scope

#: Seconds that a model call under way is waited for when its parent ends, before it is written off.
PATIENCE = 2.0
_QUICK = 1.0  # seconds for work that waits for no model any more


class Caller:
    """A run or a sub-call; `scope` ends with the parent's.  Every method may be called from any thread."""

    def __init__(self, parent: Caller | None = None, number: int = 0, *scopes: Scope | None) -> None:
        self.parent = parent
        self._above: Caller = parent or self
        self.path = "0" if parent is None else f"{parent.path}.{number}"
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.scope = Scope(parent.scope if parent is not None else None, *scopes)
        self._lock: threading.Lock = threading.Lock() if parent is None else parent._lock
        self._asked = self._batches = 0
        self._write_offs: list[Callable[[], None]] = []  # of the model calls under way
        self._running: set[Caller] = set()
        self._over = threading.Event()
        self._on_abandoned: Callable[[], None] = lambda: None
        self._abandoned = False

    def numbers(self, count: int) -> range:
        """Numbers for so many new sub-calls, one after the other."""
        with self._lock:
            first = self._asked + 1
            self._asked += count
        return range(first, first + count)

    def batch(self) -> str:
        """A name for a new batch: "0.b1", "0.b2", ..."""
        with self._lock:
            self._batches += 1
            return f"{self.path}.b{self._batches}"

    def begin(self, on_abandoned: Callable[[], None]) -> None:
        """Start the sub-call; `on_abandoned` is called if it does not end in time after its parent."""
        self.scope.check()
        with self._lock:
            if self._above._abandoned:
                raise Cancelled("the agent that asked has ended")
            self._on_abandoned = on_abandoned
            self._above._running.add(self)

    def over(self) -> None:
        """End the sub-call."""
        self.scope.release()
        with self._lock:
            self._above._running.discard(self)
        self._over.set()

    def depart(self, write_off: Callable[[], None]) -> Callable[[], None]:
        """Start a model call; `write_off` charges it where its end is waited for no more.  Returns its key."""
        with self._lock:
            if self._abandoned:
                raise Cancelled(self.scope.reason or "this sub-call was given up")
            self._write_offs.append(write_off)
            return write_off

    def arrive(self, call: Callable[[], None]) -> None:
        """End a model call; raises `Cancelled` where it was written off before."""
        with self._lock:
            if call not in self._write_offs:
                raise Cancelled(self.scope.reason or "this sub-call was given up")
            self._write_offs.remove(call)

    def end_children(self, patience: float | None = None) -> None:
        """End what was started below and still runs: no child outlives its parent.

        Model calls under way are waited for, `patience` seconds (`PATIENCE`) at most, to be charged what they cost.
        The others are written off: their cost is not known, and is counted so.  They are not waited for again.
        """
        if not self._running:
            return
        patience = PATIENCE if patience is None else patience
        with self._lock:
            children = [child for child in self._running if not child._abandoned]
        for child in children:
            child.scope.end("the agent that asked for it has ended")
        if not self._ended(children, patience):
            for child in children:
                child._abandon()
            self._ended(children, min(_QUICK, patience))

    def _ended(self, children: list[Caller], seconds: float) -> bool:
        until = time.monotonic() + seconds
        return all(child._over.wait(max(0.0, until - time.monotonic())) for child in children)

    def _abandon(self) -> None:
        with self._lock:
            if self._abandoned:
                return
            self._abandoned = True
            write_offs, self._write_offs = self._write_offs, []
            running = list(self._running)
        for child in running:
            child._abandon()
        for write_off in write_offs:
            write_off()
        self._on_abandoned()
