"""Threads in which tools run.

To start one takes longer than most calls, so one that is free is used again: while calls follow each other closely, and
no longer, so that a program which has long done with its tools has no threads of ours.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

Work = Callable[[], Callable[[], None]]
"""What a thread is to do; it returns what is to be called when the thread is free again."""


class ToolThreads:
    """Daemon threads that end when they were free for `idle` seconds.  A tool that never returns keeps its own."""

    def __init__(self, idle: float = 1.0) -> None:
        self._idle = idle
        self._free: list[SimpleQueue[tuple[str, Work]]] = []  # a thread is known by its inbox
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._free.clear)  # threads are not in the child

    def run(self, name: str, work: Work) -> None:
        """Have it done in a thread which has that name meanwhile.  Does not wait."""
        try:
            inbox = self._free.pop()
        except IndexError:
            inbox = SimpleQueue[tuple[str, Work]]()
            threading.Thread(target=self._serve, args=(inbox,), daemon=True, name=name).start()
        inbox.put((name, work))

    def _serve(self, inbox: SimpleQueue[tuple[str, Work]]) -> None:
        thread = threading.current_thread()
        while True:
            try:
                thread.name, work = inbox.get(timeout=self._idle)
            except Empty:
                try:
                    self._free.remove(inbox)
                except ValueError:  # somebody has just taken it, and is about to hand over work
                    thread.name, work = inbox.get()
                else:
                    return
            done = work()
            self._free.append(inbox)
            done()
            del work, done  # what was called is not kept alive by a thread that waits


TOOL_THREADS = ToolThreads()
