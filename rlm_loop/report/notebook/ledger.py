"""A ledger as HTML, for a notebook."""

from __future__ import annotations

from html import escape

from rlm_loop.accounting.attribution import Row
from rlm_loop.accounting.ledger import Call, Ledger
from rlm_loop.accounting.pivot import in_order, root_turns

# Colours are translucent and the text colour is inherited, so that light and dark notebook themes both work.
_CELL = "text-align:right;padding:.1em .8em .1em 0;border:0"
_NAME = "text-align:left;padding:.1em .8em .1em 0;border:0"
_BAR = "height:.7em;display:inline-block;background:rgba(0,114,178,{alpha})"
_WARN = "background:rgba(210,153,34,.3);border-radius:4px;padding:.1em .5em;margin:.2em 0"


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
