"""A table in lines of at most so many characters: figures that do not fit beside the names go below, texts wrap."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import Protocol


class Cells(Protocol):
    """What is needed of a `Table`."""

    @property
    def title(self) -> str: ...
    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def rows(self) -> Sequence[Sequence[str]]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def labels(self) -> int: ...


_GAP = 2
_LEAST = 12  # characters of a column of names that is made narrower


def columns_within(table: Cells, width: int) -> list[list[int]]:
    """The columns of each part of a table that is at most so wide; each part begins with the names."""
    names = list(range(table.labels))
    natural = _widths(table)
    held = min(_total([natural[i] for i in names]), max(width // 2, _LEAST))
    parts, left = [list(names)], width - held
    for i in range(table.labels, len(table.columns)):
        if left < natural[i] + _GAP and len(parts[-1]) > len(names):
            parts.append(list(names))
            left = width - held
        parts[-1].append(i)
        left -= natural[i] + _GAP
    return parts


def fitted_text(table: Cells, width: int) -> str:
    """The table as `Table.to_text`, in lines of at most `width` characters; a word that is longer stays whole."""
    lines = folded(table.title, width).splitlines()
    for number, part in enumerate(columns_within(table, width)):
        lines += [""] * (number > 0) + _part(table, part, width)
    return "\n".join([*lines, *(folded(note, width) for note in table.notes)])


def folded(text: str, width: int) -> str:
    """Lines of at most so many characters, what goes on being indented; a longer word (a path) stays whole."""
    return "\n".join(_folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    wrapper = textwrap.TextWrapper(
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(wrapper.wrap(line.strip()))


def _part(table: Cells, part: Sequence[int], width: int) -> list[str]:
    natural = _widths(table)
    widths = [natural[i] for i in part]
    while _total(widths) > width and (wide := max(widths)) > _LEAST:
        widths[widths.index(wide)] = max(_LEAST, wide - (_total(widths) - width))
    lines: list[str] = []
    for row in (table.columns, *table.rows):
        cells = [_wrapped(row[i], w) for i, w in zip(part, widths, strict=True)]
        for pieces in zip_longest(*cells, fillvalue=""):
            padded = [
                p.ljust(w) if i < table.labels else p.rjust(w) for i, p, w in zip(part, pieces, widths, strict=True)
            ]
            lines.append((" " * _GAP).join(padded).rstrip())
        if row is table.columns:
            lines.append((" " * _GAP).join("-" * w for w in widths))
    return lines


def _wrapped(cell: str, width: int) -> list[str]:
    return [cell] if len(cell) <= width else textwrap.wrap(cell, width) or [""]


def _widths(table: Cells) -> list[int]:
    return [max(len(row[i]) for row in (table.columns, *table.rows)) for i in range(len(table.columns))]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)
