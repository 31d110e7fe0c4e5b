"""Questions with exact answers over numbers, dates and strings: easy with a few lines of Python, hopeless by memory.

Questions and answers are in `data/computation.json`; the answers were computed by `experiments/suite_truths`.
Neighbours are of one kind and about equally hard, so the two halves of the suite are alike.
"""

from __future__ import annotations

from typing import Any

from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.match import Match
from rlm_loop.tasks.packaged import packaged


def computation() -> Suite:
    """Return 32 questions; `level` 1 is one expression, 2 a loop with conditions, 3 several steps."""
    data = packaged("computation.json")
    tasks = tuple(_task(row, data["texts"]) for row in data["questions"])
    return Suite("computation", tasks, "exact answers over numbers, dates and strings", "Apache-2.0")


def _task(row: dict[str, Any], texts: dict[str, Any]) -> Task:
    question, expected = row["question"], row["expected"]
    for name, text in texts.items():
        question = question.replace(f"{{{name}}}", str(text))
    score = Match(expected, row.get("how", "exact"))
    return Task(f"computation-{row['name']}", question, score, expected, level=row["level"])
