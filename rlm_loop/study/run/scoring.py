"""Scoring an attempt.  What goes wrong with the scorer or the machine leaves it unscored, never "not resolved".

The row of an unscored attempt keeps what was to be scored, so that the next run scores it again without a model call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rlm_loop.messages import digest
from rlm_loop.study.plan.grid import Episode
from rlm_loop.study.store.rows import Row, crash_line, score_fields
from rlm_loop.tasks.base import Attempt, Task

#: The field of a row with what is still to be scored.
TO_SCORE = "to_score"

_HELD = ("answer", "artifact", "answered", "last_reply", "isolation")  # older rows lack the last two


def scored(task: Task, attempt: Attempt) -> tuple[Row, BaseException | None]:
    """The fields of a row that say how an attempt was judged, and what the scorer raised, if it did.

    Ctrl-C is told so as well: the attempt is made, and must not be lost with its score.
    """
    try:
        found = score_fields(task.judge(attempt))  # a scorer may put an answer of any kind into its score
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        error.add_note("while scoring")
        kept = _kept(attempt)
        return {**score_fields(None), "scorer_error": crash_line(error), **({TO_SCORE: kept} if kept else {})}, error
    return {**found, "scorer_error": None}, None


def scored_again(episode: Episode) -> tuple[Row, BaseException | None]:
    """The row of an unscored attempt, with what its scorer says now (`rescored`: it cost nothing more)."""
    row = {name: value for name, value in (episode.unscored or {}).items() if name != TO_SCORE}
    kept = (episode.unscored or {})[TO_SCORE]
    found, fault = scored(episode.task, Attempt(*(kept.get(n, "") for n in _HELD)))
    return {**row, **found, "rescored": True}, fault


def can_be_scored(row: Mapping[str, Any] | None) -> bool:
    """Whether a row holds an unscored attempt exactly as it was: what looked like a key was blanked out on the way."""
    kept = None if row is None else row.get(TO_SCORE)
    return bool(kept) and digest([kept["answer"], kept["artifact"]]) == kept["digest"]


def _kept(attempt: Attempt) -> Row | None:
    """An attempt as JSON; `None` where it would not come back as it is."""
    held = [attempt.answer, attempt.artifact]
    try:
        back = json.loads(json.dumps(held))
    except (TypeError, ValueError, RecursionError):
        return None
    if back != held:
        return None
    return {**{name: getattr(attempt, name) for name in _HELD}, "digest": digest(held)}
