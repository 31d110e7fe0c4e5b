"""Cases that have a host process of their own: which, and how they run beside those in this process."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from experiments.robustness.suite import CaseResult, CellCase, Forks, Kind, ReplyCase, run_apart
from experiments.robustness.suite.__main__ import host_command
from experiments.robustness.suite.runner import not_applicable


def has_a_host(opened: Kind, case: CellCase | ReplyCase) -> bool:
    """Whether a case cannot be run in this process, or needs a session that nobody else uses."""
    if isinstance(case, ReplyCase) or not_applicable(case, opened.features):
        return False
    around = case.host_killed or bool(case.after) or case.theme.startswith("isolation") or case.seconds < 10
    return around or case.fresh or (case.apart and "process" not in opened.features)


class Beside:
    """Runs cases in hosts of their own, in threads; `verdict` waits for one."""

    def __init__(self, pool: ThreadPoolExecutor, stack: ExitStack) -> None:
        self._pool, self._stack, self._own = pool, stack, threading.local()
        self._futures: dict[tuple[str, str], Future[CaseResult]] = {}

    def begin(self, opened: Kind, case: Any) -> None:
        self._futures[opened.name, case.name] = self._pool.submit(self._run, opened, case)

    def verdict(self, opened: Kind, case: Any) -> CaseResult:
        return self._futures[opened.name, case.name].result()

    def _run(self, opened: Kind, case: Any) -> CaseResult:
        command = host_command(opened.name)
        forks: dict[str, Forks] = self._own.__dict__
        if opened.name not in forks:
            forks[opened.name] = self._stack.enter_context(Forks(command))
        return run_apart(command, case, kind=opened.name, forks=forks[opened.name])
