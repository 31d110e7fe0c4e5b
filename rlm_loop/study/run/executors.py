"""Where episodes run: a `concurrent.futures.Executor`, by name or the user's own, and what a study has to know of it.

>>> with executor_of("processes:2") as executor:                                   # doctest: +SKIP
...     study.run("runs/mine", executor=executor)
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, cast

from rlm_loop.errors import install_line
from rlm_loop.study.errors import StudyError
from rlm_loop.study.run.processes import SeparateProcesses, open_processes

#: What `executor_of` takes, for help texts.
EXECUTORS = "threads:N, processes:N, dask[:N], dask:ADDRESS (tcp://... or a scheduler file)"
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


@contextlib.contextmanager
def executor_of(where: str) -> Generator[Executor]:
    """An executor by name, ended with the block.

    `threads:8` are threads of this process (one for each core where no number is given): right for models behind an
    address, which are waited for.  `processes:2` are worker processes on this machine, right where the harness itself
    is the work.  `dask` is a Dask cluster on this machine of one process for each core (`dask:4`: of four), and
    `dask:tcp://host:8786` or `dask:scheduler.json` one that is running.  Workers need the same rlm-loop, not the
    study's folder.  (Ray has no executor of its own; docs/studies.md has one of a few lines.)

    Raises `StudyError` for a name that is none of these, a library that is not installed, and an address that does not
    answer.
    """
    kind, _, rest = where.partition(":")
    if kind == "threads":
        opened = thread_pool(_number(where, rest))
    elif kind == "processes":
        opened = open_processes(_number(where, rest))
    elif kind == "dask":
        opened = _dask(where, rest)
    else:
        raise StudyError(f"there is no executor {where!r}; there are {EXECUTORS}")
    with opened as executor:
        yield executor


def hosted(executor: str | Executor | None, jobs: int | None) -> AbstractContextManager[Executor | None]:
    """What a study runs on: an executor by name, one that is there (left open), or threads for `jobs` at a time; `None`
    where one episode runs after the other."""
    if isinstance(executor, str):
        return executor_of(executor)
    if executor is not None:
        return contextlib.nullcontext(executor)
    return contextlib.nullcontext() if jobs is None or jobs <= 1 else thread_pool(jobs)


def thread_pool(workers: int) -> Executor:
    """Threads for episodes."""
    return ThreadPoolExecutor(workers, thread_name_prefix="episode")


def _number(where: str, given: str) -> int:
    if not given:
        return os.cpu_count() or 1
    if not given.isdecimal() or int(given) < 1:
        raise StudyError(f"{where!r} needs a number of workers, 1 or more, as in {where.partition(':')[0]}:4")
    return int(given)


def _dask(where: str, rest: str) -> AbstractContextManager[Executor]:
    try:
        from rlm_loop.study.run.dask_cluster import joined_cluster, local_cluster
    except ImportError as error:
        raise StudyError(f"{where!r} needs Dask: {install_line('dask')}") from error
    return joined_cluster(rest) if rest and not rest.isdecimal() else local_cluster(_number(where, rest))


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
    slots = cast("Callable[[], int] | None", getattr(executor, "slots", None))  # of a user's own
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
