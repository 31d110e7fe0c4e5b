"""Runs, ledgers and call trees as HTML for a notebook: values for the templates in `views.html`.

There is no script in any of it, and what a model, a tool or a provider wrote is escaped.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from rlm_loop.actions import Display
from rlm_loop.report.call_tree import lines
from rlm_loop.report.notebook.formatting import (
    answer_text,
    causes_title,
    clipped,
    counted,
    ending,
    labelled,
    most_first,
    number,
    plural,
    prose,
    turn_head,
)
from rlm_loop.report.tables.table import Table
from rlm_loop.report.templates import macros
from rlm_loop.traces.redact import redact

if TYPE_CHECKING:
    from rlm_loop.accounting.ledger import Ledger
    from rlm_loop.accounting.tree import TraceTree
    from rlm_loop.outcome import Outcome, Turn

#: Warnings of a ledger that are shown.
_WARNINGS = 8


def view(name: str, *values: Any, **named: Any) -> str:
    """Render a macro of `views.html` with these values."""
    return str(getattr(macros("notebook/views.html"), name)(*values, **named))


def outcome_html(outcome: Outcome) -> str:
    """An outcome: the answer, why the run ended, what it cost, every turn, tokens by cause."""
    ledger, turns, seconds = outcome.ledger, plural(outcome.steps, "turn"), f"{outcome.seconds:.1f} s"
    facts = (outcome.agent, outcome.model, turns, counted(outcome.usage), seconds)
    return view(
        "outcome",
        stop=str(outcome.stop),
        answered=outcome.answered,
        reason=clipped(ending(outcome)),
        question=clipped(outcome.question),
        answer=clipped(answer_text(outcome)),
        facts=" · ".join(fact for fact in facts if fact),
        turns=[turn_values(turn) for turn in outcome.turns],
        causes=(causes_title(ledger.counting), most_first(ledger.by_cause())),
        trace=outcome.trace,
    )


def turn_values(turn: Turn) -> dict[str, Any]:
    """A turn for a template; each part is its kind, its label (a picture's: its type) and its text."""
    parts: list[tuple[str, str, str]] = []
    *before, after = prose(turn)
    for words, action, observation in zip(before, turn.actions, turn.observations, strict=True):
        parts += [("prose", "", clipped(words))] if words else []
        parts += [("text", label, clipped(text.rstrip())) for label, text in labelled(action, observation)]
        parts += [_display(display) for display in observation.displays]
    failed = any(o.failure is not None for o in turn.observations)
    parts += [("prose", "", clipped(after))] if after else []
    return {"head": turn_head(turn), "failed": failed, "parts": parts}


def _display(display: Display) -> tuple[str, str, str]:
    """A picture or table of a cell; an SVG as an image, so that its scripts do not run."""
    if display.mime in ("image/png", "image/jpeg"):
        return "image", display.mime, display.data
    data = redact(display.data)
    if display.mime == "image/svg+xml":
        return "image", display.mime, base64.b64encode(data.encode()).decode()
    return ("frame", "", data) if display.mime == "text/html" else ("other", "", clipped(data))


def ledger_html(ledger: Ledger) -> str:
    """A ledger as a table: tokens by cause, of them first sent, re-sent and from the cache."""
    usage, every = ledger.usage, ledger.rows
    cells: list[list[str]] = []
    for cause in ledger.by_cause():
        own = [row for row in every if row.cause == cause]
        tokens, resent = sum(row.tokens for row in own), sum(row.resent for row in own)
        cached = None if any(row.cached is None for row in own) else sum(row.cached or 0 for row in own)
        cells.append([cause, *map(number, (tokens, tokens - resent, resent, cached))])
    facts = [
        plural(len(ledger.calls), "call"),
        f"{number(usage.input_tokens)} tokens in",
        f"{number(usage.output_tokens)} out",
        f"by cause: {ledger.counting}" if ledger.counting else "",
    ]
    notes = [" · ".join(filter(None, facts)), *ledger.usage_warnings()[:_WARNINGS]]
    return Table("Ledger", ["cause", "tokens", "first sent", "re-sent", "from cache"], cells, notes).to_html()


def tree_html(tree: TraceTree) -> str:
    """A call tree as text, each line marked by how it ended."""
    return view("tree", list(lines(tree)))
