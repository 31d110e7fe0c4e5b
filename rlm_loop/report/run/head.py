"""What stands above the steps: the question, how the run ended, what it cost, its limits; and the index of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rlm_loop.accounting.tree import ROOT
from rlm_loop.report.notebook.formatting import counted
from rlm_loop.report.run.marked import brief, parts, plain_text
from rlm_loop.report.run.reading import mapping
from rlm_loop.report.run.view import RunView


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
    return parts().head(
        over=" · ".join(str(v) for v in (start.get("agent"), start.get("model")) if v),
        question=brief(question, 200),
        whole=plain_text(question, view.limit) if len(question) > 200 or "\n" in question.strip() else "",
        state=state(view),
        stop=view.stop,
        reason=reason,
        facts=_facts(view),
        limits=list(_limits(view)),
        over_budget=end.get("over_budget"),
    )


def _facts(view: RunView) -> dict[str, Any]:
    start, end, used = view.start, view.end or {}, view.usage
    context = mapping(start.get("context"))
    size = context.get("bytes", context.get("size"))
    below = len(view.tree) - 1 - len(view.attempts)
    return {
        "task": start.get("task"),
        "turns": f"{_turns(view):,}",
        "model calls": f"{used.calls:,}",
        "sub-calls": f"{below:,}" if below > 0 else None,
        "tokens": counted(used).replace(" tokens in", " in"),
        "time": _seconds(end.get("seconds")),
        "context": f"{context.get('type', '')}, {size:,} bytes" if isinstance(size, int) else None,
        "isolation": end.get("isolation"),
        "began": _date(start.get("at")),
    }


def _limits(view: RunView) -> Iterator[dict[str, Any]]:
    """Each limit that was set, what was used of it, and the share (at most 1)."""
    limits, end, used = mapping(view.start.get("budget")), view.end or {}, view.usage
    spent: Mapping[str, Any] = {
        "steps": end.get("steps", _turns(view)),
        "calls": used.calls,
        "tokens": used.total_tokens,
        "output_tokens": used.output_tokens,
        "cost": used.cost,
        "seconds": end.get("seconds"),
        "working_seconds": end.get("working_seconds"),
    }
    for name, value in spent.items():
        limit = limits.get(name)
        if isinstance(limit, bool) or not isinstance(limit, (int, float)):
            continue
        known = isinstance(value, (int, float))
        yield {
            "name": name.replace("_", " "),
            "used": _figure(value) if known else "?",
            "limit": _figure(limit),
            "share": (1.0 if value >= limit else value / limit) if known and limit else 0.0,
            "over": known and value > limit,
        }


def index(views: Sequence[RunView]) -> str:
    """The runs of a file that holds several, each a link to its place on the page."""
    return parts().index(
        [
            {
                "ident": f"{view.prefix.text}run",
                "number": view.number,
                "task": brief(str(view.start.get("task", "?")), 60),
                "agent": brief(str(view.start.get("agent", "?")), 40),
                "state": state(view),
                "stop": view.stop,
                "turns": f"{_turns(view):,}",
                "tokens": counted(view.usage),
            }
            for view in views
        ]
    )


def _turns(view: RunView) -> int:
    return sum(event["event"] == "turn" for event in view.by_node.get(ROOT, ()))


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def _seconds(value: Any) -> str | None:
    return f"{value:,.1f} s" if isinstance(value, (int, float)) else None


def _date(at: Any) -> str | None:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at else None
    except (TypeError, ValueError, OverflowError, OSError):
        return None
