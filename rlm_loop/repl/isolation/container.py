"""Cells in a container: any image with a Python 3.8 or newer, through podman or docker.  Nothing is pulled."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.launch import WORKER, Launch, folders
from rlm_loop.repl.isolation import seccomp
from rlm_loop.repl.isolation.ordinary_user import cell_user
from rlm_loop.repl.isolation.readable import HARDEN

_INSIDE, _HARDEN = "/rlm-loop-worker.py", "/rlm-loop-harden.py"
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")  # engines pass them on; they hold keys


@dataclass(frozen=True)
class Container:
    """A launcher: the worker in a container made from `image`, which has to be there already.

    Cells see the image, read-only, the working folder, the folders in `read`, and a `/tmp` of `temporary` bytes in
    memory.  No network, no capabilities, never root.  `python` is the image's interpreter (`PythonREPL`'s own option
    of that name means the host's, and is not used); `engine` is found if not named; `options` are more words for
    its `run`, such as `--cpus=1`.  Memory and number of processes follow the session's `Limits`.
    """

    image: str
    python: str = "python3"
    engine: str = ""
    read: tuple[str | Path, ...] = ()
    options: tuple[str, ...] = ()
    temporary: int = 512 << 20
    kind = "container"

    def problem(self, python: str) -> str:
        """Return why this launcher does not work here, in one line; an empty string where it does."""
        del python
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

    def __call__(self, python: str, options: str) -> Launch:
        """Raises `ReplError` where no engine is found; an image that is missing ends the start with its message."""
        del python
        argv, environment, cleanup = self.command(options, [(WORKER, _INSIDE), (HARDEN, _HARDEN)])
        # The engine's own filter has a hole or two, by its version: AF_VSOCK leads to the host of a virtual machine.
        rights = json.dumps({"filter": seccomp.for_this_machine(shares="nothing").hex()})
        path = folders(options)[1] / "socket"  # an engine passes bytes on, and no descriptors
        options = json.dumps({**json.loads(options), "socket": str(path)})
        command = (*argv, self.python, "-u", _HARDEN, rights, _INSIDE, options)
        return Launch(command, environment, self.kind, cleanup=cleanup, connects_to=path)

    def command(
        self, options: str, scripts: list[tuple[Path, str]]
    ) -> tuple[list[str], dict[str, str], Callable[[], None]]:
        """Everything before the program that is to be run, with its environment and what removes the container.

        `scripts` are files with their places inside.  Raises `ReplError` where no engine is found.
        """
        engine = self._engine()
        cwd, home = folders(options)
        limits = json.loads(options).get("limits", {})
        name = f"rlm-loop-{uuid.uuid4().hex[:12]}"
        argv = ["env", "-u", "RLM_LOOP_HOME", engine, "run"]  # else the engine's own processes would count as a cell's
        argv += ["--interactive", "--rm", "--name", name, "--pull", "never", *_engine_options(engine)]
        argv += ["--network", "none", "--read-only", "--cap-drop=all", "--security-opt", "no-new-privileges"]
        argv += ["--security-opt", "label=disable", *_user(engine, cwd, home), *_resources(limits)]
        argv += ["--tmpfs", f"/tmp:size={self.temporary},mode=1777", *_environment()]
        argv += [word for source, inside in scripts for word in _mount(source, inside)]
        argv += [*_mount(home, home), *_mount(cwd, cwd, writable=True)]
        for folder in self.read:
            argv += _mount(Path(folder).absolute(), Path(folder).absolute())
        argv += ["--workdir", str(cwd), *self.options, self.image]
        # The environment is that of the engine's client, which needs to find its own files; none of it gets inside.
        return argv, dict(os.environ), _remover(engine, name)

    def _engine(self) -> str:
        found = engine() if not self.engine else shutil.which(self.engine)
        if found is None:
            raise ReplError(f"{self.engine or 'podman or docker'} is not installed: apt-get install podman")
        return found


def engine() -> str | None:
    """The path of podman or, without it, of docker."""
    return shutil.which("podman") or shutil.which("docker")


def _is_podman(engine: str) -> bool:
    return Path(engine).name.startswith("podman")


def _engine_options(engine: str) -> list[str]:
    if not _is_podman(engine):
        return []
    # crun, podman's default, refuses machines that have control groups of version 1, or of both versions.
    mixed = not Path("/sys/fs/cgroup/cgroup.controllers").exists() and shutil.which("runc") is not None
    return ["--http-proxy=false", *(["--runtime", "runc"] if mixed else [])]


def _user(engine: str, cwd: Path, home: Path) -> list[str]:
    user = cell_user(cwd, home)
    if user is None and _is_podman(engine):
        return ["--userns=keep-id", "--user", f"{os.getuid()}:{os.getgid()}"]
    return ["--user", "{}:{}".format(*(user or (os.getuid(), os.getgid())))]


def _resources(limits: dict[str, int]) -> list[str]:
    """Always both ulimits: without them an engine asks for more than a confined root may have, and fails."""
    files = _at_most(resource.RLIMIT_NOFILE, limits.get("open_files", 4096))
    tasks = _at_most(resource.RLIMIT_NPROC, limits.get("processes", 4096) + 64)
    argv = ["--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={tasks}:{tasks}"]
    if "memory" in limits:  # the worker's own limit, without what several processes and /tmp take together
        argv += ["--memory", str(limits["memory"] + (64 << 20))]
    if "processes" in limits:
        argv += ["--pids-limit", str(limits["processes"] + 8)]  # the REPL, its parent, and the engine's own
    return argv


def _at_most(kind: int, wanted: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _environment() -> list[str]:
    given = {
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8",
        **dict.fromkeys([*_PROXIES, *(p.upper() for p in _PROXIES)], ""),
    }
    return [word for name, value in given.items() for word in ("--env", f"{name}={value}")]


def _mount(source: Path, inside: Path | str, *, writable: bool = False) -> list[str]:
    if "," in str(source):
        raise ReplError(f"the engine cannot mount {str(source)!r}: choose a folder without a comma in its name")
    return ["--mount", f"type=bind,source={source},target={inside}{'' if writable else ',readonly'}"]


def _remover(engine: str, name: str) -> Callable[[], None]:
    """Remove the container of a client that was killed; podman would wait ten seconds for it first."""
    argv = [engine, "rm", "--force", *(["--time", "0"] if _is_podman(engine) else []), name]

    def remove() -> None:
        subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)

    return remove
