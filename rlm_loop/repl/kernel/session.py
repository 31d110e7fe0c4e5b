"""`KernelREPL`: cells in a Jupyter kernel."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.launch import Launch, worker_environment
from rlm_loop.repl.process_session import ProcessSession
from rlm_loop.repl.settings import Settings

# One long request, before the kernel listens to any other: the worker's own loop, on the worker's own socket.
_BEGIN = (
    "import sys, types; package = sys.modules['_rlm_loop'] = types.ModuleType('_rlm_loop'); "
    "package.__path__ = [{folder!r}]; from _rlm_loop.kernel.side import serve; serve({options!r})"
)


class KernelREPL(ProcessSession):
    """A `PythonREPL` whose cells run in a Jupyter kernel, for what IPython adds: `%magic`, `!command`, `display`,
    and rich outputs (PNG, HTML ...), which are kept in `CellResult.displays`.

    `kernel` is the name of a kernelspec (`jupyter kernelspec list`) for Python that is based on IPython; it may be of
    another environment and another Python (3.8 or newer).  The rest is as for `PythonREPL`, and so are the
    guarantees, but for these:

    - It starts in about half a second instead of 25 ms.
    - It has no launcher: a kernel runs as its kernelspec says, so there is no sandbox.  The environment is cut down
      to the same allow-list, the IPython profile is an empty one, `limits` hold.

    Needs `pip install -e ".[kernel]"`; `ReplError` says so where it is missing, or where there is no such kernel.
    """

    def __init__(self, kernel: str = "python3", **settings: Any) -> None:
        self.kernel = kernel
        super().__init__(Settings(**settings), partial(_launched, kernel), "kernel")


def _launched(kernel: str, options: Mapping[str, Any]) -> Launch:
    """Return the command of a kernel that serves the session instead of Jupyter's clients."""
    spec = _spec(kernel)
    home = Path(options["home"])
    folder = home / f"kernel-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    ports = {f"{name}_port": n for n, name in enumerate(("shell", "iopub", "stdin", "control", "hb"), 1)}
    # Its sockets are files of this folder, so that no port is opened; nobody connects to them.
    connection = {"transport": "ipc", "ip": str(folder / "ipc"), "key": secrets.token_hex(32), **ports}
    connection["signature_scheme"] = "hmac-sha256"
    (folder / "kernel.json").write_text(json.dumps(connection), "utf-8")
    path = home / "socket"
    given = {**options, "socket": str(path)}
    names = {"connection_file": str(folder / "kernel.json"), "prefix": sys.prefix, "resource_dir": spec.resource_dir}
    argv = [str(word).format(**names) for word in spec.argv]
    if argv[0] in ("python", "python3"):
        argv[0] = sys.executable
    code = f"exec({_BEGIN.format(folder=str(Path(__file__).parents[1]), options=given)!r}, {{}})"
    environment = {**worker_environment(), "IPYTHONDIR": str(home / "ipython"), **spec.env}  # an empty profile
    return Launch((*argv, f"--IPKernelApp.exec_lines={code}"), environment, "kernel", connects_to=path)


def _spec(name: str) -> Any:
    """Return the kernelspec of that name; `ReplError` where there is none for Python, or Jupyter is missing."""
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
    return spec
