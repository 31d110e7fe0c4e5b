"""How a value gets from the host into the REPL: in the frame when small and plain, else through a file."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from rlm_loop.repl.worker import NotExact, encode

IN_FRAME = 1_000_000  # bytes or characters; above it a file is quicker than JSON on a pipe, and takes less memory
_STEP = 1 << 20


def set_frame(name: str, value: Any, path: Path) -> dict[str, Any]:
    """The `set` job for a value; writes `path` where the value goes through a file.  The copy is exact.

    Raises `TypeError` for a value that neither JSON nor pickle can carry.
    """
    frame: dict[str, Any] = {"t": "set", "name": name, "form": "frame"}
    if type(value) is str and len(value) > IN_FRAME:
        with path.open("wb") as f:  # in steps: a second whole copy in memory would be wasted
            for start in range(0, len(value), _STEP):
                f.write(value[start : start + _STEP].encode("utf-8", "surrogatepass"))
        return {**frame, "form": "str", "path": str(path)}
    if type(value) is bytes and len(value) > IN_FRAME:
        path.write_bytes(value)
        return {**frame, "form": "bytes", "path": str(path)}
    try:
        frame["value"] = encode(value, strict=True)
        if len(json.dumps(frame)) <= IN_FRAME:
            return frame
        del frame["value"]
    except NotExact:
        pass
    try:
        with path.open("wb") as f:
            pickle.dump(value, f, protocol=4)
    except Exception as e:
        raise TypeError(f"cannot send {name!r} ({type(value).__name__}) to the REPL, it does not pickle: {e}") from e
    return {**frame, "form": "pickle", "path": str(path)}
