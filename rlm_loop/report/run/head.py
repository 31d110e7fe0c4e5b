"""What stands above the steps: the question, how the run ended, what it cost, its limits; and the index of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rlm_loop.accounting.amounts import counted
from rlm_loop.report.run.marked import brief, plain_text, safe
from rlm_loop.report.run.view import RunView

#: Limits of a budget that a run's own figures can be held against.
_LIMITS = ("steps", "calls", "tokens", "output_tokens", "cost", "seconds", "working_seconds")


def title(view: RunView) -> str:
    """The run in a few words, not escaped."""
    start = view.start
    return " · ".join(str(v) for v in (start.get("task"), start.get("agent"), view.stop) if v) or "a run"


def state(view: RunView) -> str:
    """Whether a run went well, in the words of the style sheet."""
    return {"answered": "ok", "failed": "bad", "unfinished": "open"}.get(view.stop, "warn")


def head(view: RunView) -> str:
    """The question, the stop and its reason, and the figures of a run."""
    start, end = view.start, view.end or {}
    question = str(start.get("question") or start.get("task") or "A run of rlm_loop")
    reason = str(end.get("reason") or "")
    if view.end is None:
        reason = "the trace has no end: the run was killed, or is still going on"
    whole = ""
    if len(question) > 200 or "\n" in question.strip():
        text = plain_text(question, view.limit)
        whole = f'<details class="more"><summary>The whole question</summary><pre>{text}</pre></details>'
    return (
        f'<p class="over">{safe(" · ".join(str(v) for v in (start.get("agent"), start.get("model")) if v))}</p>'
        f"<h1>{safe(brief(question, 200))}</h1>{whole}"
        f'<p class="stop"><span class="mark {state(view)}">{safe(view.stop)}</span> {safe(reason)}</p>'
        f'<div class="figures">{_facts(view)}{_budget(view)}</div>'
    )


def _facts(view: RunView) -> str:
    start, end, used = view.start, view.end or {}, view.usage
    turns = sum(e["event"] == "turn" for e in view.by_node.get("0", ()))
    context: Any = start.get("context") or {}
    size = context.get("bytes", context.get("size")) if isinstance(context, dict) else None
    below = len(view.tree) - 1 - len(view.attempts)
    facts = {
        "task": start.get("task"),
        "turns": f"{turns:,}",
        "model calls": f"{used.calls:,}",
        "sub-calls": f"{below:,}" if below > 0 else None,
        "tokens": counted(used).replace(" tokens in", " in"),
        "time": _seconds(end.get("seconds")),
        "context": f"{context.get('type', '')}, {size:,} bytes" if isinstance(size, int) else None,
        "isolation": end.get("isolation"),
        "began": _date(start.get("at")),
    }
    items = "".join(f"<div><dt>{safe(k)}</dt><dd>{safe(v)}</dd></div>" for k, v in facts.items() if v)
    return f'<dl class="facts">{items}</dl>'


def _budget(view: RunView) -> str:
    """Each limit that was set, what was used of it, and a bar."""
    limits, end, used = _mapping(view.start.get("budget")), view.end or {}, view.usage
    turns = sum(e["event"] == "turn" for e in view.by_node.get("0", ()))
    spent: Mapping[str, Any] = {
        "steps": end.get("steps", turns),
        "calls": used.calls,
        "tokens": used.total_tokens,
        "output_tokens": used.output_tokens,
        "cost": used.cost,
        "seconds": end.get("seconds"),
        "working_seconds": end.get("working_seconds"),
    }
    rows: list[str] = []
    for name in _LIMITS:
        limit, value = limits.get(name), spent[name]
        if isinstance(limit, bool) or not isinstance(limit, (int, float)):
            continue
        known = isinstance(value, (int, float))
        share = min(1.0, value / limit) if known and limit else 0.0
        over = " over" if known and value > limit else ""
        rows.append(
            f'<tr class="limit{over}"><th scope="row">{safe(name.replace("_", " "))}</th>'
            f"<td>{_figure(value) if known else '?'} of {_figure(limit)}</td>"
            '<td><svg width="120" height="8" viewBox="0 0 120 8" preserveAspectRatio="none" aria-hidden="true">'
            '<rect class="track" width="120" height="8" rx="4"/>'
            f'<rect class="used" width="{120 * share:.0f}" height="8" rx="4"/></svg></td></tr>'
        )
    over = ' <span class="mark warn">over budget</span>' if end.get("over_budget") else ""
    table = f'<table class="budget"><caption>Budget{over}</caption><tbody>{"".join(rows)}</tbody></table>'
    return table if rows else ""


def index(views: Sequence[RunView]) -> str:
    """The runs of a file that holds several, each a link to its place on the page."""
    rows = "".join(
        f'<tr><td><a href="#{v.prefix.text}run">{v.number}</a></td><td>{safe(brief(str(v.start.get("task", "?")), 60))}'
        f"</td><td>{safe(brief(str(v.start.get('agent', '?')), 40))}</td>"
        f'<td><span class="mark {state(v)}">{safe(v.stop)}</span></td>'
        f"<td>{sum(e['event'] == 'turn' for e in v.by_node.get('0', ())):,}</td>"
        f"<td>{safe(counted(v.usage))}</td></tr>"
        for v in views
    )
    return (
        '<nav class="runs" aria-label="Runs of this file"><table><caption>Runs of this file</caption><thead><tr>'
        '<th scope="col">run</th><th scope="col">task</th><th scope="col">agent</th><th scope="col">stop</th>'
        f'<th scope="col">turns</th><th scope="col">tokens</th></tr></thead><tbody>{rows}</tbody></table></nav>'
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def _seconds(value: Any) -> str | None:
    return f"{value:,.1f} s" if isinstance(value, (int, float)) else None


def _date(at: Any) -> str | None:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at else None
    except (TypeError, ValueError, OverflowError, OSError):
        return None
