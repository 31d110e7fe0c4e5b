"""Worker processes that do not go down together."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext
from typing import Any

from rlm_loop.study.errors import StudyError
from rlm_loop.study.jobs import take_over

_Call = tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class SeparateProcesses(Executor):
    """`workers` processes, each a `ProcessPoolExecutor` of one.

    A pool of several is broken as a whole by the death of one worker, and does not say whose call it was.  Here the
    call that ran in a process that died gets `BrokenProcessPool`, all others go on, and a new process takes the place.
    Calls beyond `workers` wait here.  Processes are new ones (not forked copies of this one: threads, sessions and
    sockets would be copied with it), and end when this process does, however it ends.
    """

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise ValueError(f"processes is a number of processes, 1 or more, not {workers}")
        self.workers = workers
        self._idle: list[ProcessPoolExecutor] = []
        self._pools: list[ProcessPoolExecutor] = []
        self._waiting: deque[_Call] = deque()
        self._lock = threading.RLock()
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._waiting.append((future, fn, args, kwargs))
        self._go_on()
        return future

    def _go_on(self) -> None:
        """Start waiting calls while there is a process for them."""
        while True:
            with self._lock:
                if not self._waiting or (not self._idle and len(self._pools) >= self.workers):
                    return
                future, fn, args, kwargs = self._waiting.popleft()
                if not future.set_running_or_notify_cancel():
                    continue
                pool = self._idle.pop() if self._idle else self._new()
            try:
                inner = pool.submit(fn, *args, **kwargs)
            except BrokenExecutor:  # it died while idle: the call has not begun, and is put first again
                self._drop(pool)
                again: Future[Any] = Future()
                again.add_done_callback(_into(future))
                with self._lock:
                    self._waiting.appendleft((again, fn, args, kwargs))
                continue
            inner.add_done_callback(lambda ended, pool=pool, future=future: self._ended(ended, pool, future))

    def _new(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(1, _context(), _begin, (dict(os.environ), os.getcwd()))
        self._pools.append(pool)
        return pool

    def _drop(self, pool: ProcessPoolExecutor) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._pools.remove(pool)
        pool.shutdown(wait=False)

    def _ended(self, inner: Future[Any], pool: ProcessPoolExecutor, future: Future[Any]) -> None:
        if inner.cancelled() or isinstance(inner.exception(), BrokenExecutor):
            self._drop(pool)
        else:
            with self._lock:
                self._idle.append(pool)
        self._go_on()  # before anyone hears of the result: the process need not wait for what they make of it
        _into(future)(inner)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            self._closed = True
            dropped = list(self._waiting) if cancel_futures else []
            if cancel_futures:
                self._waiting.clear()
        for future, *_ in dropped:
            future.cancel()
            future.set_running_or_notify_cancel()
        while wait:
            with self._lock:
                calls = [future for future, *_ in self._waiting]
            if not calls:
                break
            wait_for(calls)
        for pool in list(self._pools):
            pool.shutdown(wait=wait)

    def kill(self) -> None:
        """End the processes now, with what they run; what was waiting is cancelled."""
        with self._lock:
            self._closed = True
        for pool in list(self._pools):
            for process in list((pool._processes or {}).values()):  # no public way before Python 3.14
                process.kill()
        self.shutdown(wait=False, cancel_futures=True)


def _into(future: Future[Any]) -> Callable[[Future[Any]], None]:
    def settle(ended: Future[Any]) -> None:
        error = BrokenProcessPool("cancelled") if ended.cancelled() else ended.exception()
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(ended.result())

    return settle


def _context() -> BaseContext:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rlm_loop.study.jobs", "rlm_loop.agents"])
    return context


def _begin(environ: dict[str, str], folder: str) -> None:
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
