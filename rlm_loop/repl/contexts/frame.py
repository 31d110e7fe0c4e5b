"""The line about a pandas data frame, and a frame as CSV; pandas itself is not needed."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterable
from typing import Any

from rlm_loop.repl.text import clip

#: Small models write `df` whatever they are told, so this makes it in each block; chosen among four endings on dev
#: tasks, in all loops (`experiments/context_line`).
START = ". Start each block of code with df = context.copy()"
FEW, FEW_NUMBERS = 12, 6
"""A column with at most so many different values (numbers) is told by its values."""
_LONG = 40  # characters of a value; a column with longer ones is told by its type
_ROWS = 200_000  # of a longer frame the values are not counted
_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex", "M": "datetime", "m": "timedelta"}

short = reprlib.Repr()
short.maxstring = short.maxother = 80
short.maxlist = short.maxtuple = short.maxdict = short.maxset = 3
short.maxlevel = 2


def is_frame(value: Any) -> bool:
    """Return True for a pandas data frame; there is none where nobody has imported pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def whole_items(head: str, lead: str, items: Iterable[str], room: int) -> str:
    """Return `head`, then `lead` and as many whole items as fit into the room, with `...` where there are more.

    A first item that does not fit is cut; where nothing of it fits, `head` alone.
    """
    lines: list[str] = []
    for item in items:
        longer = f"{lines[-1]}, {item}" if lines else head + lead + item
        if len(longer) > room:
            if not lines:
                return longer[:room] if len(head + lead) < room else head[:room]
            return next((more for text in reversed(lines) if len(more := f"{text}, ...") <= room), lines[0])
        lines.append(longer)
    return lines[-1] if lines else head


def frame_line(frame: Any, head: str, room: int) -> str:
    """Return `head` and the columns of a frame, their names quoted, as many as the room allows.

    Where all have room, a first line of code ends the line.  Further room goes to the name of the index, the columns'
    types, the values of columns that have few (fewest first), and the first rows.
    """
    names = [*map(short.repr, frame.columns)]
    parts, more = list(names), ""

    def line(parts: list[str], more: str) -> str:
        return f"{head}; columns: {', '.join(parts)}{more}{START}"

    if not names or len(line(parts, more)) > room:
        return whole_items(head, "; columns: ", names, room)
    index = ", ".join(short.repr(n) for n in frame.index.names if n is not None)
    if index and len(line(parts, longer := f"; index: {index}")) <= room:
        more = longer
    few = {at: values for at in range(len(names)) if (values := _few(frame.iloc[:, at]))}
    described = [(at, _kind(frame.iloc[:, at])) for at in range(len(names))]
    described += [(at, ", ".join(few[at])) for at in sorted(few, key=lambda at: len(few[at]))]
    for at, text in described:
        trial = [*parts[:at], f"{names[at]} ({text})", *parts[at + 1 :]]
        if len(line(trial, more)) <= room:
            parts = trial
    fitting = line(parts, more)
    rows = _csv(frame.head(_rows_in(frame, room)), header=False).splitlines(keepends=True)
    for count in range(1, len(rows) + 1):
        what = "row" if count == 1 else f"{count} rows"
        longer = line(parts, f"{more}; the first {what} as CSV: {''.join(rows[:count])!r}")
        if len(longer) > room:
            break
        fitting = longer
    return fitting


def _few(column: Any) -> list[str]:
    """Return the values of a column that has few, sorted, a missing one last; none for booleans and times."""
    if column.dtype.kind in "bMm" or not 0 < len(column) <= _ROWS:
        return []
    try:
        known = column.dropna().unique().tolist()
    except TypeError:  # of lists, say
        return []
    if len(known) > (FEW_NUMBERS if column.dtype.kind in "iuf" else FEW):
        return []
    try:
        known.sort()
    except TypeError:
        known.sort(key=str)
    texts = [*map(short.repr, known + column[column.isna()].tolist()[:1])]
    return texts if max(map(len, texts)) <= _LONG else []


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


def _rows_in(frame: Any, characters: int) -> int:
    """Return the most rows that so many characters can hold: a row has one for each column at least."""
    return characters // max(1, len(frame.columns)) + 1


def frame_text(frame: Any, limit: int) -> str:
    """A frame as CSV of at most `limit` characters: whole rows of the beginning and the end, and how many are left out.

    Where there is no room for whole rows it is cut as any text is.
    """
    most = _rows_in(frame, limit)
    head = _csv(frame.head(most), header=True)
    if len(frame) <= most and len(head) <= limit:
        return head
    tail = _csv(frame.tail(most), header=False)
    room = (limit - len(f"... [{len(frame)} rows left out] ...\n")) // 2
    first = head[: head.rfind("\n", 0, max(room, 0)) + 1]
    last = tail[tail.find("\n", -room - 1) + 1 :] if room > 0 else ""
    missing = len(frame) + 1 - first.count("\n") - last.count("\n")
    return f"{first}... [{missing} rows left out] ...\n{last}" if first else clip(head, limit)[0]
