"""A Jupyter kernel behind the worker's protocol: this thread is to a kernel what the supervisor is to a worker.

The host sends the frames and control lines of `worker.py` and gets the same frames back, so limits, restarts, tools
and answers of a kernel session are those of `PythonREPL`, by the same code.  Two ways lead to the kernel:

- Jupyter's own channels carry what they are for: requests to execute, interrupts, rich outputs.
- A unix socket carries the frames: jobs, calls of host tools and their replies, and the descriptor of each cell's
  output pipe.  The stdin channel would do for calls, but only for one at a time and only from the main thread; a
  comm's replies are not read while a cell runs; and output that ipykernel reads from descriptor 1 comes in another
  order than it was written.  The socket lies in the session's private folder, and whoever connects has to know a
  random key.

A kernel that ended is replaced, and the host is told by a `died` frame, as with a worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlm_loop.repl.kernel.process import Kernel, kill_tree
from rlm_loop.repl.kernel.traffic import Host, Traffic


class KernelBridge:
    """The thread and its pipes to the host; what `process.Running` says of a worker.

    `ready` is set while the kernel can run cells, and when the thread has ended.
    """

    def __init__(self, name: str, options: Mapping[str, Any], cwd: Path, log: Path, env: Mapping[str, str]) -> None:
        self._name, self._cwd, self._log, self._env = name, cwd, log, env
        self._options, self._home = dict(options), Path(options["home"])
        self.line: socket.socket | None = None
        self._input, self.stdin = os.pipe()
        self.stdout, self._output = os.pipe()
        self._host = Host(self._input, self._tell)
        self.ready = self._host.ready
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"kernel {name}")
        self._thread.start()

    # -- for the host's threads

    def wait(self, seconds: float) -> int | None:
        self._thread.join(seconds)
        return None if self._thread.is_alive() else 0

    def kill(self, repl_pid: int | None) -> None:
        for pid in {self._host.kernel_pid, repl_pid}:
            if pid is not None and self._thread.is_alive():  # else it is gone, and its number may be another's
                kill_tree(pid)
        self._thread.join(10)

    def release(self) -> None:
        os.close(self.stdin)
        os.close(self.stdout)

    # -- the thread

    def _run(self) -> None:
        traffic: Traffic | None = None
        try:
            import zmq

            traffic = Traffic(self._start, self._name, self._home, self._options, self._host, zmq.Poller())
            traffic.serve()
        except Exception as e:  # the host sees the stream end, and reads the reason in the log
            with contextlib.suppress(OSError), self._log.open("a", encoding="utf-8") as log:
                log.write(f"\n{type(e).__name__}: {e}\n")
        finally:
            if traffic is not None:
                traffic.end()
            _close_loop()
            self.ready.set()
            os.close(self._input)
            os.close(self._output)

    def _start(self, folder: Path) -> Kernel:
        return Kernel(self._name, folder, self._cwd, self._env, self._log)

    def _tell(self, frame: Mapping[str, Any]) -> None:
        data = memoryview(json.dumps(frame, separators=(",", ":")).encode() + b"\n")
        while data:
            data = data[os.write(self._output, data) :]


def _close_loop() -> None:
    """The event loop that jupyter_client made for this thread."""
    from jupyter_core.utils import ensure_event_loop

    ensure_event_loop().close()
