"""Pieces of HTML that the sections of a report share: a section, a table, a note, a place that may stay empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlm_loop.report.tables.table import Table
from rlm_loop.report.templates import safe
from rlm_loop.study import StudyError


def section(ident: str, label: str, inner: str) -> str:
    """A part of the page with its heading; nothing where there is nothing in it."""
    if not inner:
        return ""
    return f'<section aria-labelledby="{ident}"><h2 id="{ident}" tabindex="-1">{safe(label)}</h2>{inner}</section>'


def note(text: str) -> str:
    """Something that a reader has to know before believing what is beside it."""
    return f'<p class="warn" role="note">{safe(text)}</p>'


def small(*texts: str) -> str:
    """Remarks below a table or a figure."""
    return "".join(f'<p class="small">{safe(text)}</p>' for text in texts if text)


def folded(label: str, inner: str) -> str:
    """Something that is read on request."""
    return f'<details class="more"><summary>{safe(label)}</summary>{inner}</details>'


def or_why(make: Callable[[], str]) -> str:
    """What `make` returns; where the study or this machine cannot give it, the reason in its place."""
    try:
        return make()
    except StudyError as error:
        return note(str(error))


def table_html(table: Table, *, missed: str = "missed") -> str:
    """A table as the page shows it, its notes below; a cell that ends with the word `missed` is marked."""
    head = "".join(f'<th scope="col"{_side(i, table)}>{safe(column)}</th>' for i, column in enumerate(table.columns))
    body = "".join(f"<tr>{_cells(row, table, missed)}</tr>" for row in table.rows)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{safe(table.title)}"><table class="data">'
        f"<caption>{safe(table.title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f"{small(*table.notes)}"
    )


def _cells(row: Sequence[str], table: Table, missed: str) -> str:
    parts: list[str] = []
    for i, cell in enumerate(row):
        if i < table.labels:
            parts.append(f'<th scope="row">{safe(cell)}</th>')
            continue
        figure, space, word = cell.rpartition(" ")
        shown = (
            f'{safe(figure)} <span class="mark warn">{safe(word)}</span>' if space and word == missed else safe(cell)
        )
        parts.append(f'<td class="n">{shown}</td>')
    return "".join(parts)


def _side(i: int, table: Table) -> str:
    return "" if i < table.labels else ' class="n"'
