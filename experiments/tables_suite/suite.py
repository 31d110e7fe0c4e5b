"""The suite `tables`, which some studies were recorded with: seeded CSV files, to be filtered, grouped and joined.

The questions are in `questions.json`.  The files lie in the REPL's working folder; the questions say that pandas is
installed (extra `suites`).  The truth is computed from the same files in plain Python (`truths.py`).  Neighbours
are alike in kind and level.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from experiments.suite_truths.rows import Unfit
from experiments.tables_suite.data import Tables, csv_files, parse
from experiments.tables_suite.truths import TRUTHS
from rlm_loop.tasks import Match, Suite, Task
from rlm_loop.tasks.base import inline_text


def tables(seed: int = 0) -> Suite:
    """32 questions over four CSV files drawn with `seed`; `level` 1 is one filter, 3 a join or several steps.

    With a seed whose files give a question two right answers (a tie), the next files in its sequence are taken.
    """
    questions = json.loads(Path(__file__).with_name("questions.json").read_text("utf-8"))
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
    )


def _heading(made: Mapping[str, str]) -> str:
    """What a model is told of the files: name, number of rows, header and first row."""
    said: list[str] = []
    for name, text in made.items():
        header, first, *more = text.splitlines()
        also = ", pandas is installed" if not said else ""
        said.append(f"The file {name} ({1 + len(more)} rows{also}) starts with:\n{header}\n{first}")
    return "\n".join(said)
