"""A context that is a file, named by the caller and read where the cells run; and the hash of any context.

`run(context=Path(...))` makes one of these.  The REPL reads it when it is bound (`worker.load`).
A trace holds a hash in the place of a context, made beside the run.
"""

from __future__ import annotations

import codecs
import hashlib
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rlm_loop.errors import ShownBriefly


class ContextError(ShownBriefly, ValueError):
    """A context cannot be used; the message is one line that says what to do."""


_SNIFF = 1 << 16  # bytes at the beginning of a file that decide whether it is text


@dataclass(frozen=True)
class ContextFile:
    """A file as the context: in a cell a `str` where it is UTF-8 text, else `bytes`.

    `size` is its bytes as the run began: what is appended later is no part of the context.  `kind` is decided by the
    first 64 KiB (UTF-8, less than an eighth NUL); bytes further on that are not UTF-8 come as lone surrogates
    (`surrogateescape`), so that none is lost.  Line ends stay as they are.
    Raises `ContextError` where there is no file that can be read.
    """

    path: Path
    size: int = field(init=False)
    kind: Literal["str", "bytes"] = field(init=False)

    def __post_init__(self) -> None:
        what = f"the context {str(self.path)!r}"
        try:
            path = self.path.expanduser().resolve(strict=True)
            if not path.is_file():
                raise ContextError(f"{what} is no file; of a folder give the texts of its files, as a dict")
            size = path.stat().st_size
            with path.open("rb") as f:
                head = f.read(_SNIFF)
        except (OSError, RuntimeError) as error:  # a loop of links is no `OSError`
            reason = getattr(error, "strerror", None) or error
            raise ContextError(f"{what} cannot be read: {reason}; check the path and its permissions") from None
        for name, value in {"path": path, "size": size, "kind": "str" if _is_text(head) else "bytes"}.items():
            object.__setattr__(self, name, value)

    def read(self) -> Iterator[bytes]:
        """Return the bytes in steps."""
        size = self.size
        with self.path.open("rb", buffering=0) as f:
            while size > 0 and (data := f.read(min(size, 1 << 20))):
                size -= len(data)
                yield data

    def frame(self, name: str, path: Path | None = None) -> dict[str, Any]:
        """The `set` job for a REPL that reads the file where it is, or a copy of it at `path`."""
        return {"t": "set", "name": name, "form": self.kind, "size": self.size, "source": str(path or self.path)}


def as_context(value: Any) -> Any:
    """Return a caller's context, with a path turned into the file that it names.

    Raises `ContextError` for a path that is not there, cannot be read, or is no file.
    """
    return ContextFile(value) if isinstance(value, Path) else value


def _is_text(head: bytes) -> bool:
    """Return True where a file that begins so is text: UTF-8, and less than an eighth NUL."""
    if 8 * head.count(b"\0") > len(head):  # UTF-16 of English is half NUL, and so UTF-8 of a kind; so are holes
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < _SNIFF)
    except UnicodeDecodeError:
        return False
    return True


PATIENCE = 2.0
"""Seconds that a run which is over waits for the hash at most."""
UNFINISHED = "hash unfinished: the run was over"
_AT_ONCE = 1 << 20  # characters of a text, or bytes; what is longer, and any other value, is hashed beside the run
_WRITTEN_OUT = (list, dict, tuple, int, float, bool)  # pickles of equal ones may differ


def context_fingerprint(context: Any, *, over: Callable[[], bool] = lambda: False) -> dict[str, Any] | None:
    """Return `{"type", "bytes", "sha256"}` of any value; `None` for `None`.

    Hashed are the bytes of a text in UTF-8, of bytes and of a file; for plain lists, dicts and numbers their `repr`;
    for anything else its pickle.  `bytes` is how many.  It is left unfinished as soon as `over()` is true.
    """
    if context is None:
        return None
    digest, size = hashlib.sha256(), 0
    for piece in _pieces(context):
        if over():
            break
        digest.update(piece)
        size += len(piece)
    return {**_type_and_size(context), "bytes": size, "sha256": digest.hexdigest()}


class Fingerprint:
    """The fingerprint of a run's context, made in a thread beside the run unless it is known at once.

    `known` is what is known at once: all of a short text, bytes or file, else type and size.  `tell` gets the rest at
    the end, once: the fingerprint, or what is known and an `error` where the context could not be read, or the run
    ended first.  A value that cells share with the caller (in a notebook session) may be hashed as a cell left it.
    """

    def __init__(self, context: Any, tell: Callable[[dict[str, Any]], None]) -> None:
        self.known = _type_and_size(context)
        size = len(context) if type(context) is str else self.known["bytes"]
        if size is not None and size <= _AT_ONCE:
            self.known = context_fingerprint(context) or {}
        self._context, self._tell = context, tell
        self._made: dict[str, Any] = {"error": UNFINISHED}
        self._over = "sha256" in self.known
        self._thread = threading.Thread(target=self._work, daemon=True, name="hash of the context")
        if not self._over:
            self._thread.start()

    def end(self, seconds_left: float | None = None) -> None:
        """Tell it; the hash is given up once the run's time or `PATIENCE` is over, or at Ctrl-C."""
        if self._over:
            return
        with suppress(KeyboardInterrupt):  # the run itself is over
            self._thread.join(PATIENCE if seconds_left is None else max(0.0, min(seconds_left, PATIENCE)))
        self._over = True
        with suppress(Exception):  # a trace that cannot be written has ended the run already
            self._tell({**self.known, **self._made})

    def _work(self) -> None:
        try:
            made = context_fingerprint(self._context, over=lambda: self._over) or {}
        except Exception as error:  # it has gone, or is closed to us: the cells are told themselves
            made = {"error": str(error)}
        self._made = made


def _type_and_size(context: Any) -> dict[str, Any]:
    if isinstance(context, ContextFile):
        return {"type": context.kind, "bytes": context.size}
    return {"type": type(context).__name__, "bytes": len(context) if type(context) is bytes else None}


def _pieces(context: Any) -> Iterable[bytes]:
    """Return what is hashed of a value, in steps."""
    if isinstance(context, ContextFile):
        return context.read()
    if type(context) in _WRITTEN_OUT:
        context = repr(context)
    elif not isinstance(context, str | bytes):
        try:
            context = pickle.dumps(context, 5)
        except Exception:
            context = str(context)
    return [context.encode("utf-8", "surrogatepass") if isinstance(context, str) else context]
