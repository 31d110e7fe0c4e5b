"""Questions about a pandas data frame that is held as the variable `context` (extra `suites`).

The questions are in `data/frames.json`, each about one of eight kinds of tables (`frames_data`).  Codes and values are
named as a user would (chairs, the finals in maths), not as they stand in the frame.  The truth is computed from the
same rows in plain Python (`frames_truths`).  Neighbours are alike in kind and level and about different tables, and the
two splits have other rows: what fits the frames of `dev` by chance is no help in `test`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import count
from typing import Any

from rlm_loop.tasks.base import Deferred, Suite, Task
from rlm_loop.tasks.frames_data import SCHEMAS, data_frame, digest
from rlm_loop.tasks.frames_truths import TRUTHS
from rlm_loop.tasks.match import Match
from rlm_loop.tasks.packaged import packaged
from rlm_loop.tasks.rows import Rows, Unfit

#: What is said of the form of an answer, and how it is compared (`Match.how`).
FORMS: Mapping[str, tuple[str, Any]] = {
    "integer": ("Answer with an integer.", "number"),
    "number": ("Answer with a number rounded to 2 decimals.", "number"),
    "name": ("Answer with the name only.", "text"),
    "day": ("Answer as YYYY-MM-DD.", "date"),
    "month": ("Answer as YYYY-MM.", "text"),
    "three": ("Answer with a list of the three.", "list"),
}


def frames(seed: int = 0) -> Suite:
    """80 questions about frames of 220 to 1,800 rows, drawn with `seed`; `level` 1 is one filter, 3 several steps.

    Nothing needs pandas before a task's `material`, which raises `ImportError` without it.
    """
    questions = packaged("frames.json")
    tasks: dict[str, Task] = {}
    for split in (0, 1):
        for table in SCHEMAS:
            mine = [row for row in questions[split::2] if row["table"] == table]
            tasks |= {row["name"]: task for row, task in zip(mine, _tasks(mine, table, f"{seed}.{split}"), strict=True)}
    ordered = tuple(tasks[row["name"]] for row in questions)
    return Suite("frames", ordered, f"questions about data frames, seed {seed}", "Apache-2.0")


def _tasks(questions: list[dict[str, Any]], table: str, seed: str) -> list[Task]:
    """The tasks of a split about one table; the first rows in the seed's sequence that fit all of its questions."""
    for attempt in count():
        key = f"{table}/{seed}.{attempt}"
        rows = _rows(table, key)
        try:
            truths = [TRUTHS[row["name"]](rows) for row in questions]
            if not all(truths):
                raise Unfit("an answer is 0")
        except Unfit:
            continue
        held = Deferred(f"frames/{key}", partial(_frame, table, key), partial(_line, table, key))
        return [_task(row, truth, held, len(rows)) for row, truth in zip(questions, truths, strict=True)]
    raise AssertionError("unreachable")


@lru_cache(maxsize=32)
def _rows(table: str, key: str) -> Rows:
    return SCHEMAS[table].rows(key)


def _frame(table: str, key: str) -> Any:
    return data_frame(SCHEMAS[table], _rows(table, key))


def _line(table: str, key: str) -> str:
    return f"frames/{key}; {digest(_rows(table, key))}"


def _task(row: Mapping[str, Any], truth: Any, held: Deferred, size: int) -> Task:
    said, how = FORMS[row["form"]]
    expected = round(truth, 2) if row["form"] == "number" else truth
    tolerance = 0.005 if row["form"] == "number" else None  # rounded or not, half up or half even
    return Task(
        f"frames-{row['name']}",
        f"{SCHEMAS[row['table']].about} {row['question']} {said}",
        Match(expected, how, tolerance),
        expected,
        context=held,
        level=row["level"],
        tags=("frames", row["table"], row["kind"]),
        facts={"table": row["table"], "rows": size},
    )
