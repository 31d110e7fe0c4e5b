"""What isolated cells may read of this machine: the system's programs and libraries, and the interpreter's folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.launch import WORKER
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


def readable(python: str, environment: Mapping[str, str], more: Iterable[str | Path] = ()) -> list[str]:
    """The folders that this interpreter needs besides the system's, our scripts, and `more`.

    Raises `ReplError` where the interpreter cannot be run, or a folder of `more` is not there.
    """
    try:
        paths = interpreter.with_search_path(python, environment)
    except OSError as e:
        raise ReplError(f"cannot start the REPL with {python!r}: {e.strerror or e}") from e
    for folder in (os.path.abspath(p) for p in more):
        if not os.path.exists(folder):
            raise ReplError(f"the folder {folder!r}, which cells should be able to read, does not exist")
        paths.append(folder)
    return list(dict.fromkeys([*paths, str(WORKER), str(HARDEN)]))
