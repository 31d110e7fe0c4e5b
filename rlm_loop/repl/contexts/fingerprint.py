"""The hash of a context that a trace holds in its place, made beside the run."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, cast

from rlm_loop.repl.contexts.on_disk import ContextFile

PATIENCE = 2.0
"""Seconds that a run which is over waits for the hash at most."""
UNFINISHED = "hash unfinished: the run was over"
_AT_ONCE = 1 << 20  # bytes, characters or twenty items; more is hashed beside the run
_STEP = 1 << 20
_ATOMS = (int, float, bool, type(None))
_BITS = 10_000  # of a number; Python refuses to write out much longer ones


class Stopped(Exception):
    """Nobody wants the hash any more."""


class _Sink:
    """A file that keeps the digest and the size of what is written, in steps, as long as `goes_on()` is true."""

    def __init__(self, goes_on: Callable[[], bool]) -> None:
        self.hash, self.size, self._goes_on = hashlib.sha256(), 0, goes_on

    def write(self, data: Any) -> int:
        view = pickle.PickleBuffer(data).raw()  # flat, whatever the shape of the array that is written
        self.size += view.nbytes
        for start in range(0, view.nbytes, _STEP):  # a data frame writes each block at once
            if not self._goes_on():
                raise Stopped
            self.hash.update(view[start : start + _STEP])
        return view.nbytes


def context_fingerprint(context: Any, *, goes_on: Callable[[], bool] = lambda: True) -> dict[str, Any] | None:
    """Return `{"type", "bytes", "sha256"}` of any value; `None` for `None`.

    Hashed are the bytes of a text in UTF-8, of bytes and of a file; for plain lists and dicts their `repr`; for
    anything else its pickle.  `bytes` is how many.  Needs little memory however
    large the value is.  Raises `Stopped` as soon as `goes_on()` is false.
    """
    if context is None:
        return None
    sink, pieces = _Sink(goes_on), _pieces(context)
    if pieces is None:
        try:
            pickle.Pickler(sink, 5).dump(context)
        except Stopped:
            raise
        except Exception:
            sink, pieces = _Sink(goes_on), _steps(str(context))
    for piece in pieces or ():
        sink.write(piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece)
    return {**_type_and_size(context), "bytes": sink.size, "sha256": sink.hash.hexdigest()}


def known_at_once(context: Any) -> dict[str, Any] | None:
    """Return the fingerprint of a small plain value, and of any other one type and size without `sha256`."""
    if isinstance(context, ContextFile):
        small = context.size <= _AT_ONCE
    else:
        try:
            small = _room_after(context, _AT_ONCE) >= 0
        except RecursionError:
            small = False
    return context_fingerprint(context) if small else _type_and_size(context)


class Fingerprint:
    """The fingerprint of a run's context, made in a thread beside the run unless it is small and plain.

    `known` is what is known at once.  `tell` gets the rest, once: the fingerprint, or what is known and an `error`
    where the context could not be read, or the run ended first.  A value that cells share with the caller (in a
    notebook session) may be hashed as a cell left it.  `hashing` is `context_fingerprint`.
    """

    def __init__(
        self,
        context: Any,
        tell: Callable[[dict[str, Any]], None],
        *,
        hashing: Callable[..., dict[str, Any] | None] = context_fingerprint,
    ) -> None:
        self.known = known_at_once(context)
        self._context, self._tell, self._hashing = context, tell, hashing
        self._lock, self._over = threading.Lock(), threading.Event()
        self._reported = self.known is None or "sha256" in self.known
        self._began = False

    def begin(self) -> None:
        """Begin to hash, where that is still to be done."""
        if not self._reported and not self._began:
            self._began = True
            threading.Thread(target=self._work, daemon=True, name="hash of the context").start()

    def end(self, seconds_left: float | None = None) -> None:
        """Give the hash up once the run's time or `PATIENCE` is over, or at Ctrl-C."""
        if self._began:
            with suppress(KeyboardInterrupt):  # the run itself is over
                self._over.wait(PATIENCE if seconds_left is None else min(seconds_left, PATIENCE))
            with suppress(Exception):  # a trace that cannot be written has ended the run already
                self._report({"error": UNFINISHED})

    def _work(self) -> None:
        try:
            self._report(self._hashing(self._context, goes_on=lambda: not self._reported) or {})
        except Exception as error:  # it has gone, or is closed to us: the cells are told themselves
            self._report({"error": str(error)})  # after `Stopped` it was reported
        finally:
            self._over.set()

    def _report(self, event: dict[str, Any]) -> None:
        with self._lock:
            reported, self._reported = self._reported, True
            if not reported:
                self._tell({**(self.known or {}), **event})


def _type_and_size(context: Any) -> dict[str, Any]:
    if isinstance(context, ContextFile):
        return {"type": context.kind, "bytes": context.size}
    return {"type": type(context).__name__, "bytes": len(context) if type(context) is bytes else None}


def _room_after(value: Any, room: int) -> int:
    """Return the room that a plain value leaves; a negative number where it does not fit, or is not plain."""
    kind = type(value)
    if kind in (str, bytes):
        return room - len(value)
    if kind in (list, tuple, dict):
        room -= 20 * len(value)
        for item in chain.from_iterable(value.items()) if kind is dict else value:
            if room < 0:
                break
            room = _room_after(item, room)
        return room
    return room if kind in _ATOMS and not (kind is int and value.bit_length() > _BITS) else -1


def _pieces(context: Any) -> Iterable[str | bytes | memoryview] | None:
    """Return what is hashed of a value; None for one that is pickled."""
    if isinstance(context, ContextFile):
        return context.read()
    if isinstance(context, str):
        return _steps(context)
    if isinstance(context, bytes | bytearray | memoryview):
        return (memoryview(context).cast("B"),)
    if type(context) is dict:
        items = (f"{k!r}: {v!r}" for k, v in cast("dict[Any, Any]", context).items())
        return _enclosed("{", items, "}")
    if type(context) is list:
        return _enclosed("[", map(repr, cast("list[Any]", context)), "]")
    return (repr(context),) if type(context) in (tuple, int, float, bool) else None


def _steps(text: str) -> Iterator[str]:
    return (text[start : start + _STEP] for start in range(0, len(text), _STEP))


def _enclosed(start: str, items: Iterable[str], end: str) -> Iterator[str]:
    return chain(start, (text if at == 0 else f", {text}" for at, text in enumerate(items)), end)
