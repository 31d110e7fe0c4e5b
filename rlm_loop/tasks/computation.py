"""Questions with exact answers over numbers, dates and strings: easy with a few lines of Python, hopeless by memory.

The questions are in `data/computation.json`, each with the function of `computation_truths` that computes what is right
and its arguments; no truth is typed in.  Neighbours are of one kind and about equally hard, so the two halves of the
suite are alike.
"""

from __future__ import annotations

from typing import Any

from rlm_loop.tasks import computation_truths
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.match import Match
from rlm_loop.tasks.packaged import packaged


def computation() -> Suite:
    """32 questions; `level` 1 is one expression, 2 a loop with conditions, 3 several steps."""
    data = packaged("computation.json")
    texts = {f"{{{name}}}": text for name, text in data["texts"].items()}
    tasks = tuple(_task(row, texts) for row in data["questions"])
    return Suite("computation", tasks, "exact answers over numbers, dates and strings", "Apache-2.0")


def _task(row: dict[str, Any], texts: dict[str, Any]) -> Task:
    question = row["question"]
    for name, text in texts.items():
        question = question.replace(name, str(text))
    arguments = [texts.get(given, given) if isinstance(given, str) else given for given in row["arguments"]]
    expected = getattr(computation_truths, row["truth"])(*arguments)
    score = Match(expected, row.get("how", "exact"))
    return Task(f"computation-{row['name']}", question, score, expected, level=row["level"], tags=("computation",))
