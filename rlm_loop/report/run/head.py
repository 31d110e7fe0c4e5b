"""The head of a run: the question, how the run ended, and what it cost of its limits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rlm_loop.accounting.tree import ROOT
from rlm_loop.report.notebook.formatting import counted, number
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
        over_budget=end.get("over_budget"),
    )


def _facts(view: RunView) -> dict[str, Any]:
    """The figures of a run by name, with the limit where one was set."""
    start, end, used = view.start, view.end or {}, view.usage
    limits, context = mapping(start.get("budget")), mapping(start.get("context"))
    size = context.get("bytes", context.get("size"))
    below = len(view.tree) - 1 - len(view.attempts)

    def of(text: str | None, limit: str) -> str | None:
        most = limits.get(limit)
        return f"{text} of {most:,}" if text and isinstance(most, (int, float)) else text

    return {
        "task": start.get("task"),
        "turns": of(f"{_turns(view):,}", "steps"),
        "model calls": of(f"{used.calls:,}", "calls"),
        "sub-calls": f"{below:,}" if below > 0 else None,
        "tokens": counted(used).replace(" tokens in", " in"),
        "tokens in all": of(number(used.total_tokens), "tokens") if limits.get("tokens") is not None else None,
        "cost": of(f"{used.cost:.4f}", "cost") if used.cost else None,
        "time": of(_seconds(end.get("seconds")), "seconds"),
        "context": f"{context.get('type', '')}, {size:,} bytes" if isinstance(size, int) else None,
        "isolation": end.get("isolation"),
        "began": _date(start.get("at")),
    }


def _turns(view: RunView) -> int:
    return sum(event["event"] == "turn" for event in view.by_node.get(ROOT, ()))


def _seconds(value: Any) -> str | None:
    return f"{value:,.1f} s" if isinstance(value, (int, float)) else None


def _date(at: Any) -> str | None:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at else None
    except (TypeError, ValueError, OverflowError, OSError):
        return None
