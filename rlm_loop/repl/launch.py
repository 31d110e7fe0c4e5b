"""How the worker is started: an argv, an environment, and where the worker's file is seen from inside.

A launcher is the place where isolation is added: it may put a prefix before Python (a sandbox, a container).
`plain` adds none: it protects the host from crashes, endless loops and a polluted namespace, not from malice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")

# What a scientific Python needs to find its libraries, its locale and its thread count; nothing else is passed,
# so no key or token of the host can be read or printed by a cell.
_PASSED = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TERM",
        "SHELL",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "PYTHONPATH",
        "PYTHONHOME",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "DYLD_FALLBACK_LIBRARY_PATH",
        "MPLCONFIGDIR",
        "MPLBACKEND",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
    ]
)
_PASSED_PREFIXES = ("LC_", "OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "VECLIB_")


@dataclass(frozen=True)
class Launch:
    """What `subprocess.Popen` needs."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


Launcher = Callable[[str, str], Launch]


def plain(python: str, options: str) -> Launch:
    """`python worker.py OPTIONS` with the environment cut down to an allow-list."""
    return Launch((python, "-u", str(WORKER), options), worker_environment())


def worker_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The allowed part of an environment (default: this process's), with string hashing fixed.

    A fixed `PYTHONHASHSEED` makes the order of sets, and so the output of cells, the same in every run.
    """
    source = os.environ if environ is None else environ
    env = {k: v for k, v in source.items() if k in _PASSED or k.startswith(_PASSED_PREFIXES)}
    if "PYTHONPATH" in env:  # relative to here, not to the working folder, whose files would hide the library's
        env["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in env["PYTHONPATH"].split(os.pathsep) if p)
    env.setdefault("LANG", "C.UTF-8")
    env.setdefault("PATH", os.defpath)
    env.setdefault("MPLBACKEND", "Agg")
    env["PYTHONHASHSEED"] = "0"
    env["PYTHONIOENCODING"] = "utf-8"
    return env


def default_python() -> str:
    """This interpreter, so that cells see the packages that its user installed."""
    return sys.executable or "python3"
