"""A table in lines of at most so many characters: figures that do not fit beside the names go below, texts wrap."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

_GAP = 2
_LEAST = 12  # characters of a column of names that is made narrower


def fitted_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], labels: int, width: int) -> Iterator[str]:
    """The lines of a table, its head ruled off; a word that is longer than `width` stays whole.

    The first `labels` columns are names, and begin each part of a table that is too wide for one.
    """
    natural = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    for number, part in enumerate(_parts(natural, labels, width)):
        if number:
            yield ""
        widths = [natural[i] for i in part]
        while _total(widths) > width and (wide := max(widths)) > _LEAST:
            widths[widths.index(wide)] = max(_LEAST, wide - (_total(widths) - width))
        for row in (columns, *rows):
            cells = [_wrapped(row[i], w) for i, w in zip(part, widths, strict=True)]
            for pieces in zip_longest(*cells, fillvalue=""):
                padded = [
                    p.ljust(w) if i < labels else p.rjust(w) for i, p, w in zip(part, pieces, widths, strict=True)
                ]
                yield (" " * _GAP).join(padded).rstrip()
            if row is columns:
                yield (" " * _GAP).join("-" * w for w in widths)


def _parts(natural: Sequence[int], labels: int, width: int) -> list[list[int]]:
    """The columns of each part of a table that is at most so wide; each part begins with the names."""
    names = list(range(labels))
    room = width - min(_total(natural[:labels]), max(width // 2, _LEAST))
    parts, left = [list(names)], room
    for i in range(labels, len(natural)):
        if left < natural[i] + _GAP and len(parts[-1]) > len(names):
            parts.append(list(names))
            left = room
        parts[-1].append(i)
        left -= natural[i] + _GAP
    return parts


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


def _wrapped(cell: str, width: int) -> list[str]:
    return [cell] if len(cell) <= width else textwrap.wrap(cell, width) or [""]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)
