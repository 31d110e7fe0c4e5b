"""A small table that shows itself as text, Markdown, HTML and in a Rich console."""

from __future__ import annotations

import html
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path


@dataclass(frozen=True)
class Table:
    """Cells are ready-made text.  The first `labels` columns are names (left), the others figures (right).

    `notes` say what the figures include; every form of the table shows them.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    labels: int = 1

    def to_markdown(self) -> str:
        """The table for a README, its notes below."""
        rule = ["---" if i < self.labels else "---:" for i in range(len(self.columns))]
        lines = [_line(self.columns), _line(rule), *(_line(row) for row in self.rows)]
        return "\n".join([f"**{self.title}**", "", *lines, "", *self.notes]).rstrip() + "\n"

    def to_text(self, width: int | None = None) -> str:
        """The table for a terminal or a log, in plain characters; lines of at most `width`, where one is given."""
        room = sys.maxsize if width is None else width
        lines = fitted_lines(self.columns, self.rows, self.labels, room)
        return "\n".join([folded(self.title, room), *lines, *(folded(note, room) for note in self.notes)])

    def without_same(self, *columns: str) -> Table:
        """The table without those of these columns of names that say the same in every row."""
        same = {name for name in columns if len({row[self.columns.index(name)] for row in self.rows}) < 2}
        kept = [i for i, name in enumerate(self.columns) if name not in same]
        heads, *rows = ([row[i] for i in kept] for row in (self.columns, *self.rows))
        return replace(self, columns=heads, rows=rows, labels=self.labels - len(same))

    def to_html(self) -> str:
        """The table as HTML, its title as the caption."""
        sides = ["left" if i < self.labels else "right" for i in range(len(self.columns))]

        def line(kind: str, cells: Sequence[str]) -> str:
            made = (f"<{kind} style='text-align:{side}'>{html.escape(c)}</{kind}>" for side, c in zip(sides, cells))
            return f"<tr>{''.join(made)}</tr>"

        head, body = line("th", self.columns), "".join(line("td", row) for row in self.rows)
        notes = "<br>".join(html.escape(n) for n in self.notes)
        caption = f"<caption style='text-align:left'><b>{html.escape(self.title)}</b></caption>"
        small = f"<p style='font-size:smaller'>{notes}</p>" if notes else ""
        return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>{small}"

    _repr_html_ = to_html

    def __str__(self) -> str:
        return self.to_text()


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


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
    room = width - min(_total(natural[:labels]), max(width // 2, _LEAST))
    parts, left = [list(range(labels))], room
    for i in range(labels, len(natural)):
        if left < natural[i] + _GAP and len(parts[-1]) > labels:
            parts.append(list(range(labels)))
            left = room
        parts[-1].append(i)
        left -= natural[i] + _GAP
    return parts


def folded(text: str, width: int) -> str:
    """Lines of at most so many characters, what goes on being indented; a longer word (a path) stays whole."""
    lines: list[str] = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        folds = textwrap.TextWrapper(width, indent, f"{indent}  ", break_long_words=False, break_on_hyphens=False)
        lines += [line] if len(line) <= width else folds.wrap(line.strip())
    return "\n".join(lines)


def _wrapped(cell: str, width: int) -> list[str]:
    return [cell] if len(cell) <= width else textwrap.wrap(cell, width) or [""]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def write_between(file: str | Path, name: str, text: str) -> None:
    """Put `text` (Markdown) between the marks of that name in a file, in place of what stood there.

    The marks are the lines `<!-- name: written by ... -->` and `<!-- end of name -->`.  Everything else in the file
    stays as it is.  Raises `ValueError` where a mark is missing.
    """
    readme, word = Path(file), re.escape(name)
    marks = rf"(<!-- {word}: written by [^\n]* -->\n).*?(<!-- end of {word} -->)"
    new, found = re.subn(marks, lambda m: f"{m[1]}\n{text}\n\n{m[2]}", readme.read_text("utf-8"), count=1, flags=re.S)
    if not found:
        raise ValueError(
            f"{readme} has no marks for {name!r}: put <!-- {name}: written by ... --> and <!-- end of {name} --> there"
        )
    readme.write_text(new, "utf-8")
