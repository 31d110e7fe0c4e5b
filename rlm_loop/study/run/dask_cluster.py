"""A Dask cluster as the place where episodes run: one on this machine, or one that is there."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Generator
from concurrent.futures import Executor
from typing import Any

from dask.config import set as configured
from distributed import Client, LocalCluster, Worker, WorkerPlugin

from rlm_loop.study.errors import StudyError
from rlm_loop.study.run.processes import unheard

#: Seconds that a scheduler is waited for.
PATIENCE = 10.0


class Deaf(WorkerPlugin):
    """Worker processes of this terminal do not end on Ctrl-C: it is for the study, which waits for what they run."""

    name = "rlm-loop-deaf"

    def setup(self, worker: Worker) -> None:
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGINT, unheard)


@contextlib.contextmanager
def local_cluster(workers: int) -> Generator[Executor]:
    """A cluster on this machine of so many processes, each with one episode at a time.

    A worker that dies is replaced.  The episode that it ran is not tried again behind the study's back, and no other
    was waiting in that process to be lost with it.
    """
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.scheduler.worker-saturation": 1.0}
    options: dict[str, Any] = {
        "n_workers": workers,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",  # `None` would take port 8787, which another study may have
        "scheduler_kwargs": {"dashboard": False},
        "silence_logs": logging.CRITICAL,
    }
    with configured(settings), LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        client.register_plugin(Deaf())
        with client.get_executor() as executor:
            yield executor


@contextlib.contextmanager
def joined_cluster(address: str) -> Generator[Executor]:
    """A cluster that is there, by the scheduler's address or its file.  Raises `StudyError` if none answers."""
    is_file = address.endswith(".json")
    if is_file and not os.path.exists(address):
        raise StudyError(
            f"there is no scheduler file {address}; `dask scheduler --scheduler-file {address}` writes one"
        )
    found: dict[str, Any] = {"scheduler_file": address} if is_file else {"address": address}
    try:
        client = Client(**found, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyError(
            f"no Dask scheduler answers at {address}; start one (`dask scheduler`), or give its address or file"
        ) from error
    with client, client.get_executor() as executor:
        yield executor
