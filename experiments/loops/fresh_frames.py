"""The questions of the suite `frames` about rows that were drawn anew, with answers computed in plain Python."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache, partial
from typing import Any

from experiments.suite_truths.frames import TRUTHS
from experiments.suite_truths.rows import Unfit
from experiments.suite_truths.tables import SCHEMAS
from rlm_loop import Suite, Task
from rlm_loop.tasks import get_suite
from rlm_loop.tasks.base import Deferred, Split
from rlm_loop.tasks.frames import frame_of
from rlm_loop.tasks.match import Match
from rlm_loop.tasks.packaged import packaged

SEED = 2


def fresh_frames(split: Split) -> Suite:
    """Return the questions of a split about rows of another seed, each with the truth that holds there."""
    forms = {row["name"]: row["form"] for row in packaged("frames.json")}
    tasks = tuple(_fresh(task, split, forms) for task in get_suite(f"frames/{split}").tasks)
    return Suite(f"fresh_frames/{split}", tasks, f"questions about data frames, seed {SEED}", "Apache-2.0")


def _fresh(task: Task, split: Split, forms: Any) -> Task:
    """Draw rows until the question has one answer that cannot be guessed."""
    name, table = task.id.removeprefix("frames-"), task.facts["table"]
    for attempt in itertools.count():
        key = f"{table}/{SEED}.{int(split == 'test')}.{attempt}"
        try:
            truth = TRUTHS[name](_rows(table, key))
        except (Unfit, ValueError, ZeroDivisionError):
            continue
        truth = round(truth, 2) if forms[name] == "number" else truth
        assert isinstance(task.score, Match)
        context = Deferred(f"fresh/{key}", partial(_frame, table, key), partial(str, f"fresh/{key}"))
        score = replace(task.score, expected=truth)
        facts = {"table": table, "rows": len(_rows(table, key))}
        return replace(task, id=f"fresh-{name}", score=score, expected=truth, context=context, facts=facts)
    raise AssertionError


@cache
def _rows(table: str, key: str) -> Any:
    return SCHEMAS[table].rows(key)


def _frame(table: str, key: str) -> Any:
    return frame_of(table, _rows(table, key))
