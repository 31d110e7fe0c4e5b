"""A Jupyter kernel as a process: started through `jupyter_client`, asked to execute, interrupted, killed.

Used by one thread only, the bridge's: neither ZeroMQ sockets nor the event loop that jupyter_client keeps for each
thread may be shared.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from rlm_loop.errors import install_line
from rlm_loop.repl.base import ReplError

_PATIENCE = 5.0  # seconds for a killed kernel to be gone


def check_kernel(name: str) -> None:
    """Raise `ReplError` unless there is a kernelspec of that name for Python, and what is needed to start it."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError as e:
        raise ReplError(f"kernel sessions need {e.name}: {install_line('kernel')}") from None
    manager = KernelSpecManager()
    try:
        spec = manager.get_kernel_spec(name)
    except NoSuchKernel:
        there = ", ".join(sorted(manager.find_kernel_specs())) or "none; pip install ipykernel"
        raise ReplError(f"there is no Jupyter kernel named {name!r}; there are: {there}") from None
    if str(spec.language).lower() != "python":
        raise ReplError(f"the kernel {name!r} runs {spec.language}; a session needs one for Python, based on IPython")


class Kernel:
    """One running kernel.  Its sockets are files in `folder`, which only the user may enter: no port is opened."""

    def __init__(self, name: str, folder: Path, cwd: Path, env: Mapping[str, str], log: Path) -> None:
        from jupyter_client.manager import KernelManager

        folder.mkdir(mode=0o700)
        self.manager: Any = KernelManager(
            kernel_name=name, transport="ipc", connection_file=str(folder / "kernel.json"), ip=str(folder / "ipc")
        )
        with log.open("ab") as err:
            self.manager.start_kernel(cwd=str(cwd), env=dict(env), stdout=subprocess.DEVNULL, stderr=err)
        self.shell: Any = self.manager.connect_shell()
        self.iopub: Any = self.manager.connect_iopub()
        self.process: Any = self.manager.provisioner.process

    @property
    def pid(self) -> int | None:
        pid = getattr(self.process, "pid", None)
        return pid if isinstance(pid, int) else None

    def execute(self, code: str) -> str:
        """Ask for a piece of code, without an echo or history; the id of the request."""
        content = {
            "code": code,
            "silent": True,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        return self._send("execute_request", content)

    def ask_for_info(self) -> str:
        """Make the kernel say something on all of its channels."""
        return self._send("kernel_info_request", {})

    def _send(self, kind: str, content: Mapping[str, Any]) -> str:
        return str(self.manager.session.send(self.shell, kind, content)["header"]["msg_id"])

    def receive(self, channel: Any) -> dict[str, Any] | None:
        """The next message of a channel, if there is one."""
        try:
            _, message = self.manager.session.recv(channel)
        except ValueError:  # a signature that is not the kernel's
            return None
        return cast("dict[str, Any] | None", message)

    def ended(self) -> bool:
        return not self.manager.is_alive()

    def interrupt(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # it has ended
            self.manager.interrupt_kernel()

    def kill(self) -> None:
        """End the kernel and whatever it started."""
        if self.pid is not None:
            kill_tree(self.pid)
        else:  # not a process of this machine
            self.manager.shutdown_kernel(now=True)

    def exit_status(self) -> int | None:
        """How it ended, once it was killed: as `subprocess.Popen.returncode`."""
        if self.pid is None:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return int(self.process.wait(_PATIENCE))
        return None

    def release(self) -> None:
        """Close what belongs to a kernel that has ended."""
        for channel in (self.shell, self.iopub):
            channel.close(linger=0)
        with contextlib.suppress(OSError, RuntimeError):
            self.manager.shutdown_kernel(now=True)
        self.manager.context.destroy(linger=0)


def kill_tree(pid: int) -> None:
    """Kill a process, its group, and its descendants (on Linux: also those in groups and sessions of their own)."""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGSTOP)  # it must not start more meanwhile
    found = _descendants(pid)
    for target in (pid, *found):
        with contextlib.suppress(OSError):
            if os.getpgid(target) == target:
                os.killpg(target, signal.SIGKILL)
            else:
                os.kill(target, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        with contextlib.suppress(OSError, ValueError):
            for task in os.listdir(f"/proc/{parent}/task"):
                text = Path(f"/proc/{parent}/task/{task}/children").read_text()
                children = [int(p) for p in text.split()]
                found += children
                waiting += children
    return found
