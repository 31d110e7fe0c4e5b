"""How the episode of a study was judged: its state, why, what was expected, and which episode it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from rlm_loop.report.run.marked import parts
from rlm_loop.study.store.rows import finished

_KINDS = {"resolved": "ok", "not resolved": "bad", "crashed": "bad"}


def state(row: Mapping[str, Any] | None) -> str:
    """What became of an episode: `resolved`, `not resolved`, `not judged`, `crashed`, or without a row `not run`."""
    if row is None:
        return "not run"
    if not finished(row):
        return "crashed"
    return "not judged" if row["resolved"] is None else "resolved" if row["resolved"] else "not resolved"


def state_kind(name: str) -> str:
    """The class by which the style sheet colours a state."""
    return _KINDS.get(name, "warn")


def judged(row: Mapping[str, Any] | None) -> Markup:
    """The score of an episode, with its expected answer where the row has it; empty without a row."""
    if row is None:
        return Markup("")
    now, value = state(row), row.get("value")
    partial = isinstance(value, (int, float)) and value not in (0, 1)
    which = [str(row[name]) for name in ("arm", "model", "suite", "task") if row.get(name)]
    which += [f"{name} {row[name]}" for name in ("level", "seed") if row.get(name) is not None]
    reason = str(row.get("error") or row.get("scorer_error") or row.get("score_reason") or "")
    expected = str(row.get("expected") or "")
    return parts().judged(state_kind(now), now, f"{value:.3g}" if partial else "", reason, expected, " · ".join(which))
