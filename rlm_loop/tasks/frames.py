"""Questions about a pandas data frame that is held as the variable `context` (extra `suites`).

The questions are in `data/frames.json`, each about one of eight kinds of tables (`data/frame_tables.json`).  Codes and
values are named as a user would (chairs, the finals in maths), not as they stand in the frame.  The rows and the
answers were computed in plain Python by `experiments/suite_truths`.  Neighbours are alike in kind and level and about
different tables, and the two splits have other rows: what fits the frames of `dev` by chance is no help in `test`.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from io import StringIO
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.tasks.base import Deferred, Suite, Task
from rlm_loop.tasks.match import Match
from rlm_loop.tasks.packaged import packaged

#: By form: what is said of the form of an answer, and how it is compared (`Match.how`).
_FORMS: Mapping[str, tuple[str, Any]] = {
    "integer": ("Answer with an integer.", "number"),
    "number": ("Answer with a number rounded to 2 decimals.", "number"),
    "name": ("Answer with the name only.", "text"),
    "day": ("Answer as YYYY-MM-DD.", "date"),
    "month": ("Answer as YYYY-MM.", "text"),
    "three": ("Answer with a list of the three.", "list"),
}
_DTYPES = {
    "text": "object",  # with every pandas: 3 would take `str`, with another value for what is missing
    "int": "int64",
    "float": "float64",
    "time": "datetime64[ns]",
    "flag": "bool",
}


def frames() -> Suite:
    """Return 80 questions about frames of 220 to 1,800 rows; `level` 1 is one filter, 3 several steps.

    Nothing needs pandas before a task's `material`, which raises `ImportError` without it.
    """
    tables = packaged("frame_tables.json")
    questions = packaged("frames.json")
    tasks = [_task(row, tables[row["table"]], number % 2) for number, row in enumerate(questions)]
    return Suite("frames", tuple(tasks), "questions about data frames, seed 0", "Apache-2.0")


def _task(row: Mapping[str, Any], table: Mapping[str, Any], split: int) -> Task:
    asked, how = _FORMS[row["form"]]
    tolerance = 0.005 if row["form"] == "number" else None  # rounded or not, half up or half even
    key = f"{row['table']}/0.{split}.{table['drawn'][split]}"
    return Task(
        f"frames-{row['name']}",
        f"{table['about']} {row['question']} {asked}",
        Match(row["expected"], how, tolerance),
        row["expected"],
        context=Deferred(f"frames/{key}", partial(_frame, key), partial(_line, key)),
        level=row["level"],
        facts={"table": row["table"], "rows": table["rows"][split]},
    )


def rows_of(key: str) -> list[dict[str, Any]]:
    """Return the rows of a table such as `orders/0.0.0` by column; `None` is missing."""
    columns = packaged("frame_tables.json")[key.partition("/")[0]]["columns"]
    rows = [dict(zip(columns, values, strict=True)) for values in packaged("frame_rows.json.xz")[key]]
    for name in (name for name, kind in columns.items() if kind == "time"):
        for row in rows:
            row[name] = row[name] and datetime.fromisoformat(row[name])
    return rows


def _frame(key: str) -> Any:
    return frame_of(key.partition("/")[0], rows_of(key))


def frame_of(table: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return the data frame of a table's rows; raises `ImportError` with the command that installs pandas."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise ImportError(f"the suite frames needs pandas: {install_line('suites')}") from None
    kinds = packaged("frame_tables.json")[table]["columns"]
    return pandas.DataFrame({n: pandas.Series([row[n] for row in rows], dtype=_DTYPES[k]) for n, k in kinds.items()})


def _line(key: str) -> str:
    rows = rows_of(key)
    text = StringIO()
    csv.writer(text).writerows([rows[0].keys(), *(row.values() for row in rows)])
    return f"frames/{key}; {hashlib.sha256(text.getvalue().encode()).hexdigest()[:16]}"
