"""The event loop of async tools: one for the process, in a thread of its own.

A client that an async tool opens in one call belongs to the loop in which it was opened, so the next call must find the
same loop.  It is not the caller's: a notebook's loop is busy running the cell that asked.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable
from typing import Any

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}  # by process: a forked child has the memory, and not the thread


def awaited(work: Awaitable[Any]) -> Any:
    """What the work gives or raises; the calling thread waits for it."""

    async def run() -> Any:
        return await work

    return asyncio.run_coroutine_threadsafe(run(), _loop()).result()


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:
        loop = _loops.get(os.getpid())
        if loop is None:
            _loops.clear()
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, daemon=True, name="async tools").start()
        return loop
