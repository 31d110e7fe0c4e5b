"""Runs, ledgers and call trees as HTML for a notebook: values for the templates in `views.html`.

There is no script in any of it, and what a model, a tool or a provider wrote is escaped.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlm_loop.accounting.ledger import in_order, root_turns
from rlm_loop.actions import Display
from rlm_loop.report.call_tree import lines
from rlm_loop.report.notebook.formatting import (
    answer_text,
    causes_title,
    clipped,
    counted,
    labelled,
    most_first,
    number,
    plural,
    prose,
    turn_head,
)
from rlm_loop.report.templates import macros
from rlm_loop.traces.redact import redact

if TYPE_CHECKING:
    from rlm_loop.accounting.attribution import Row
    from rlm_loop.accounting.ledger import Ledger
    from rlm_loop.accounting.tree import TraceTree
    from rlm_loop.outcome import Outcome, Turn

#: Warnings of a ledger that are shown; the others are counted.
_WARNINGS = 8


def view(name: str, *values: Any, **named: Any) -> str:
    """What a macro of `views.html` makes of these values."""
    return str(getattr(macros("notebook/views.html"), name)(*values, **named))


def outcome_html(outcome: Outcome) -> str:
    """An outcome: the answer, why the run ended, what it cost, every turn, tokens by cause."""
    turns, seconds = plural(outcome.steps, "turn"), f"{outcome.seconds:.1f} s"
    facts = (outcome.agent, outcome.model, turns, counted(outcome.usage), seconds)
    return view(
        "outcome",
        stop=str(outcome.stop),
        answered=outcome.answered,
        reason=clipped(outcome.reason),
        question=clipped(outcome.question),
        answer=clipped(answer_text(outcome)),
        facts=" · ".join(fact for fact in facts if fact),
        turns=[turn_values(turn) for turn in outcome.turns],
        causes=causes_values(outcome.ledger.by_cause(), outcome.ledger.counting),
        trace=outcome.trace,
    )


def causes_values(by_cause: Mapping[str, int], counting: str) -> tuple[str, list[tuple[str, int]]]:
    """Tokens by cause for a template: the title and the causes."""
    return causes_title(counting), most_first(by_cause)


def turn_values(turn: Turn) -> dict[str, Any]:
    """A turn for a template; each part is its kind, its label (a picture's: its type) and its text."""
    parts: list[tuple[str, str, str]] = []
    for action, observation in zip(turn.actions, turn.observations, strict=True):
        parts += [("text", label, clipped(text.rstrip())) for label, text in labelled(action, observation)]
        parts += [_display(display) for display in observation.displays]
    failed = any(o.failure is not None for o in turn.observations)
    return {"head": turn_head(turn), "failed": failed, "prose": clipped(prose(turn)), "parts": parts}


def _display(display: Display) -> tuple[str, str, str]:
    """A picture or table of a cell; an SVG as an image, so that its scripts do not run."""
    if display.mime in ("image/png", "image/jpeg"):
        return "image", display.mime, display.data
    data = redact(display.data)
    match display.mime:
        case "image/svg+xml":
            return "image", display.mime, base64.b64encode(data.encode()).decode()
        case "text/html":
            return "frame", "", data
        case _:
            return "other", "", clipped(data)


def ledger_html(ledger: Ledger) -> str:
    """A ledger: totals, tokens by cause (first sent, re-sent, cached), and the turns."""
    calls, usage = list(ledger.calls), ledger.usage
    facts = [
        plural(len(calls), "call"),
        f"{number(usage.input_tokens)} tokens in",
        f"{number(usage.output_tokens)} out",
        f"by cause: {ledger.counting}" if ledger.counting else "",
        *([f"unattributed {ledger.unattributed:,}"] if ledger.unattributed else []),
    ]
    warnings = ledger.usage_warnings()
    more = [f"and {len(warnings) - _WARNINGS} more"] if len(warnings) > _WARNINGS else []
    by_turn: dict[int, dict[str, int]] = {}
    for turn, call in root_turns(calls):
        line = by_turn.setdefault(turn, {})
        for row in call.rows:
            line[row.cause] = line.get(row.cause, 0) + row.tokens
    columns = in_order(cause for line in by_turn.values() for cause in line)
    return view(
        "ledger",
        facts=" · ".join(facts),
        warnings=[*warnings[:_WARNINGS], *more],
        causes=_causes([row for call in calls for row in call.rows]),
        turn_causes=list(columns),
        turns=[
            (turn, [f"{line.get(cause, 0):,}" for cause in columns], f"{sum(line.values()):,}")
            for turn, line in sorted(by_turn.items())
        ],
    )


def _causes(rows: list[Row]) -> list[dict[str, Any]]:
    by_cause = {cause: [row for row in rows if row.cause == cause] for cause in in_order(row.cause for row in rows)}
    largest = max((sum(row.tokens for row in own) for own in by_cause.values()), default=0) or 1
    found: list[dict[str, Any]] = []
    for cause, own in by_cause.items():
        tokens, resent = sum(row.tokens for row in own), sum(row.resent for row in own)
        cached = None if any(row.cached is None for row in own) else sum(row.cached or 0 for row in own)
        shares = [(100 * (tokens - resent) / largest, ".85"), (100 * resent / largest, ".35")]
        figures = [number(n) for n in (tokens, tokens - resent, resent, cached)]
        found.append({"cause": cause, "figures": figures, "shares": shares})
    return found


def tree_html(tree: TraceTree) -> str:
    """A call tree as text, each line marked by how it ended."""
    return view("tree", [(line.text, line.status) for line in lines(tree)])
