"""Read what a worker sends, and trust none of it.

A cell can write anything to the worker's descriptor, so nothing in it may lead to an import, to a class that it names,
or to more memory than it took to send.  `check` bounds a line in bytes, depth and count before it is parsed.  `decode`
makes values of a closed list of types, all of which this module has imported before any cell ran.  An honest worker
stays within these bounds: what would not fit it sends as text (`worker.portable`).
"""

from __future__ import annotations

import decimal
import fractions
import re
import threading
from collections.abc import Callable
from typing import Any

from rlm_loop.repl.worker import DEEPEST, UNPACK, unpack_items, unpack_table, unpack_text, values_in
from rlm_loop.repl.worker import decode as unbounded

LONGEST = 48 << 20
"""Bytes of one frame: two values of the largest size that a worker sends, and what was printed and displayed."""
MOST = 2_000_000
"""Values in one frame."""

_LEVELS = 4 * DEEPEST  # of JSON: a value takes up to three for one of its own
SHORT = _LEVELS
"""Bytes of a line that cannot be out of bounds."""
_DIGITS = 1_000_000  # of a number; arithmetic beyond it takes minutes
_ALIKE = 16  # different keys that may share a hash
_AT_ONCE = 1 << 20  # bytes of a frame that are decoded at once: some 30 ms
_FARTHEST = 100_000  # decimal places; as an int, `Decimal("1e999999999")` would fill the memory


class OutOfBounds(ValueError):
    """A worker sent what no honest one would.  The text says what."""


def check(line: bytes) -> None:
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


def decode(value: Any) -> Any:
    """Return the value of a JSON form that `worker.encode` can have written.

    Types: those of JSON, tuples, sets, bytes, complex numbers, dates and times, ranges, decimals, fractions; a pandas
    table where this process has imported pandas itself.  Raises `ValueError` for anything else.
    """
    if type(value) not in (dict, list):
        return value
    try:
        return unbounded(value, _Kinds(_KINDS))
    except (TypeError, LookupError, ArithmeticError, RecursionError, AttributeError) as error:
        raise ValueError(f"no value that can be read ({type(error).__name__}: {error})") from None


def decode_within(value: Any, size: int, seconds: float) -> Any:
    """Decode a value of a frame of this many bytes; a large one in a thread, so that no clock and no Ctrl-C waits.

    Raises `ValueError` also where it takes longer than `seconds`.
    """
    if size <= _AT_ONCE:
        return decode(value)
    results: list[Any] = []
    failures: list[ValueError] = []

    def work() -> None:
        try:
            results.append(decode(value))
        except ValueError as error:
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    if failures:
        raise failures[0]
    if not results:
        raise ValueError("a value that takes too long to read")
    return results[0]


class _Kinds(dict[str, Callable[[Any, Any], Any]]):
    """Decoders of the tagged forms, made anew for each frame, since `digits` are counted over all of it."""

    digits = 0


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


def _fraction(form: Any, kinds: Any) -> fractions.Fraction:
    over, under = form
    kinds.digits += len(over) + len(under)
    if kinds.digits > _DIGITS // 10:  # the greatest common divisor takes the square of it
        raise ValueError("too many digits")
    return fractions.Fraction(_int(over), _int(under))


_DTYPES = re.compile(
    r"object|bool|boolean|u?int(8|16|32|64)|U?Int(8|16|32|64)|float(16|32|64)|Float(32|64)|complex(64|128)|str|string"
    r"|category|datetime64\[(s|ms|us|ns)(, UTC)?\]|timedelta64\[(s|ms|us|ns)\]"
)


def _table(form: Any, kinds: Any) -> Any:
    """A table: built by the pandas that this process has chosen to import, from columns that were counted first."""
    for name in (*form["dtypes"], form["index_dtype"]):
        if not (isinstance(name, str) and _DTYPES.fullmatch(name)):
            raise ValueError("no column type that is taken from a worker")
    count, columns = len(form["index"]), form["data"]
    counts = {len(columns), len(form["dtypes"]), len(form["columns"])}
    if len(counts) > 1 or any(len(column) != count for column in columns):
        raise ValueError("a table with columns of different lengths")
    for dtype, column in zip((*form["dtypes"], form["index_dtype"]), (*columns, form["index"]), strict=True):
        if dtype.startswith(("datetime", "timedelta")) and any(isinstance(v, str) for v in column):
            raise ValueError("a date as a text, of which pandas would try every format")
        if dtype == "category" or column is form["index"]:
            _hashable(unpack_items(column, kinds))
    _hashable(unpack_items(form["columns"], kinds))
    return unpack_table(form, kinds)


_KINDS: dict[str, Callable[[Any, Any], Any]] = {
    **UNPACK,
    "dict": _dict,
    "set": lambda v, kinds: set(_hashable(unpack_items(v, kinds))),
    "frozenset": lambda v, kinds: frozenset(_hashable(unpack_items(v, kinds))),
    "int": _int,
    "decimal": _decimal,
    "fraction": _fraction,
    "table": _table,
}
