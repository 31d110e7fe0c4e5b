"""Starting the worker: an argv, an environment, and the worker's file as seen from inside.

A launcher is the place where isolation is added: it may put a prefix before Python (a sandbox, a container).
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import json
import marshal
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORKER = Path(__file__).parents[1] / "worker.py"
TEMPORARY = 512 << 20
"""Bytes of the `/tmp` in memory that a sandbox or a container has."""

# What a scientific Python needs to find its libraries, its locale and its thread count; nothing else is passed,
# so no key or token of the host can be read or printed by a cell.
_ALLOWED = (
    "PATH HOME USER LOGNAME LANG LANGUAGE TZ TMPDIR TERM SHELL VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PYTHONHOME "
    "LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH MPLCONFIGDIR XDG_CACHE_HOME XDG_CONFIG_HOME "
    "XDG_DATA_HOME"
)
_PASSED = frozenset(_ALLOWED.split())
_PASSED_PREFIXES = ("LC_", "OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "VECLIB_")


@dataclass(frozen=True)
class Launch:
    """A start for `subprocess.Popen`: `argv` and the environment.

    `kind` is the isolation that is really in force (`plain`, `hardened`, `sandbox`, `container`, `custom`), `note`
    what to know about it in this case, and `cleanup` is called where the process had to be ended by force.  A process
    that does not pass its descriptor 1 on, a socket, connects to the path `connects_to` in the private folder.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    kind: str = "custom"
    note: str = ""
    cleanup: Callable[[], object] = bool  # does nothing
    connects_to: Path | None = None


Options = Mapping[str, Any]
"""The worker's options, as JSON has them; `path` begins with the working folder, `home` is the private one."""

Launcher = Callable[[str, Options], Launch]
"""Called with the interpreter and the worker's options each time that a worker is started."""


def plain(python: str, options: Options) -> Launch:
    """Isolate nothing but the environment, which is cut down to an allow-list."""
    argv = (python, "-u", script(WORKER, python, options), json.dumps(options))
    return Launch(argv, worker_environment(), "plain")


def script(source: Path, python: str, options: Options) -> str:
    """The file to run for one of our scripts: byte code where it is for this very interpreter, else the source.

    Compiling the worker would take a third of a start.  The byte code lies in the session's private folder, since the
    package's own may be missing, out of date or closed to the cells' user.
    """
    if python != sys.executable:
        return str(source)
    path = Path(options["home"], f"{source.stem}.pyc")
    path.write_bytes(_byte_code(source))
    path.chmod(0o644)
    return str(path)


@functools.lru_cache(maxsize=8)
def _byte_code(source: Path) -> bytes:
    """The content of a `.pyc` file (importlib's format, PEP 552: the flags and the unused time and size are zero)."""
    code = importlib.machinery.SourceFileLoader(source.stem, str(source)).get_code(source.stem)
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


def folders(options: Options) -> tuple[Path, Path]:
    """Return the working folder and the private one.

    Isolated cells may write to the first only.  In the second the host writes (values on their way, the log): a
    cell that could make a link there would lead the host's hand.
    """
    return Path(options["path"][0]), Path(options["home"])


# In sh, since it has to outlive the REPL, and its host: it kills what cells moved into sessions of their own, which is
# known by the environment, and removes the private folder where the host is gone, or on its way: the flag 4 of its
# state, PF_EXITING (its files are closed, which ends the REPL, before it leaves its children).  What a cell makes of
# its parent, or of its environment, is its own loss.
_TIDY = """
h=$1; shift; exec 3<&0; RLM_LOOP_HOME=$h "$@" <&3 3<&- & p=$!; exec 3<&- </dev/null >/dev/null; wait $p; c=$?
for n in 1 2 3 4 5 6 7 8 9; do
l=$(grep -lsaF "RLM_LOOP_HOME=$h" /proc/[0-9]*/environ); [ "$l" ] || break
for f in $l; do f=${f#/proc/}; kill -9 ${f%/environ} 2>/dev/null; done; done
read -r _ _ _ p _ 2>/dev/null </proc/$$/stat
read -r l 2>/dev/null </proc/$PPID/stat; set -- ${l##*)}
[ -z "$p" ] || [ "$p" = "$PPID" ] && [ $((${7:-0} & 4)) = 0 ] || rm -rf -- "$h"
exit $c
"""


def tidied(argv: Sequence[str], home: Path) -> list[str]:
    """Return a command that runs another one and clears up after it."""
    return ["/bin/sh", "-c", _TIDY, "rlm-loop", str(home), *argv]


def worker_environment() -> dict[str, str]:
    """The allowed part of this process's environment, with string hashing fixed.

    A fixed `PYTHONHASHSEED` makes the order of sets, and so the output of cells, the same in every run.
    """
    env = {k: v for k, v in os.environ.items() if k in _PASSED or k.startswith(_PASSED_PREFIXES)}
    if "PYTHONPATH" in env:  # relative to here, not to the working folder, whose files would hide the library's
        env["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in env["PYTHONPATH"].split(os.pathsep) if p)
    default = {"LANG": "C.UTF-8", "PATH": os.defpath}
    # Matplotlib's backend of a notebook's kernel shows nothing here
    return {**default, **env, "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0", "PYTHONIOENCODING": "utf-8"}


def isolated_environment(temporary: str) -> dict[str, str]:
    """`worker_environment` where the user's folders cannot be seen: what points into them points to `temporary`."""
    env = {k: v for k, v in worker_environment().items() if k not in _OF_THE_USER}
    return {**env, "HOME": temporary, "TMPDIR": temporary, "USER": "cells", "LOGNAME": "cells"}


_OF_THE_USER = ("SHELL", "MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
