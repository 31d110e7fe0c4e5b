"""Compute the answers and the rows of the suites `computation` and `frames`, and compare them with the recorded ones.

`python -m experiments.suite_truths.check` prints what differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments.suite_truths import computation
from experiments.suite_truths.frames import TRUTHS
from experiments.suite_truths.tables import SCHEMAS
from rlm_loop.tasks.frames import rows_of
from rlm_loop.tasks.packaged import packaged


def differences() -> list[str]:
    """Return a line for each task or table that is recorded otherwise than it is computed."""
    answers = [*_computation(), *_frames()]
    return [
        f"{name}: {computed!r:.80}, recorded {recorded!r:.80}"
        for name, computed, recorded in answers
        if computed != recorded
    ]


def _computation() -> Iterator[tuple[str, Any, Any]]:
    data = packaged("computation.json")
    texts = {f"{{{name}}}": text for name, text in data["texts"].items()}
    for row in data["questions"]:
        arguments = [texts.get(given, given) if isinstance(given, str) else given for given in row["arguments"]]
        yield row["name"], getattr(computation, row["truth"])(*arguments), row["expected"]


def _frames() -> Iterator[tuple[str, Any, Any]]:
    tables = packaged("frame_tables.json")
    for name, table in tables.items():
        for key in (f"{name}/0.{split}.{table['drawn'][split]}" for split in (0, 1)):
            yield key, SCHEMAS[name].rows(key), rows_of(key)
    for number, row in enumerate(packaged("frames.json")):
        table, split = row["table"], number % 2
        truth = TRUTHS[row["name"]](rows_of(f"{table}/0.{split}.{tables[table]['drawn'][split]}"))
        yield row["name"], round(truth, 2) if row["form"] == "number" else truth, row["expected"]


if __name__ == "__main__":
    print("\n".join(differences()) or "all as recorded")
