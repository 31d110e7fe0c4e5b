"""How a value gets from the host into the REPL: a short text, bytes or a number in the frame, all else through a file.

What lies on disk already is read by the REPL, and not here.
"""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

from rlm_loop.repl.contexts.on_disk import ContextError, ContextFile
from rlm_loop.repl.worker import encode

IN_FRAME = 1_000_000  # bytes or characters; above it a file is quicker than JSON on a pipe, and takes less memory


def set_frame(name: str, value: Any, path: Path, in_place: bool = True) -> dict[str, Any]:
    """The `set` job for a value; writes `path` where the value goes through a file.  The copy is exact.

    What is on disk is read there `in_place`, else from a copy at `path`.
    Raises `TypeError` for a value that does not pickle.
    """
    frame: dict[str, Any] = {"t": "set", "name": name, "form": "frame"}
    if isinstance(value, ContextFile):
        given = on_disk_frame(name, value)
        if in_place:
            return given
        try:
            shutil.copyfile(value.path, path)
            path.chmod(0o644)  # the cells may run as another user
        except OSError as error:
            raise ContextError(f"the context {str(value.path)!r} cannot be copied: {error.strerror or error}") from None
        del given["source"]
        return {**given, "path": str(path)}
    if value is None or type(value) in (bool, int, float) or (type(value) in (str, bytes) and len(value) <= IN_FRAME):
        return {**frame, "value": encode(value)}
    try:
        with path.open("wb") as f:
            pickle.dump(value, f, protocol=5)  # arrays (of a `DataFrame` too) as they lie in memory, without a copy
    except Exception as e:
        raise TypeError(f"cannot send {name!r} ({type(value).__name__}) to the REPL, it does not pickle: {e}") from e
    path.chmod(0o644)  # the cells may run as another user
    package = type(value).__module__.partition(".")[0]
    needs = "" if package in ("builtins", "__main__") else package
    return {**frame, "form": "pickle", "path": str(path), "needs": needs}


def on_disk_frame(name: str, value: ContextFile) -> dict[str, Any]:
    """The `set` job for a file, for a REPL that reads it where it is."""
    about = {"form": value.kind, "size": value.size, "shown": value.path.name}
    return {"t": "set", "name": name, **about, "source": str(value.path)}
