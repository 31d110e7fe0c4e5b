"""Observe which files of its working folder a cell changed: by size and times, without reading one."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

_MOST = 1000  # names in a folder that is observed: 2.4 ms; a usual one has few, and takes 15 us
_TOLD = 100  # names told of one cell, so that a trace stays small
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
    """Return the names `added`, `changed` and `removed` between two listings.

    Beyond 100 names `left_out` counts the rest; `unknown` says why nothing is known.  Two writes of the same size
    within one tick of the file system's clock look alike.
    """
    if isinstance(before, str) or isinstance(after, str):
        return {"unknown": after if isinstance(after, str) else before}
    kinds = {
        "added": sorted(after.keys() - before.keys()),
        "changed": sorted(n for n in after.keys() & before.keys() if after[n] != before[n]),
        "removed": sorted(before.keys() - after.keys()),
    }
    room, told = _TOLD, dict[str, object]()
    for kind, names in kinds.items():
        told[kind] = [n.encode("utf-8", "backslashreplace").decode() for n in names[:room]]  # a name may be any bytes
        room -= len(names[:room])
    dropped = sum(map(len, kinds.values())) - (_TOLD - room)
    return {**told, "left_out": dropped} if dropped else told
