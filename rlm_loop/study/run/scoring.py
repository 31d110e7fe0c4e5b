"""Scoring an attempt.  What goes wrong with the scorer or the machine leaves it unscored, never "not resolved".

The row of an unscored attempt keeps what was to be scored, so that the next run scores it again without a model call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rlm_loop.messages import digest
from rlm_loop.study.plan.grid import Episode
from rlm_loop.study.store.rows import Row, crash_line, score_fields
from rlm_loop.tasks.base import Attempt, Task
from rlm_loop.tasks.written import Written

#: The field of a row with what is still to be scored.
TO_SCORE = "to_score"

_HELD = ("answer", "artifact", "answered", "last_reply", "isolation", "written")  # older rows lack the last three
_DIGESTED = ("answer", "artifact", "written")


def scored(task: Task, attempt: Attempt) -> tuple[Row, BaseException | None]:
    """The fields of a row that say how an attempt was judged, and what the scorer raised, if it did.

    Ctrl-C is told so as well: the attempt is made, and must not be lost with its score.
    """
    try:
        found = score_fields(task.judge(attempt))  # a scorer may put an answer of any kind into its score
        if len(task.submissions) > 1:
            others = {s: task.judge(attempt, s).resolved for s in task.submissions[1:]}
            found["by_submission"] = {task.submissions[0]: found["resolved"], **others}
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        error.add_note("while scoring")
        kept = _kept(attempt)
        return {**score_fields(None), "scorer_error": crash_line(error), **({TO_SCORE: kept} if kept else {})}, error
    return {**found, "scorer_error": None}, None


def scored_again(episode: Episode) -> tuple[Row, BaseException | None]:
    """The row of an unscored attempt, with what its scorer says now (`rescored`: it cost nothing more)."""
    row = {name: value for name, value in (episode.unscored or {}).items() if name != TO_SCORE}
    kept = (episode.unscored or {})[TO_SCORE]
    found, fault = scored(episode.task, _attempt(kept))
    return {**row, **found, "rescored": True}, fault


def can_be_scored(row: Mapping[str, Any] | None) -> bool:
    """Whether a row holds an unscored attempt exactly as it was: what looked like a key was blanked out on the way."""
    kept = None if row is None else row.get(TO_SCORE)
    return bool(kept) and digest([kept[n] for n in _DIGESTED if n in kept]) == kept["digest"]


def _attempt(kept: Mapping[str, Any]) -> Attempt:
    """An attempt as a row kept it."""
    held: dict[str, Any] = {name: kept[name] for name in _HELD if name in kept}
    held["written"] = tuple(Written(**piece) for piece in kept.get("written", ()))
    return Attempt(**held)


def _kept(attempt: Attempt) -> Row | None:
    """An attempt as JSON; `None` where it would not come back as it is."""
    held = {name: getattr(attempt, name) for name in _HELD}
    held["written"] = [asdict(piece) for piece in attempt.written]
    exact = [held[name] for name in _DIGESTED]
    try:
        back = json.loads(json.dumps(exact))
    except (TypeError, ValueError, RecursionError):
        return None
    return {**held, "digest": digest(exact)} if back == exact else None
