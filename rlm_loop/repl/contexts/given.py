"""A context as its caller gives it: a path is read; and the hash of any context.

A trace holds a hash in the place of a context, made beside the run.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


class ContextError(ValueError):
    """A context cannot be used; the message is one line that says what to do."""


def as_context(value: Any) -> Any:
    """Return a caller's context, with a path turned into what the file holds: a `str` where it is UTF-8, else `bytes`.

    Line ends stay as they are.  Raises `ContextError` for a path that is not there, cannot be read, or is no file.
    """
    if not isinstance(value, Path):
        return value
    what = f"the context {str(value)!r}"
    try:
        path = value.expanduser()
        if path.exists() and not path.is_file():
            raise ContextError(f"{what} is no file; of a folder give the texts: {{str(p): p.read_text() for p in ...}}")
        data = path.read_bytes()
    except (OSError, RuntimeError) as error:  # a user who is not there is no `OSError`
        reason = getattr(error, "strerror", None) or error
        raise ContextError(f"{what} cannot be read: {reason}; check the path and its permissions") from None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


PATIENCE = 2.0
"""Seconds that a run which is over waits for the hash at most."""
UNFINISHED = "hash unfinished: the run was over"
_AT_ONCE = 1 << 20  # characters of a text, or bytes; what is longer, and any other value, is hashed beside the run
_WRITTEN_OUT = (list, dict, tuple, int, float, bool)  # pickles of equal ones may differ


def context_fingerprint(context: Any) -> dict[str, Any] | None:
    """Return `{"type", "bytes", "sha256"}` of any value; `None` for `None`.

    Hashed are the bytes of a text in UTF-8, and bytes; for plain lists, dicts and numbers their `repr`; for anything
    else its pickle.  `bytes` is how many.
    """
    if context is None:
        return None
    data = context
    if type(context) in _WRITTEN_OUT:
        data = repr(context)
    elif not isinstance(context, str | bytes):
        try:
            data = pickle.dumps(context, 5)
        except Exception:
            data = str(context)
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return {"type": type(context).__name__, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


class Fingerprint:
    """The fingerprint of a run's context, made in a thread beside the run unless it is known at once.

    `known` is what is known at once: all of a short text or bytes, else its type.  `tell` gets the rest at the
    end, once: the fingerprint, or what is known and an `error` where the run ended first.  A value that cells share
    with the caller (in a notebook session) may be hashed as a cell left it.
    """

    def __init__(self, context: Any, tell: Callable[[dict[str, Any]], None]) -> None:
        self.known: dict[str, Any] = {"type": type(context).__name__, "bytes": None}
        self._tell = tell
        self._made: dict[str, Any] = {"error": UNFINISHED}
        self._thread = threading.Thread(target=self._work, args=(context,), daemon=True, name="hash of the context")
        self._over = type(context) in (str, bytes) and len(context) <= _AT_ONCE
        if self._over:
            self.known = context_fingerprint(context) or {}
        else:
            self._thread.start()

    def end(self, seconds_left: float | None = None) -> None:
        """Tell it; the hash is given up once the run's time or `PATIENCE` is over, or at Ctrl-C."""
        if self._over:
            return
        self._over = True
        with suppress(KeyboardInterrupt):  # the run itself is over
            self._thread.join(PATIENCE if seconds_left is None else max(0.0, min(seconds_left, PATIENCE)))
        with suppress(Exception):  # a trace that cannot be written has ended the run already
            self._tell({**self.known, **self._made})

    def _work(self, context: Any) -> None:
        try:
            self._made = context_fingerprint(context) or {}
        except Exception as error:  # of the caller's own class
            self._made = {"error": str(error)}
