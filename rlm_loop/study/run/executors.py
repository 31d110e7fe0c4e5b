"""Where episodes run, by name: threads, processes, a Dask cluster, Ray.  Each is a `concurrent.futures.Executor`.

>>> with executor_of("processes:2") as executor:                                   # doctest: +SKIP
...     study.run("runs/mine", executor=executor)
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager

from rlm_loop.hints.install import install_line
from rlm_loop.study.errors import StudyError
from rlm_loop.study.run.processes import open_processes

#: What `executor_of` takes, for help texts.
EXECUTORS = "threads:N, processes:N, dask[:N], dask:ADDRESS (tcp://... or a scheduler file), ray[:ADDRESS]"


@contextlib.contextmanager
def executor_of(where: str) -> Generator[Executor]:
    """An executor by name, ended with the block.

    `threads:8` are threads of this process (one for each core where no number is given): right for models behind an
    address, which are waited for.  `processes:2` are worker processes on this machine, right where the harness itself
    is the work.  `dask` is a Dask cluster on this machine of one process for each core (`dask:4`: of four), and
    `dask:tcp://host:8786` or `dask:scheduler.json` one that is running; `ray` starts Ray here, and `ray:ADDRESS` joins
    one.  Workers need the same rlm-loop, not the study's folder.

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
    elif kind == "ray":
        opened = _ray(where, rest)
    else:
        raise StudyError(f"there is no executor {where!r}; there are {EXECUTORS}")
    with opened as executor:
        yield executor


def hosted(executor: str | Executor | None, jobs: int | None) -> AbstractContextManager[Executor | None]:
    """What a study runs on: an executor by name, one that is there (left open), or threads for `jobs` at a time; `None`
    where one cell runs after the other."""
    if isinstance(executor, str):
        return executor_of(executor)
    if executor is not None:
        return contextlib.nullcontext(executor)
    return contextlib.nullcontext() if jobs is None or jobs <= 1 else thread_pool(jobs)


def thread_pool(workers: int) -> Executor:
    """Threads for episodes."""
    return ThreadPoolExecutor(workers, thread_name_prefix="cell")


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


def _ray(where: str, rest: str) -> AbstractContextManager[Executor]:
    try:
        from rlm_loop.study.run.ray_cluster import ray_cluster
    except ImportError as error:
        raise StudyError(f"{where!r} needs Ray: {install_line('ray')}") from error
    return ray_cluster(where if rest.startswith("//") else rest or None)
