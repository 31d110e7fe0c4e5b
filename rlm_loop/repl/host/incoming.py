"""Read what a worker sends, and trust none of it.

A cell can write anything to the worker's descriptor, so nothing in it may lead to an import, to a class that it names,
or to more memory than it took to send.  `check` bounds a line in bytes, depth and count before it is parsed.  `decode`
makes values of a closed list of types, all of which this module has imported before any cell ran.  An honest worker
stays within these bounds: what would not fit it sends as text (`worker.bounded`).
"""

from __future__ import annotations

import decimal
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, cast

from rlm_loop.repl.worker import DEEPEST, UNPACK, unpack_items, unpack_text, values_in
from rlm_loop.repl.worker import decode as unbounded

LONGEST = 48 << 20
"""Bytes of one frame: two values of the largest size that a worker sends, and what was printed and displayed."""
MOST = 2_000_000
"""Values in one frame."""

_LEVELS = 4 * DEEPEST  # of JSON: a value takes up to three for one of its own
_DIGITS = 1_000_000  # of a number; arithmetic beyond it takes minutes
_ALIKE = 16  # different keys that may share a hash
_AT_ONCE = 1 << 20  # bytes of a frame that are decoded at once: some 30 ms
_parse = json.JSONDecoder().raw_decode
_FARTHEST = 100_000  # decimal places; as an int, `Decimal("1e999999999")` would fill the memory


class OutOfBounds(ValueError):
    """A worker sent what no honest one would.  The text says what."""


def check(line: bytes | bytearray) -> None:
    """Refuse a line that would take more memory or levels than are allowed; raises `OutOfBounds`."""
    if len(line) > LONGEST:
        raise OutOfBounds(f"a message of more than {LONGEST:,} bytes")
    if len(line) <= MOST and line.count(b"[") + line.count(b"{") <= _LEVELS:
        return
    count, depth = values_in(line)
    if count > MOST:
        raise OutOfBounds(f"a message of {count:,} values")
    if depth > _LEVELS:
        raise OutOfBounds(f"a message of {depth:,} levels")


class FrameReader:
    """Frames out of one stream.  They are checked for form only, and junk between them is passed over.

    `refused` says what came that is out of bounds: its sender is not to be heard any longer.
    """

    def __init__(self) -> None:
        self._partial = bytearray()
        self.refused = ""

    def take(self, data: bytes) -> list[dict[str, Any]]:
        """Return the frames of the lines that are complete now."""
        self._partial += data
        if len(self._partial) > LONGEST + len(data):
            self._partial.clear()
            self.refused = f"a message of more than {LONGEST:,} bytes"
        if b"\n" not in data:
            return []
        *lines, self._partial = self._partial.split(b"\n")
        frames: list[dict[str, Any]] = []
        for line in lines:
            if not line:
                continue
            try:
                if len(line) > _LEVELS:  # a shorter one cannot be out of bounds
                    check(line)
                text = line.decode()
                frame: Any
                frame, end = _parse(text)
            except OutOfBounds as error:
                self.refused = str(error)
                continue
            except (ValueError, RecursionError):
                continue  # junk that a cell wrote to our descriptor
            if end == len(text) and isinstance(frame, dict) and isinstance(frame.get("t"), str):
                frame["size"] = len(line)
                frames.append(cast("dict[str, Any]", frame))
        return frames


def decode(value: Any) -> Any:
    """Return the value of a JSON form that `worker.encode` can have written.

    Types: those of JSON, tuples, sets, bytes, dates, decimals.  Raises `ValueError` for anything else.
    """
    if type(value) not in (dict, list):
        return value
    try:
        return unbounded(value, _KINDS)
    except (TypeError, LookupError, ArithmeticError, RecursionError, AttributeError) as error:
        raise ValueError(f"no value that can be read ({type(error).__name__}: {error})") from None


def decode_within(value: Any, size: int, seconds: float) -> Any:
    """Decode a value of a frame of this many bytes; a large one in a thread, so that no clock and no Ctrl-C waits.

    Raises `ValueError` also where it takes longer than `seconds`.
    """
    if size <= _AT_ONCE:
        return decode(value)
    result: Future[Any] = Future()

    def work() -> None:
        try:
            result.set_result(decode(value))
        except ValueError as error:
            result.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return result.result(max(0.0, seconds))
    except TimeoutError:
        raise ValueError("a value that takes too long to read") from None


def _hashable(keys: list[Any]) -> list[Any]:
    """Return values that are to be hashed, unless many different ones share a hash: to tell these apart would take
    the square of their number."""
    groups: dict[int, list[Any]] = {}
    for key in keys:
        groups.setdefault(hash(key), []).append(key)
    for group in groups.values():
        if len(group) > _ALIKE and len({(type(k), repr(k)) for k in group}) > _ALIKE:
            raise ValueError("keys that were chosen to collide")
    return keys


def _dict(form: Any, kinds: Any) -> dict[Any, Any]:
    pairs = unpack_items(form, kinds)
    _hashable([key for key, _ in pairs])
    return dict(pairs)


def _int(form: Any, _: Any = None) -> int:
    if len(unpack_text(form)) > _DIGITS:
        raise ValueError("too many digits")
    return int(form, 16)


def _decimal(form: Any, _: Any) -> decimal.Decimal:
    number = decimal.Decimal(unpack_text(form)) if len(form) <= _DIGITS else decimal.Decimal("NaN")
    if number.is_finite() and number and abs(number.adjusted()) > _FARTHEST:
        raise ValueError("a decimal out of range")
    return number


_KINDS: dict[str, Callable[[Any, Any], Any]] = {
    **UNPACK,
    "dict": _dict,
    "set": lambda v, kinds: set(_hashable(unpack_items(v, kinds))),
    "frozenset": lambda v, kinds: frozenset(_hashable(unpack_items(v, kinds))),
    "int": _int,
    "decimal": _decimal,
}
