"""A small table that shows itself as text, Markdown, HTML and in a Rich console."""

from __future__ import annotations

import html
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlm_loop.report.tables.fitting import fitted_lines, folded


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

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells for {len(self.columns)} columns: {row}")

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
        return replace(self._of(kept), labels=self.labels - len(same))

    def _of(self, chosen: Sequence[int]) -> Table:
        """The columns at these places."""
        rows = [[row[i] for i in chosen] for row in self.rows]
        return replace(self, columns=[self.columns[i] for i in chosen], rows=rows)

    def to_html(self) -> str:
        """The table as HTML, its title as the caption."""
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.columns)
        body = "".join(f"<tr>{self._html_row(row)}</tr>" for row in self.rows)
        notes = "<br>".join(html.escape(n) for n in self.notes)
        caption = f"<caption style='text-align:left'><b>{html.escape(self.title)}</b></caption>"
        small = f"<p style='font-size:smaller'>{notes}</p>" if notes else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{small}"

    _repr_html_ = to_html

    def _html_row(self, row: Sequence[str]) -> str:
        sides = ["left" if i < self.labels else "right" for i in range(len(row))]
        return "".join(f"<td style='text-align:{s}'>{html.escape(c)}</td>" for s, c in zip(sides, row, strict=True))

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        shown = RichTable(title=self.title, title_justify="left", title_style="bold", header_style="bold")
        for i, column in enumerate(self.columns):
            shown.add_column(Text(column), justify="left" if i < self.labels else "right", no_wrap=i < self.labels)
        for row in self.rows:
            shown.add_row(*(Text(cell) for cell in row))
        return Group(shown, *(Text(note, style="dim") for note in self.notes))

    def __str__(self) -> str:
        return self.to_text()


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
