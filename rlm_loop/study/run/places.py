"""What a study has to know of an executor: how many episodes it takes at a time, what it shares, how it loses one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, cast

from rlm_loop.study.run.processes import SeparateProcesses

#: By these the libraries say that the worker of a call is gone.
_LOST = {
    "distributed": ("KilledWorker",),
    "ray": (
        "WorkerCrashedError",
        "NodeDiedError",
        "OutOfMemoryError",
        "LocalRayletDiedError",
        "TaskUnschedulableError",
    ),
}
_UNKNOWN = 4  # under way at a time where an executor does not say how many workers it has


def in_this_process(executor: Executor) -> bool:
    """Calls are made in threads of this process: nothing has to travel."""
    return isinstance(executor, ThreadPoolExecutor)


def on_this_machine(executor: Executor) -> bool:
    """Workers are known to see this machine's files."""
    return isinstance(executor, SeparateProcesses | ProcessPoolExecutor)


def capacity(executor: Executor) -> int:
    """How many calls to have under way; asked again now and then, since a cluster grows and shrinks."""
    if isinstance(executor, SeparateProcesses):
        return executor.workers
    if isinstance(executor, ThreadPoolExecutor | ProcessPoolExecutor):
        known: dict[str, Any] = vars(executor)
        return int(known["_max_workers"])  # no public way, and in all versions
    slots = cast("Callable[[], int] | None", getattr(executor, "slots", None))  # our own executors
    if slots is not None:
        return max(1, slots())
    client: Any = getattr(executor, "_client", None)  # Dask's `client.get_executor()`
    if client is not None and hasattr(client, "nthreads"):
        return max(_UNKNOWN, 2 * sum(client.nthreads().values()))
    return _UNKNOWN


def worker_was_lost(error: BaseException) -> bool:
    """A call ended because its worker did, not because of what it raised."""
    if isinstance(error, BrokenExecutor | KeyboardInterrupt):
        return True
    return any(k.__name__ in _LOST.get(k.__module__.partition(".")[0], ()) for k in type(error).__mro__)
