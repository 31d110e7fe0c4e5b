"""Worker processes that do not go down together."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext
from typing import Any

from rlm_loop.study.errors import StudyError
from rlm_loop.study.run.jobs import take_over

BREAKING = (BrokenExecutor, OSError)
"""What `submit` of a process pool raises when a worker has died.  OSError ("handle is closed"): in the moment between
the death and the pool's own note of it, its pipe is closed already (Python 3.11 to 3.13)."""


class SeparateProcesses(Executor):
    """`workers` processes, each a `ProcessPoolExecutor` of one, and each with a thread here that waits for it.

    A pool of several is broken as a whole by the death of one worker, and does not say whose call it was.  Here the
    call that ran in a process that died gets `BrokenProcessPool`, all others go on, and a new process takes the place.
    Calls beyond `workers` wait here.  Processes are new ones (not forked copies of this one: threads, sessions and
    sockets would be copied with it), and end when this process does, however it ends.

    A pool is only called from the thread that owns it, never from a callback of its futures: a pool that breaks makes
    these with its lock held (Python 3.12.1 and later), so that calling it from there would wait for ever.
    """

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise ValueError(f"processes is a number of processes, 1 or more, not {workers}")
        self.workers = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="process")
        self._mine = threading.local()
        self._pools: list[ProcessPoolExecutor] = []
        self._lock = threading.Lock()
        self._killed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._threads.submit(self._call, fn, args, kwargs)

    def _call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            inner = self._begin(fn, args, kwargs)
        except BREAKING:  # the process died while idle: the call has not begun
            self._drop()
            inner = self._begin(fn, args, kwargs)
        try:
            return inner.result()
        except BrokenExecutor:
            self._drop()
            raise

    def _begin(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[Any]:
        with self._lock:  # no process is started behind the back of `kill`
            if self._killed:
                raise BrokenProcessPool("the processes were ended")
            if not hasattr(self._mine, "pool"):
                self._mine.pool = ProcessPoolExecutor(1, _context(), _set_up, (dict(os.environ), os.getcwd()))
                self._pools.append(self._mine.pool)
            return self._mine.pool.submit(fn, *args, **kwargs)

    def _drop(self) -> None:
        pool = self._mine.__dict__.pop("pool", None)
        if pool is not None:
            with self._lock, contextlib.suppress(ValueError):
                self._pools.remove(pool)
            pool.shutdown(wait=False)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        with self._lock:
            pools, self._pools = self._pools, []
        for pool in pools if wait else ():  # else each ends with the thread that owns it
            pool.shutdown()

    def kill(self) -> None:
        """End the processes now, with what they run; what was waiting is cancelled."""
        with self._lock:
            self._killed = True
            running = [p for pool in self._pools for p in (pool._processes or {}).values()]  # public only in 3.14
        for process in running:
            process.kill()
        self.shutdown(wait=False, cancel_futures=True)


def _context() -> BaseContext:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rlm_loop.study.run.jobs", "rlm_loop.agents"])
    return context


def _set_up(environ: dict[str, str], folder: str) -> None:
    """The first thing that a worker process does."""
    take_over(environ, folder)
    signal.signal(signal.SIGINT, unheard)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()


def unheard(*_: object) -> None:
    """Ctrl-C reaches all processes of a terminal, and is for the one that runs the study.

    It is not ignored (`SIG_IGN`): sessions would inherit that, and their cells could not be interrupted any more.
    """


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def open_processes(workers: int) -> SeparateProcesses:
    """Started processes.  Raises `StudyError` where they cannot start."""
    executor = SeparateProcesses(workers)
    try:
        executor.submit(os.getpid).result()
    except BrokenProcessPool as error:
        executor.shutdown(wait=False)
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        raise StudyError(
            "worker processes cannot start; run the study of a script under `if __name__ == '__main__':`, since they "
            f"import {os.path.basename(main) if main else 'it'} anew"
        ) from error
    return executor
