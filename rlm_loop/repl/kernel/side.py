"""What runs inside a Jupyter kernel: the worker's own REPL, with what IPython adds to it.

The kernel imports this file and `worker.py` by their folder, not the package (see `traffic.BOOTSTRAP`): it may
run another Python, 3.8 or newer, with none of our dependencies.  Hence the relative import and the old syntax.
"""

from __future__ import annotations

import asyncio
import builtins
import os
import signal
import socket
import sys

from ..worker import (
    CANNOT_GO_ON,
    RICH,
    Interrupts,
    Link,
    Repl,
    _be_modest,  # pyright: ignore[reportPrivateUsage]
    _limit,  # pyright: ignore[reportPrivateUsage]
    _prctl,  # pyright: ignore[reportPrivateUsage]
    leave,
    no_input,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class KernelRepl(Repl):
    """The REPL of a kernel: `serve_one` is what an execute request asks for, and one request is one job.

    Cells are run by the worker's REPL and not by `run_cell`, so that errors, output, answers and interrupts are the
    same as in a process of ours.  IPython supplies its syntax (`%magic`, `!command`), `display` and rich forms.
    """

    def __init__(self, shell: Any, link: Link, cap: int) -> None:
        super().__init__(link, cap)
        self.shell = shell
        shell.user_module, shell.user_ns = self.module, self.names  # what magics and `get_ipython()` work on
        shell.system = shell.system_raw  # `!command` writes to the cell's pipe; a terminal of its own would colour it
        shell.display_pub.publish = self.displays.publish
        by_methods = self.displays.bundle
        formats = shell.display_formatter.format
        self.displays.bundle = lambda value: by_methods(value) or formats(value, include=RICH)[0]

    def serve_one(self, number: int) -> None:
        """Perform the job of that number.  Those before it were given up by the host."""
        signal.signal(signal.SIGINT, self.interrupts.on_signal)  # the kernel sets its own before every request
        job = self.link.next_job()
        while job["id"] != number:
            job = self.link.next_job()
        # The kernel's event loop waits for this request anyhow.  Without it `await` and `asyncio.run` work in cells.
        loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            report = self.perform(job)
            if job["t"] in ("exec", "eval"):
                self._restore_streams()
        except BaseException:  # as in the worker: our own code cannot go on, so another process has to
            os._exit(CANNOT_GO_ON)
        finally:
            asyncio._set_running_loop(loop)
            if loop is not None:
                asyncio.set_event_loop(loop)
        if os.getpid() != self.link.pid:
            os._exit(0)  # a child that the cell forked fell off the end of the cell
        self.link.send({"t": "done", "g": self.link.generation, "id": number, **report})

    def _restore_streams(self) -> None:
        """A cell may have replaced or closed the streams, and the kernel flushes them after the request."""
        if self.output.stdout is None:
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the next cell
        else:
            self.output.reset()

    def perform(self, job: dict[str, Any]) -> dict[str, Any]:
        # IPython hides or replaces these while it runs a request
        builtins.exit, builtins.quit, builtins.input = leave, leave, no_input  # type: ignore[assignment]
        return super().perform(job)

    def _job_exec(self, job: dict[str, Any], report: dict[str, Any]) -> None:
        super()._job_exec({**job, "code": self._python(job["code"])}, report)

    def _python(self, code: str) -> str:
        """The cell as Python, where it is written in IPython's syntax."""
        try:
            compile(code, "<cell>", "exec", self.flags, dont_inherit=True)
        except SyntaxError:
            transformed: str = self.shell.transform_cell(code)
            return code if transformed.strip() == code.strip() else transformed
        except Exception:
            pass  # what is wrong with it is told when it is run
        return code


def begin(path: str, key: str, generation: int, options: dict[str, Any]) -> KernelRepl:
    """Connect to the host and take over the namespace; called once, by the first request."""
    from IPython.core.getipython import get_ipython  # pyright: ignore[reportMissingImports]

    shell: Any = get_ipython()
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    sock.sendall(key.encode() + b"\n")
    _be_modest()
    _limit(options.get("limits", {}))
    prctl = _prctl()
    if prctl:
        prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: daemons that cells leave stay below us, where they are found
        prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # As in the worker: files of the working folder can be imported, but never hide the library's.
    sys.path[:] = [p for p in sys.path if p not in ("", os.getcwd())] + [os.getcwd()]
    del sys.argv[1:]
    link = Link(sock, generation, Interrupts())
    repl = KernelRepl(shell, link, int(options["cap"]))
    python = sys.version.split()[0]
    link.send({"t": "hello", "g": generation, "pid": os.getpid(), "python": python})
    return repl
