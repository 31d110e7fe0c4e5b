"""Folders that a cell or a command could fill with anything: listed without reading a file, and removed."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def temporary(prefix: str) -> Generator[Path]:
    """A new folder, removed at the end (`tempfile.TemporaryDirectory` calls itself for each level)."""
    folder = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    try:
        yield folder
    finally:
        remove(folder)


def remove(folder: str | Path) -> None:
    """Remove a folder and what is in it, as far as that can be had; never raises `OSError`.  No link is followed."""
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.isdir(folder) and not os.path.islink(folder):  # it is too deep, or rights were taken away
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            with suppress(OSError):
                subprocess.run([*command, "--", folder], stderr=subprocess.DEVNULL, check=False)


_MOST = 1000  # names in a folder that is observed: 2.4 ms; a usual one has few, and takes 15 us
#: Size, time of change and of the entry's own change, by name; a folder's name ends with `/` and has none.
Listing = Mapping[str, tuple[int, ...]]


def listing(folder: Path) -> Listing | str:
    """Return what is in a folder, links not followed, or why that is not known."""
    files: dict[str, tuple[int, ...]] = {}
    pending = [""]
    try:
        while pending:
            parent = pending.pop()
            with os.scandir(os.path.join(folder, parent)) as entries:
                for entry in entries:
                    if len(files) >= _MOST:
                        return f"the working folder holds more than {_MOST} files"
                    about, name = entry.stat(follow_symlinks=False), parent + entry.name
                    if stat.S_ISDIR(about.st_mode):
                        pending.append(f"{name}/")
                        files[f"{name}/"] = ()
                    else:
                        files[name] = (about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    except OSError as error:  # gone, closed, or changed meanwhile by a process that the cell left behind
        return f"the working folder cannot be listed: {error.strerror or error}"
    return files


def changes(before: Listing | str, after: Listing | str) -> dict[str, object]:
    """Return the names `added`, `changed` and `removed` between two listings; `unknown` says why nothing is known.

    Two writes of the same size within one tick of the file system's clock look alike.
    """
    if isinstance(before, str) or isinstance(after, str):
        return {"unknown": after if isinstance(after, str) else before}
    kinds = {
        "added": after.keys() - before.keys(),
        "changed": {n for n in after.keys() & before.keys() if after[n] != before[n]},
        "removed": before.keys() - after.keys(),
    }
    # A name may be any bytes.
    return {kind: [n.encode("utf-8", "backslashreplace").decode() for n in sorted(s)] for kind, s in kinds.items()}
