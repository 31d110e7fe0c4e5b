"""`KernelREPL`: cells in a Jupyter kernel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.repl.driver import Driver
from rlm_loop.repl.kernel_bridge import KernelBridge
from rlm_loop.repl.kernel_process import check_kernel
from rlm_loop.repl.launch import worker_environment
from rlm_loop.repl.limits import Limits
from rlm_loop.repl.process import Running, Starter
from rlm_loop.repl.session import PythonREPL

_START = 120.0  # seconds for a kernel to be ready


class KernelREPL(PythonREPL):
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

    Needs `pip install 'rlm-loop[kernel]'`; `ReplError` says so where it is missing, or where there is no such kernel.
    """

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
        super().__init__(
            cwd=cwd,
            files=files,
            setup=setup,
            timeout=timeout,
            grace=grace,
            output_cap=output_cap,
            limits=limits,
            clock=clock,
            rebuild=rebuild,
        )
        self.kernel = kernel
        self._bridges: list[KernelBridge] = []  # at most one: the latest

    @property
    def isolation(self) -> str:
        """What kind of process the cells run in."""
        return "kernel"

    def _another(self, cwd: Path | str | None) -> KernelREPL:
        return KernelREPL(
            self.kernel,
            cwd=cwd,
            files=self._files,
            setup=self._setup,
            timeout=self.timeout,
            grace=self.grace,
            output_cap=self.output_cap,
            limits=self._limits,
            clock=self._clock,
            rebuild=self._rebuilds,
        )

    def _starter(self) -> Starter:
        # The driver keeps the starter, so the starter must not keep the session, or it would never be collected.
        kernel, bridges, profile = self.kernel, self._bridges, self._owned.home() / "ipython"

        def start(options: Mapping[str, Any], cwd: Path, log: Path) -> Running:
            check_kernel(kernel)
            bridge = KernelBridge(kernel, options, cwd, log, kernel_environment(profile))
            bridges[:] = [bridge]
            try:
                bridge.ready.wait(_START)
            except BaseException:
                bridge.kill(None)
                bridge.release()
                raise
            return bridge

        return start

    def _make_ready(self, driver: Driver, seconds: float) -> None:
        if driver.worker is not None and self._bridges:
            self._bridges[0].ready.wait(_START)  # a replaced kernel's start is not the next cell's time
        super()._make_ready(driver, seconds)


def kernel_environment(profile: Path) -> dict[str, str]:
    """The environment of a worker, with the backend that makes Matplotlib's figures rich outputs."""
    env = worker_environment()
    if "MPLBACKEND" not in os.environ:
        env["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    return {**env, "IPYTHONDIR": str(profile)}
