"""How a value gets from the host into the REPL: in the frame when small and plain, else through a file.

What lies on disk already is read by the REPL, and not here.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from rlm_loop.repl.contexts.on_disk import ContextError, ContextFile
from rlm_loop.repl.worker import NotExact, encode

IN_FRAME = 1_000_000  # bytes or characters; above it a file is quicker than JSON on a pipe, and takes less memory
_STEP = 1 << 20
_DEEPEST = 100  # levels that are looked into
_END = object()


def set_frame(name: str, value: Any, path: Path, in_place: bool = True) -> dict[str, Any]:
    """The `set` job for a value; writes `path` where the value goes through a file.  The copy is exact.

    What is on disk is read there `in_place`, else from a copy at `path`.
    Raises `TypeError` for a value that neither JSON nor pickle can carry.
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
    if type(value) is str and len(value) > IN_FRAME:
        with path.open("wb") as f:  # in steps: a second whole copy in memory would be wasted
            for start in range(0, len(value), _STEP):
                f.write(value[start : start + _STEP].encode("utf-8", "surrogatepass"))
        return {**frame, **_large("str", "surrogatepass", name, path)}
    if type(value) is bytes and len(value) > IN_FRAME:
        path.write_bytes(value)
        return {**frame, **_large("bytes", "strict", name, path)}
    if not _too_large(value):
        try:
            frame["value"] = encode(value, strict=True)
            if len(json.dumps(frame)) <= IN_FRAME:
                return frame
            del frame["value"]
        except NotExact:
            pass
    try:
        with path.open("wb") as f:
            pickle.dump(value, f, protocol=5)  # arrays (of a `DataFrame` too) as they lie in memory, without a copy
    except Exception as e:
        raise TypeError(f"cannot send {name!r} ({type(value).__name__}) to the REPL, it does not pickle: {e}") from e
    return {**frame, "form": "pickle", "path": str(path), "needs": _package(value)}


def on_disk_frame(name: str, value: ContextFile) -> dict[str, Any]:
    """The `set` job for a file, for a REPL that reads it where it is."""
    about = {"form": value.kind, "size": value.size, "errors": "surrogateescape"}
    return {"t": "set", "name": name, **about, "shown": value.path.name, "source": str(value.path)}


def _large(kind: str, errors: str, name: str, path: Path) -> dict[str, Any]:
    return {"form": kind, "errors": errors, "size": path.stat().st_size, "shown": name, "path": str(path)}


def _too_large(value: Any) -> bool:
    """Whether a value cannot be small enough for a frame: seen before an encoded copy of it fills the memory."""
    left = IN_FRAME
    todo: list[Iterator[Any]] = [iter((value,))]
    while todo and left >= 0:
        item: Any = next(todo[-1], _END)
        if item is _END:
            todo.pop()
            continue
        left -= 1
        if type(item) in (str, bytes):
            left -= len(item)
        elif type(item) in (list, tuple, set, frozenset) and len(todo) < _DEEPEST:
            todo.append(iter(item))
        elif type(item) is dict and len(todo) < _DEEPEST:
            todo.append(chain.from_iterable(item.items()))
    return left < 0


def _package(value: Any) -> str:
    """The package that a value comes from."""
    package = type(value).__module__.partition(".")[0]
    return "" if package in ("builtins", "__main__") else package
