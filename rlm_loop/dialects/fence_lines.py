"""Where Markdown fences stand in a text: their lines, widths and the list items around them (CommonMark 4.5, 5.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_FENCE = re.compile(r"([ \t]*)((?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})(.*)", re.DOTALL)
_ITEM = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+)(?=\S)")
_WORD = re.compile(r"[^\s{},;:=()\[\]]*")


@dataclass(frozen=True)
class FenceMark:
    """A run of fence characters that starts a line, or that ends a line of code (`info` is None).

    `indent` is in columns and counts a list marker before the fence, `info` what follows the run on its line.
    """

    line: int
    indent: int
    run: str
    info: str | None
    in_item: bool = False

    def closes(self, opener: FenceMark) -> bool:
        """Whether this mark is a closing fence for `opener`: the same character, no shorter, and nothing after it."""
        return (
            self.info == ""
            and not self.in_item
            and self.run[0] == opener.run[0]
            and len(self.run) >= len(opener.run)
            and self.indent <= opener.indent + 3
        )

    @cached_property
    def language(self) -> str:
        """The first word of the info string in lower case; `{python}` and `{.python #id}` count as `python`."""
        word = _WORD.match((self.info or "").lstrip("{. \t"))
        return word.group().lower() if word else ""


def find_marks(lines: Sequence[str]) -> list[FenceMark]:
    marks: list[FenceMark] = []
    for number, line in enumerate(lines):
        if ("```" in line or "~~~" in line) and (mark := _mark(number, line)) is not None:
            marks.append(mark)
    return marks


def _mark(number: int, line: str) -> FenceMark | None:
    match = _FENCE.fullmatch(line)
    if match is not None and not (match[3][0] == "`" and "`" in match[4]):  # else it is a span of inline code
        return FenceMark(number, _column(match[1] + (match[2] or "")), match[3], match[4].strip(), match[2] is not None)
    tail = line.rstrip()
    code = tail.rstrip("`")
    if len(tail) - len(code) >= 3 and code.strip() and "`" not in code and "#" not in code:
        return FenceMark(number, 0, tail[len(code) :], None)
    return None


def _column(whitespace: str) -> int:
    return len(whitespace.expandtabs(4)) if whitespace else 0


def indent_of(line: str) -> int:
    """The width of the whitespace before the first other character, in columns with tab stops of four."""
    return _column(line[: len(line) - len(line.lstrip(" \t"))])


def without_indent(line: str, columns: int) -> str:
    """`line` without at most `columns` columns of leading whitespace; what remains of a tab becomes spaces."""
    column = 0
    for at, char in enumerate(line):
        if column >= columns or char not in " \t":
            return " " * (column - columns) + line[at:]
        column += 4 - column % 4 if char == "\t" else 1
    return " " * (column - columns)


class ListItems:
    """The columns at which the text of the open list items begins, kept up to date line by line."""

    def __init__(self) -> None:
        self._columns: list[int] = []
        self._after_blank = True

    def read(self, line: str) -> None:
        if not line.strip():
            self._after_blank = True
            return
        item = _ITEM.match(line)
        if self._columns and (item is not None or self._after_blank):  # else it may be a paragraph's lazy second line
            indent = indent_of(line)
            while self._columns and indent < self._columns[-1]:
                self._columns.pop()
        if item is not None:
            self._columns.append(_column(item[0]) if len(item[3]) < 5 else _column(item[1] + item[2]) + 1)
        self._after_blank = False

    def hold(self, mark: FenceMark) -> bool:
        """Whether a fence may stand at this mark's column: at most three past the margin or an item's text."""
        return mark.in_item or mark.indent <= 3 or any(0 <= mark.indent - column <= 3 for column in self._columns)
