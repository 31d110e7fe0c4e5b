"""`KernelREPL`: cells in a Jupyter kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.repl.host.launch import worker_environment
from rlm_loop.repl.host.process import Running
from rlm_loop.repl.host.worker_lifecycle import WorkerLifecycle
from rlm_loop.repl.journaled import JournaledSession
from rlm_loop.repl.kernel.bridge import KernelBridge
from rlm_loop.repl.kernel.process import check_kernel
from rlm_loop.repl.settings import Limits, Settings

_START = 120.0  # seconds for a kernel to be ready


class KernelREPL(JournaledSession):
    """A `PythonREPL` whose cells run in a Jupyter kernel, for what IPython adds: `%magic`, `!command`, `display`,
    and rich outputs (PNG, HTML ...), which are kept in `CellResult.displays`.

    `kernel` is the name of a kernelspec (`jupyter kernelspec list`) for Python that is based on IPython; it may be of
    another environment and another Python (3.8 or newer).  The rest is as for `PythonREPL`, and so are the
    guarantees, but for these:

    - It starts in about half a second instead of 25 ms, and takes milliseconds for a cell.
    - It has no launcher: a kernel runs as its kernelspec says, so there is no sandbox.  The environment is cut down
      to the same allow-list, the IPython profile is an empty one, `limits` hold.
    - When the kernel crashes (not when it is stopped or closed) processes that cells had moved into a session of
      their own (`setsid`) may outlive it; without `/proc` (macOS) they may in any case.

    Needs `pip install -e ".[kernel]"`; `ReplError` says so where it is missing, or where there is no such kernel.
    """

    isolation = "kernel"

    def __init__(
        self,
        kernel: str = "python3",
        *,
        cwd: Path | str | None = None,
        files: Mapping[str, str | bytes] | None = None,
        setup: str = "",
        timeout: float = 60.0,
        grace: float = 2.0,
        output_cap: int = 65_536,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        rebuild: bool = True,
    ) -> None:
        self.kernel = kernel
        settings = Settings(cwd, files or {}, setup, timeout, grace, output_cap, limits or Limits(), clock, rebuild)
        super().__init__(_lifecycle(kernel, settings))


def _lifecycle(kernel: str, settings: Settings) -> WorkerLifecycle:
    bridges: list[KernelBridge] = []  # at most one: the latest

    def start(options: Mapping[str, Any], cwd: Path, log: Path) -> Running:
        check_kernel(kernel)
        environment = kernel_environment(Path(options["home"]) / "ipython")
        bridge = KernelBridge(kernel, options, cwd, log, environment)
        bridges[:] = [bridge]
        try:
            bridge.ready.wait(_START)
        except BaseException:
            bridge.kill(None)
            bridge.release()
            raise
        return bridge

    def until_ready() -> None:  # a replaced kernel's start is not the next cell's time
        if bridges:
            bridges[0].ready.wait(_START)

    return WorkerLifecycle(settings, start, until_ready)


def kernel_environment(profile: Path) -> dict[str, str]:
    """The environment of a worker, with an empty IPython profile."""
    return {**worker_environment(), "IPYTHONDIR": str(profile)}
