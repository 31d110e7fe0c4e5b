"""What a trace holds of a context: its type, its size and a hash of its content, never the content."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, cast

from rlm_loop.repl.contexts.on_disk import ContextFile, ContextFolder

_AT_ONCE = 16 << 20  # bytes or characters; more is hashed beside the run
_STEP = 1 << 20


class Stopped(Exception):
    """Nobody wants the hash any more, or of so much."""


def context_fingerprint(context: Any, *, goes_on: Callable[[], bool] = lambda: True) -> dict[str, Any] | None:
    """`{"type", "bytes", "sha256"}` of any value; `None` for `None`.

    Hashed are the bytes of a text in UTF-8, of bytes and of a file; for a folder each file's path, size and bytes; for
    plain lists and dicts their `repr`; for anything else its pickle.  `bytes` is how many.  Needs little memory however
    large the value is.  Raises `Stopped` as soon as `goes_on()` is false.
    """
    if context is None:
        return None
    sink = Sink(hashlib.sha256(), lambda _: goes_on())
    pieces = _pieces(context)
    if pieces is None:
        try:
            pickle.Pickler(sink, 5).dump(context)
        except Stopped:
            raise
        except Exception:
            sink, pieces = Sink(hashlib.sha256(), lambda _: goes_on()), _of_text(str(context))
    for piece in pieces or ():
        sink.write(piece)
    about: dict[str, Any] = {"type": _type(context), "bytes": sink.size, "sha256": sink.hash.hexdigest()}
    if isinstance(context, ContextFolder):
        about |= {"files": len(context.sizes), "bytes": sum(context.sizes.values())}
    return about


class Fingerprint:
    """The fingerprint of a run's context.  A large one is hashed in a thread while the run goes on.

    `known` is what can be said at once: without `sha256` where that takes time; `tell` gets the whole when it is there.
    """

    def __init__(self, context: Any, tell: Callable[[dict[str, Any]], None]) -> None:
        self._wanted = True
        self._thread: threading.Thread | None = None
        size = _size(context)
        if size is None or size <= _AT_ONCE:
            self.known = context_fingerprint(context)
            return
        self.known = {"type": _type(context), "bytes": None if isinstance(context, str) else size}

        def work() -> None:
            try:
                found = context_fingerprint(context, goes_on=lambda: self._wanted)
            except Stopped:
                return
            except OSError as error:  # it has gone, or is closed to us: the cells are told themselves
                found = {**(self.known or {}), "error": str(error)}
            tell(found or {})

        self._thread = threading.Thread(target=work, daemon=True, name="hash of the context")

    def begin(self) -> None:
        """Begin to hash, where that is still to be done."""
        if self._thread is not None:
            self._thread.start()

    def end(self, *, wait: bool) -> None:
        """Wait for the hash, or give it up; Ctrl-C gives it up too, as the run itself is over."""
        self._wanted = self._wanted and wait
        if self._thread is not None and self._thread.is_alive():
            try:
                self._thread.join()
            except KeyboardInterrupt:
                self._wanted = False
                self._thread.join()


def _type(context: Any) -> str:
    if isinstance(context, ContextFile):
        return context.kind
    return "folder" if isinstance(context, ContextFolder) else type(context).__name__


def _size(context: Any) -> int | None:
    """Bytes or characters, of what cannot change while it is hashed beside the run."""
    if isinstance(context, ContextFile):
        return context.size
    if isinstance(context, ContextFolder):
        return sum(context.sizes.values())
    return len(context) if type(context) in (str, bytes) else None


def _pieces(context: Any) -> Iterator[bytes | memoryview] | None:
    if isinstance(context, ContextFile):
        return _of_file(context.path, context.size)
    if isinstance(context, ContextFolder):
        return _of_folder(context)
    if isinstance(context, str):
        return _of_text(context)
    if isinstance(context, bytes | bytearray | memoryview):
        return iter((memoryview(context).cast("B"),))
    if type(context) in (list, dict, tuple, int, float, bool):
        return _joined(_reprs(context))
    return None


def _of_text(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), _STEP):
        yield text[start : start + _STEP].encode("utf-8", "surrogatepass")


def _of_file(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as f:
        while size > 0 and (data := f.read(min(size, _STEP))):
            size -= len(data)
            yield data


def _of_folder(folder: ContextFolder) -> Iterator[bytes]:
    for name, size in folder.sizes.items():
        yield f"{name}\0{size}\0".encode("utf-8", "surrogateescape")
        try:
            yield from _of_file(folder.path / name, size)
        except OSError:
            yield b"cannot be read"  # a cell that asks for this file is told why


def _joined(parts: Iterable[str]) -> Iterator[bytes]:
    """Few large pieces instead of many small ones."""
    waiting: list[str] = []
    length = 0
    for part in parts:
        waiting.append(part)
        length += len(part)
        if length >= _STEP:
            yield "".join(waiting).encode("utf-8", "surrogatepass")
            waiting, length = [], 0
    yield "".join(waiting).encode("utf-8", "surrogatepass")


def _reprs(value: Any) -> Iterator[str]:
    """The `repr` of a value, an item at a time for a list, tuple or dict."""
    if type(value) is dict:
        pairs = (f"{k!r}: {v!r}" for k, v in cast("dict[Any, Any]", value).items())
        return chain(["{"], _separated(pairs), ["}"])
    if type(value) is list:
        return chain(["["], _separated(map(repr, cast("list[Any]", value))), ["]"])
    return iter((repr(value),))


def _separated(parts: Iterable[str]) -> Iterator[str]:
    between = ""
    for part in parts:
        yield between + part
        between = ", "


class Sink:
    """A file that keeps the digest and size of what is written, as long as `goes_on` says so of the size."""

    def __init__(self, digest: Any, goes_on: Callable[[int], bool]) -> None:
        self.hash, self.size, self._goes_on = digest, 0, goes_on

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.size += size
        if not self._goes_on(self.size):
            raise Stopped
        self.hash.update(data)
        return size
