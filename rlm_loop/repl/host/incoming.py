"""Read what a worker sends, and trust none of it.

A cell can write anything to the worker's descriptor, so nothing in it may lead to an import, to a class that it names,
or to more memory than it took to send.  `check` bounds a line in bytes, depth and count before it is parsed.  `decode`
makes values of a closed list of types, all of which this module has imported before any cell ran.  An honest worker
stays within these bounds: what would not fit it sends as text (`worker.portable`).
"""

from __future__ import annotations

import base64
import datetime
import decimal
import fractions
import re
import sys
from collections.abc import Callable
from typing import Any, cast

from rlm_loop.repl.worker import DEEPEST, TAG, SubAnswer, SubFailure, values_in

LONGEST = 48 << 20
"""Bytes of one frame: two values of the largest size that a worker sends, and what was printed and displayed."""
MOST = 2_000_000
"""Values in one frame."""

_LEVELS = 4 * DEEPEST  # of JSON: a value takes up to three for one of its own
SHORT = _LEVELS
"""Bytes of a line that cannot be out of bounds."""
_DIGITS = 1_000_000  # of a number; arithmetic beyond it takes minutes
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
    """The value of a JSON form that `worker.encode` can have written.

    Types: those of JSON, tuples, sets, bytes, complex numbers, dates and times, ranges, decimals, fractions; a pandas
    table where this process has imported pandas itself.  Raises `ValueError` for anything else.
    """
    try:
        return _decoded(value)
    except (TypeError, LookupError, ArithmeticError, RecursionError, AttributeError) as error:
        raise ValueError(f"no value that can be read ({type(error).__name__}: {error})") from None


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(v) for v in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    form = cast("dict[str, Any]", value)
    kind = form.get(TAG)
    if kind is None:
        return {k: _decoded(v) for k, v in form.items()}
    return _KINDS[kind](form["v"])


def _items(form: Any) -> list[Any]:
    if not isinstance(form, list):
        raise TypeError("no list")
    return [_decoded(v) for v in cast("list[Any]", form)]


def _keys(keys: list[Any]) -> list[Any]:
    """Keys of a set or dict; many with the same hash would take the square of their number to compare."""
    if len(keys) > 1000 and len({hash(k) for k in keys}) < len(set(map(repr, keys))) // 2:
        raise ValueError("keys that were chosen to collide")
    return keys


def _dict(form: Any) -> dict[Any, Any]:
    pairs = [(k, v) for k, v in _items(form)]
    return dict(zip(_keys([k for k, _ in pairs]), (v for _, v in pairs)))


def _text(form: Any) -> str:
    if not isinstance(form, str):
        raise TypeError("no text")
    return form


def _bytes(form: Any) -> bytes:
    return base64.b64decode(_text(form), validate=True)


def _int(form: Any) -> int:
    if len(_text(form)) > _DIGITS:
        raise ValueError("too many digits")
    return int(form, 16)


def _ints(form: Any, count: int) -> list[int]:
    numbers = _items(form)
    if len(numbers) != count or not all(type(n) is int for n in numbers):
        raise TypeError(f"not {count} whole numbers")
    return numbers


def _complex(form: Any) -> complex:
    real, imag = _items(form)
    return complex(float(real), float(imag))


def _decimal(form: Any) -> decimal.Decimal:
    number = decimal.Decimal(_text(form)) if len(form) <= _DIGITS else decimal.Decimal("NaN")
    if number.is_finite() and number and abs(number.adjusted()) > _FARTHEST:
        raise ValueError("a decimal out of range")
    return number


def _fraction(form: Any) -> fractions.Fraction:
    over, under = form
    if len(over) + len(under) > _DIGITS // 10:  # the greatest common divisor takes the square of it
        raise ValueError("too many digits")
    return fractions.Fraction(_int(over), _int(under))


_DTYPES = re.compile(
    r"object|bool|boolean|u?int(8|16|32|64)|U?Int(8|16|32|64)|float(16|32|64)|Float(32|64)|complex(64|128)|str|string"
    r"|category|datetime64\[(s|ms|us|ns)(, UTC)?\]|timedelta64\[(s|ms|us|ns)\]"
)


def _dtype(name: Any) -> str:
    if not (isinstance(name, str) and _DTYPES.fullmatch(name)):
        raise ValueError("no column type that is taken from a worker")
    return name


def _table(form: Any) -> Any:
    """A table: built by the pandas that this process has chosen to import, from columns that were counted first."""
    pandas: Any = sys.modules.get("pandas")
    if pandas is None:
        raise ValueError("a table, and this process has not imported pandas")
    dtypes, labels = [_dtype(d) for d in form["dtypes"]], _items(form["index"])
    columns, headings, names = [_items(d) for d in form["data"]], _items(form["columns"]), _items(form["names"])
    if len(columns) != len(dtypes) or len(columns) != len(headings) or any(len(c) != len(labels) for c in columns):
        raise ValueError("a table with columns of different lengths")
    index = _index(pandas, labels, names, _dtype(form["index_dtype"]))
    series = [pandas.Series(c, index=index, dtype=object).astype(d) for c, d in zip(columns, dtypes)]
    if form["series"]:
        return series[0].rename(headings[0])
    whole = pandas.concat(series, axis=1) if series else pandas.DataFrame(index=index)
    whole.columns = _index(pandas, headings, _items(form["labels"]), None)
    return whole


def _index(pandas: Any, labels: list[Any], names: list[Any], dtype: str | None) -> Any:
    if len(names) != 1:
        return pandas.MultiIndex.from_tuples(labels, names=names)
    return pandas.Index(labels, dtype=dtype, name=names[0])


_KINDS: dict[str, Callable[[Any], Any]] = {
    "dict": _dict,
    "int": _int,
    "str": lambda v: _bytes(v).decode("utf-8", "surrogatepass"),
    "tuple": lambda v: tuple(_items(v)),
    "set": lambda v: set(_keys(_items(v))),
    "frozenset": lambda v: frozenset(_keys(_items(v))),
    "bytes": _bytes,
    "bytearray": lambda v: bytearray(_bytes(v)),
    "complex": _complex,
    "datetime": lambda v: datetime.datetime.fromisoformat(_text(v)),
    "date": lambda v: datetime.date.fromisoformat(_text(v)),
    "time": lambda v: datetime.time.fromisoformat(_text(v)),
    "timedelta": lambda v: datetime.timedelta(*_ints(v, 3)),
    "range": lambda v: range(*_ints(v, 3)),
    "decimal": _decimal,
    "fraction": _fraction,
    "answer": lambda v: SubAnswer(_text(v)),
    "failure": lambda v: SubFailure(_text(v)),
    "table": _table,
}
