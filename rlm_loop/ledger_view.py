"""A ledger as a table of turns and causes: for pandas, and for a notebook.

A sub-call belongs to the turn of the root agent that made it: its own turns are counted anew from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Literal

from rlm_loop.attribution import RESIDUAL, Row

if TYPE_CHECKING:
    import pandas as pd

    from rlm_loop.ledger import Call, Ledger

#: What a table may be of.
Values = Literal["tokens", "first_sent", "resent", "cached"]

_READ: Mapping[str, Callable[[Row], int | None]] = {
    "tokens": lambda row: row.tokens,
    "first_sent": lambda row: row.tokens - row.resent,
    "resent": lambda row: row.resent,
    "cached": lambda row: row.cached,
}
_FIRST = ("template", "system", "tool_schema", "task")  # in the order in which a prompt begins

# Colours are translucent and the text colour is inherited, so that light and dark notebook themes both work.
_CELL = "text-align:right;padding:.1em .8em .1em 0;border:0"
_NAME = "text-align:left;padding:.1em .8em .1em 0;border:0"
_BAR = "height:.7em;display:inline-block;background:rgba(0,114,178,{alpha})"
_WARN = "background:rgba(210,153,34,.3);border-radius:4px;padding:.1em .5em;margin:.2em 0"


def root_turns(calls: Iterable[Call]) -> Iterator[tuple[int, Call]]:
    """Each call with the turn of the root agent in which it was made."""
    turn = 0
    for call in sorted(calls, key=lambda c: c.call):
        turn = call.turn if call.depth == 0 else turn
        yield turn, call


def in_order(causes: Iterable[str]) -> list[str]:
    """Causes as tables and figures show them: what a prompt begins with, the injectors, the rest, the residual."""
    return sorted(
        set(causes),
        key=lambda c: (
            c == RESIDUAL,
            _FIRST.index(c) if c in _FIRST else len(_FIRST) + (not c.startswith("scaffold:")),
            c,
        ),
    )


def pivot(ledger: Ledger, values: Values = "tokens", depth: int | None = None) -> pd.DataFrame:
    """See `Ledger.pivot`.  Raises `ValueError` for a name that is none of `Values`."""
    import pandas as pd

    if values not in _READ:
        raise ValueError(f"values={values!r} is none of {', '.join(_READ)}")
    cells: dict[int, dict[str, int | None]] = {}
    for turn, call in root_turns(list(ledger.calls)):
        if depth is not None and call.depth != depth:
            continue
        line = cells.setdefault(turn, {})
        for row in call.rows:
            before, value = line.get(row.cause, 0), _READ[values](row)
            line[row.cause] = None if before is None or value is None else before + value
    causes = in_order(cause for line in cells.values() for cause in line)
    table = [[line.get(cause, 0) for cause in causes] for line in cells.values()]
    frame = pd.DataFrame(
        table, index=pd.Index(list(cells), name="turn"), columns=pd.Index(causes, name="cause"), dtype="Int64"
    )
    return frame.sort_index()


def ledger_html(ledger: Ledger) -> str:
    """A ledger for a notebook: totals, tokens by cause (first sent, re-sent, cached), and the turns."""
    calls = list(ledger.calls)
    rows = [row for call in calls for row in call.rows]
    usage = ledger.usage
    facts = [
        f"{len(calls)} call{'' if len(calls) == 1 else 's'}",
        f"{_number(usage.input_tokens)} tokens in",
        f"{_number(usage.output_tokens)} out",
        f"by cause: {ledger.counting}" if ledger.counting else "",
        *([f"residual {ledger.residual:,}"] if ledger.residual else []),
    ]
    doubts = ledger.doubts()
    shown = [f'<div style="{_WARN}">{escape(line)}</div>' for line in doubts[:8]]
    if len(doubts) > len(shown):
        shown.append(f'<div style="{_WARN}">and {len(doubts) - len(shown)} more</div>')
    return "".join(
        [
            '<div class="rlm-loop-ledger">',
            f"<div>{escape(' · '.join(facts))}</div>",
            *shown,
            _by_cause(rows),
            _by_turn(calls),
            "</div>",
        ]
    )


def _by_cause(rows: list[Row]) -> str:
    largest = max((sum(r.tokens for r in rows if r.cause == c) for c in {r.cause for r in rows}), default=0) or 1
    lines: list[str] = []
    for cause in in_order(row.cause for row in rows):
        own = [row for row in rows if row.cause == cause]
        tokens, resent = sum(r.tokens for r in own), sum(r.resent for r in own)
        cached = None if any(r.cached is None for r in own) else sum(r.cached or 0 for r in own)
        bars = "".join(
            f'<span style="{_BAR.format(alpha=alpha)};width:{100 * share / largest:.1f}%"></span>'
            for share, alpha in ((tokens - resent, 0.85), (resent, 0.35))
        )
        figures = "".join(f'<td style="{_CELL}">{_number(n)}</td>' for n in (tokens, tokens - resent, resent, cached))
        lines.append(
            f'<tr><th scope="row" style="{_NAME};font-weight:normal">{escape(cause)}</th>{figures}'
            f'<td style="{_NAME};width:12em;white-space:nowrap">{bars}</td></tr>'
        )
    heads = ("tokens", "first sent", "re-sent", "from cache")
    head = "".join(f'<th scope="col" style="{_CELL}">{name}</th>' for name in heads)
    return (
        f'<table style="border-collapse:collapse"><thead><tr><th scope="col" style="{_NAME}">cause</th>{head}'
        f'<th scope="col" style="{_NAME}">dark: first sent, light: re-sent</th></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _by_turn(calls: list[Call]) -> str:
    table: dict[int, dict[str, int]] = {}
    for turn, call in root_turns(calls):
        line = table.setdefault(turn, {})
        for row in call.rows:
            line[row.cause] = line.get(row.cause, 0) + row.tokens
    causes = in_order(cause for line in table.values() for cause in line)
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(c)}</th>' for c in causes)
    body = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:normal">{turn}</th>'
        + "".join(f'<td style="{_CELL}">{line.get(c, 0):,}</td>' for c in causes)
        + f'<td style="{_CELL}"><b>{sum(line.values()):,}</b></td></tr>'
        for turn, line in sorted(table.items())
    )
    return (
        '<details style="margin:.25em 0"><summary style="cursor:pointer">by turn</summary>'
        f'<table style="border-collapse:collapse"><thead><tr><th scope="col" style="{_CELL}">turn</th>{head}'
        f'<th scope="col" style="{_CELL}">all</th></tr></thead><tbody>{body}</tbody></table></details>'
    )


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
