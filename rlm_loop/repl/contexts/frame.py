"""What is told and shown of a pandas data frame; pandas itself is not needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from rlm_loop.repl.contexts.preview import whole_items, width
from rlm_loop.repl.text import clip

FEW, FEW_NUMBERS = 12, 6
"""A column that has at most so many different values (numbers) has few, and they are told."""
_LONG = 40  # characters of a value; longer ones are not told
_ROWS = 1_000_000  # of a longer frame the values are not counted
_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex", "M": "datetime", "m": "timedelta"}


def is_frame(value: Any) -> bool:
    """Whether a value is a pandas data frame; there is none where nobody has imported pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def frame_columns(
    frame: Any, head: str, shown: Callable[[Any], str], room: int, *, end: str = "", types_first: bool = False
) -> str:
    """`head` and the columns of a frame, whole, as many as `room` bytes allow, and `end` where all have their room.

    Where there is room for all of them: also what the index is called, the values of columns that have few (fewest
    first), the types of the others, and the first rows.  `shown` says a name or a value.  With `types_first` every
    column has its type before any has its values.
    """

    def named(labels: Iterable[Any]) -> list[str]:
        return [n if isinstance(n, str) and n.isidentifier() else shown(n) for n in labels]

    names = named(frame.columns)
    lead = f"{head}; columns: "
    parts, more = list(names), ""

    def line(parts: list[str], more: str) -> str:
        return f"{lead}{', '.join(parts)}{more}{end}"

    def fits(parts: list[str], more: str) -> bool:
        return width(line(parts, more)) <= room

    if not fits(parts, more):
        end = ""
    if not names or not fits(parts, more):
        return whole_items(lead, names, room) or head
    index = named(n for n in frame.index.names if n is not None)
    if index and fits(parts, said := f"; index: {', '.join(index)}"):
        more = said
    few = {at: values for at in range(len(names)) if (values := _few(frame.iloc[:, at], shown))}
    values = [(at, f"{names[at]} ({', '.join(few[at])})") for at in sorted(few, key=lambda at: len(few[at]))]
    types = [(at, f"{names[at]} {_kind(frame.iloc[:, at])}") for at in range(len(names))]
    for described in (types, values) if types_first else (values, types):
        for at, said in described:
            free = described is values or parts[at] == names[at]  # values say the type as well
            if free and fits(trial := [*parts[:at], said, *parts[at + 1 :]], more):
                parts = trial
    rows = _csv(frame.head(room), header=False).splitlines(keepends=True)
    told = line(parts, more)
    for count in range(1, len(rows) + 1):
        what = "row" if count == 1 else f"{count} rows"
        if not fits(parts, said := f"{more}; the first {what} as CSV: {''.join(rows[:count])!r}"):
            break
        told = line(parts, said)
    return told


def _few(column: Any, shown: Callable[[Any], str]) -> list[str]:
    """The values of a column that has few, in order, what is missing last; none for another, or for true and false."""
    if column.dtype.kind in "bMm" or not 0 < len(column) <= _ROWS:
        return []
    try:
        most = FEW_NUMBERS if column.dtype.kind in "iuf" else FEW
        if column.head(1000).nunique() > most or column.nunique() > most:
            return []
        values = column.unique().tolist()
    except TypeError:  # of lists, say
        return []
    missing = [v for v in values if v is None or v != v]
    known = [v for v in values if not (v is None or v != v)]
    try:
        known.sort()
    except TypeError:
        known.sort(key=str)
    told = list(map(shown, known + missing[:1]))
    return told if max(map(len, told)) <= _LONG else []


def _kind(column: Any) -> str:
    """The type of a column's values in a word."""
    if column.dtype.kind in _KINDS:
        return _KINDS[column.dtype.kind]
    values = column.head(100).dropna()
    texts = len(values) > 0 and all(isinstance(value, str) for value in values)
    return "str" if texts else str(column.dtype)


def _csv(frame: Any, *, header: bool) -> str:
    """A frame as CSV; an index that only counts the rows is left out."""
    return frame.to_csv(index=type(frame.index).__name__ != "RangeIndex", header=header, lineterminator="\n")


def frame_text(frame: Any, limit: int) -> str:
    """A frame as CSV of at most `limit` characters: whole rows of the beginning and the end, and how many are left out.

    Where there is no room for whole rows it is cut as any text is.
    """
    head = _csv(frame.head(limit), header=True)  # a row has one character or more
    if len(frame) <= limit and len(head) <= limit:
        return head
    tail = _csv(frame.tail(limit), header=False)
    room = (limit - len(f"... [{len(frame)} rows left out] ...\n")) // 2
    first = head[: head.rfind("\n", 0, max(room, 0)) + 1]
    last = tail[tail.find("\n", -room - 1) + 1 :] if room > 0 else ""
    left = len(frame) + 1 - first.count("\n") - last.count("\n")
    return f"{first}... [{left} rows left out] ...\n{last}" if first else clip(head, limit)[0]
