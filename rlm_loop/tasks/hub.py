"""Data sets of the Hugging Face hub, or local ones in the forms that `datasets` reads (extra `hub`), as tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.jsonl import SourceRow, SuiteFileError
from rlm_loop.tasks.match import Match

#: A column by its name, or what a function makes of a row.
Column = str | Callable[[Mapping[str, Any]], Any]


def dataset_suite(
    name: str,
    /,
    *,
    split: str = "test",
    prompt: Column,
    answer: Column,
    context: Column | None = None,
    id: Column | None = None,
    scorer: Callable[[Any], Any] = Match,
    limit: int | None = None,
    **options: Any,
) -> Suite:
    """Return a task for each of the first `limit` rows of a data set.

    `name` is OWNER/NAME on the hub, or a local folder.  `scorer` makes the score of a task from its right answer, such
    as `partial(Match, how="number")`.  `options` go to `datasets.load_dataset`: `revision` (a commit, for results that
    can be repeated), `name` (a configuration).  Without `id` tasks are named by their number.  Raises `SuiteFileError`
    for a set, split or column that is not there, and `ImportError` without the extra.
    """
    title = f"{Path(name).name}/{split}"
    tasks: dict[str, Task] = {}
    for number, (row, place) in enumerate(islice(dataset_rows(name, split=split, **options), limit)):

        def of(column: Column, row: Mapping[str, Any] = row, place: str = place) -> Any:
            if callable(column):
                return column(row)
            if column not in row:
                raise SuiteFileError(f"{place}: no column {column!r}; there are {', '.join(row)}")
            return row[column]

        task = Task(
            str(number if id is None else of(id)),
            str(of(prompt)),
            scorer(of(answer)),
            of(answer),
            context=None if context is None else of(context),
        )
        if task.id in tasks:
            raise SuiteFileError(f"{place}: id {task.id!r} was used before; ids must differ")
        tasks[task.id] = task
    return Suite(title, tuple(tasks.values()), f"rows of {name}, split {split}")


def dataset_rows(name: str, /, *, split: str = "test", **options: Any) -> Iterator[SourceRow]:
    """Yield the rows of a set on the hub, of which no more are fetched than are asked for, or of a local folder."""
    try:
        load = import_module("datasets").load_dataset
    except ImportError:
        raise ImportError(f"data sets need datasets: {install_line('hub')}") from None
    options = {"streaming": not Path(name).exists(), **options}
    try:
        for number, row in enumerate(load(name, split=split, **options), 1):
            yield row, f"{name}:{split}:{number}"
    except (OSError, ValueError) as error:  # no such set, no such split, no connection, no such format
        raise SuiteFileError(f"{name}: {' '.join(str(error).split())[:300]}") from None
