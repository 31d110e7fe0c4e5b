"""Cells in a container: any image with a Python 3.8 or newer, through podman or docker.  Nothing is pulled."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.launch import TEMPORARY, Launch, Options, folders
from rlm_loop.repl.isolation import seccomp
from rlm_loop.repl.isolation.ordinary_user import cell_user
from rlm_loop.repl.isolation.readable import HARDEN, THE_WORKER, Script

_SCRIPT, _HARDEN = "/rlm-loop-script.py", "/rlm-loop-harden.py"
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")  # engines pass them on; they hold keys
_ENVIRONMENT = {
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    "PYTHONHASHSEED": "0",
    "PYTHONIOENCODING": "utf-8",
    **dict.fromkeys([*_PROXIES, *(p.upper() for p in _PROXIES)], ""),
}


@dataclass(frozen=True)
class Container:
    """A launcher: the worker in a container made from `image`, which has to be there already.

    Cells see the image, read-only, the working folder, the folders in `read`, and a `/tmp` of 512 MiB in
    memory.  No network, no capabilities, never root.  `python` is the image's interpreter (`PythonREPL`'s own option
    of that name means the host's, and is not used); `engine` is found if not named; `options` are more words for
    its `run`, such as `--cpus=1`.  Memory and number of processes follow the session's `Limits`.
    """

    image: str
    python: str = "python3"
    engine: str = ""
    read: Sequence[str | Path] = ()
    options: Sequence[str] = ()
    kind = "container"

    def problem(self, _python: str = "") -> str:
        """Return why this launcher does not work here, in one line; an empty string where it does."""
        try:
            engine = self._engine()
        except ReplError as e:
            return str(e)
        argv = [engine, "image", "inspect", "--format", "{{.Id}}", self.image]
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return f"{Path(engine).name} has no image {self.image!r}: pull or import it first ({reason})"
        return ""

    def __call__(self, _python: str, options: Options, run: Script = THE_WORKER) -> Launch:
        """Raises `ReplError` where no engine is found; an image that is missing ends the start with its message."""
        engine, name = self._engine(), f"rlm-loop-{uuid.uuid4().hex[:12]}"
        podman = Path(engine).name.startswith("podman")
        cwd, home = folders(options)
        user = cell_user(cwd, home)
        argv = ["env", "-u", "RLM_LOOP_HOME", engine, "run"]  # else the engine's own processes would count as a cell's
        argv += ["--interactive", "--rm", "--name", name, "--pull", "never"]
        argv += ["--network", "none", "--read-only", "--cap-drop=all", "--security-opt", "no-new-privileges"]
        argv += ["--security-opt", "label=disable", *_resources(options.get("limits", {}))]
        argv += ["--user", "{}:{}".format(*(user or (os.getuid(), os.getgid())))]
        if podman:
            argv += ["--http-proxy=false", *(["--userns=keep-id"] if user is None else [])]
        argv += ["--tmpfs", f"/tmp:size={TEMPORARY},mode=1777"]
        for variable in {**_ENVIRONMENT, **(run.env or {})}.items():
            argv += ["--env", "=".join(variable)]
        readable = {p: p for p in (home, *(Path(folder).absolute() for folder in self.read))}
        for inside, source in {_HARDEN: HARDEN, _SCRIPT: run.file, **readable}.items():
            argv += ["--mount", f"type=bind,source={source},target={inside},readonly"]
        argv += ["--mount", f"type=bind,source={cwd},target={cwd}", "--workdir", str(cwd)]
        # The engine's own filter has a hole or two, by its version: AF_VSOCK leads to the host of a virtual machine.
        rights = json.dumps({"filter": seccomp.for_this_machine(alone=True).hex()})
        socket = home / "socket"  # an engine passes bytes on, and no descriptors
        arguments = run.arguments({**options, "socket": str(socket)})
        command = (*argv, *self.options, self.image, self.python, *run.flags, _HARDEN, rights, _SCRIPT, *arguments)
        # What removes the container of a client that was killed; podman would wait ten seconds for it first.
        remove = [engine, "rm", "--force", *(["--time", "0"] if podman else []), name]
        cleanup = partial(subprocess.run, remove, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        # The environment is that of the engine's client, which needs to find its own files; none of it gets inside.
        return Launch(command, dict(os.environ), self.kind, cleanup=cleanup, connects_to=socket)

    def _engine(self) -> str:
        found = engine() if not self.engine else shutil.which(self.engine)
        if found is None:
            raise ReplError(f"{self.engine or 'podman or docker'} is not installed: apt-get install podman")
        return found


def engine() -> str | None:
    """The path of podman or, without it, of docker."""
    return shutil.which("podman") or shutil.which("docker")


def _resources(limits: dict[str, int]) -> list[str]:
    """Always both ulimits: without them an engine asks for more than a confined root may have, and fails."""
    argv: list[str] = []
    wanted = {"nofile": 4096, "nproc": limits.get("processes", 4096) + 64}
    for name, most in wanted.items():
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
        number = most if hard == resource.RLIM_INFINITY else min(most, hard)
        argv += ["--ulimit", f"{name}={number}:{number}"]
    if "memory" in limits:  # the worker's own limit, without what several processes and /tmp take together
        argv += ["--memory", str(limits["memory"] + (64 << 20))]
    if "processes" in limits:
        argv += ["--pids-limit", str(limits["processes"] + 8)]  # the REPL, its parent, and the engine's own
    return argv
