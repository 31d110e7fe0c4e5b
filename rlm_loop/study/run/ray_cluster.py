"""Ray as the place where episodes run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future
from typing import Any

import ray  # pyright: ignore[reportMissingImports]

from rlm_loop.study.errors import StudyError


class RayExecutor(Executor):
    """Calls as Ray tasks of one core each; one whose worker is lost is not tried again.

    Ray has to be initialised (`ray.init`).  It has no executor of its own; its futures are those of the standard
    library, which is all that is used here.
    """

    def __init__(self) -> None:
        self._remote: dict[Any, Any] = {}

    def slots(self) -> float:
        """How many calls to have under way: two for each core of the cluster."""
        return 2 * float(ray.cluster_resources().get("CPU", 1))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if fn not in self._remote:
            self._remote[fn] = ray.remote(num_cpus=1, max_retries=0)(fn)
        return self._remote[fn].remote(*args, **kwargs).future()


@contextlib.contextmanager
def ray_cluster(address: str | None) -> Generator[Executor]:
    """Ray on this machine, or the cluster at an address.  Raises `StudyError` if none answers."""
    here: dict[str, Any] = {"include_dashboard": False} if address is None else {"address": address}
    try:
        ray.init(log_to_driver=False, **here)
    except Exception as error:  # of any class: that a node did not start in time is a bare `Exception`
        reason = next(iter(str(error).splitlines()), type(error).__name__)[:200]
        where = "Ray does not start here" if address is None else f"no Ray cluster answers at {address}"
        raise StudyError(f"{where} ({reason}); start one (`ray start --head`) and give its address") from error
    try:
        yield RayExecutor()
    finally:
        ray.shutdown()
