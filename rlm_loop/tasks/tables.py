"""Questions over seeded CSV files: filter, group, join, dates, duplicates, missing values, text columns.

The questions are in `data/tables.json`.  The files lie in the REPL's working folder; the questions say that pandas is
installed (extra `suites`).  The truth is computed from the same files in plain Python (`tables_truths`).  Neighbours
are alike in kind and level.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from rlm_loop.tasks.base import Suite, Task, inline_text
from rlm_loop.tasks.match import Match
from rlm_loop.tasks.packaged import packaged
from rlm_loop.tasks.rows import Unfit
from rlm_loop.tasks.tables_data import Tables, csv_files, parse
from rlm_loop.tasks.tables_truths import TRUTHS


def tables(seed: int = 0) -> Suite:
    """32 questions over four CSV files drawn with `seed`; `level` 1 is one filter, 3 a join or several steps.

    With a seed whose files give a question two right answers (a tie), the next files in its sequence are taken.
    """
    questions = packaged("tables.json")
    for attempt in count():
        made = csv_files(f"{seed}.{attempt}")
        rows = parse(made)
        try:
            tasks = tuple(_task(question, made, rows) for question in questions)
        except Unfit:
            continue
        return Suite("tables", tasks, f"CSV files, seed {seed}", "Apache-2.0")
    raise AssertionError("unreachable")


def _task(row: Mapping[str, Any], made: Mapping[str, str], tables: Tables) -> Task:
    mine = {f"{file}.csv": made[f"{file}.csv"] for file in row["files"]}
    expected = TRUTHS[row["name"]](tables)
    tolerance = row.get("tolerance")
    if isinstance(expected, float) and tolerance is None:
        tolerance = 0.005  # rounded or not, half up or half even
    return Task(
        f"tables-{row['name']}",
        f"{_heading(mine)}\n{row['question']}",
        Match(expected, row.get("how", "exact"), tolerance),
        expected,
        files=mine,
        inline=inline_text(mine),
        level=row["level"],
        tags=("tables", row["kind"]),
    )


def _heading(made: Mapping[str, str]) -> str:
    """What a model is told of the files: name, number of rows, header and first row."""
    said: list[str] = []
    for name, text in made.items():
        header, first, *more = text.splitlines()
        also = ", pandas is installed" if not said else ""
        said.append(f"The file {name} ({1 + len(more)} rows{also}) starts with:\n{header}\n{first}")
    return "\n".join(said)
