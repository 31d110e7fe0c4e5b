"""Long-context sets as they are published: OOLONG and RULER, from files on disk or from the Hugging Face hub.

`get_suite("oolong:FILE")`, `get_suite("ruler:FOLDER")`, `get_suite("oolong:hf://oolongbench/oolong-synth")`.  Files are
JSON Lines (also packed with gzip) or parquet; a folder stands for all such files in it.  Layouts:

- OOLONG synth: `context_window_text`, `question`, `answer` (a Python list as text), `answer_type`;
- OOLONG real: the same without `answer_type`; `answer` is a number, a text, or several with commas;
- RULER as its scripts write it: `input` (text and question in one), `outputs`;
- RULER as on the hub: `context`, `question`, `answer`, `task`, perhaps `answer_prefix`.

Answers are scored by the rules of the sets (`published_scores`): a task is resolved at the full score.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rlm_loop.outcome import Score
from rlm_loop.tasks import published_scores as scores
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Deferred, Suite, Task
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.published_rows import SourceRow, rows_of

FORMATS = ("oolong", "ruler")


def published(name: str, *, limit: int | None = None, where: Mapping[str, Any] | None = None, **options: Any) -> Suite:
    """The suite of `FORMAT:PLACE`.

    `limit` is the most rows that are taken; `where` are columns and the values wanted in them, such as
    `{"context_len": 1024, "dataset": "trec_coarse"}`.  For a place on the hub (`hf://OWNER/NAME` or
    `hf://OWNER/NAME/CONFIGURATION`) `split` may be given, and `open_dataset` in place of `datasets.load_dataset`.
    Raises `SuiteFileError` that names the row, and `ImportError` that names the extra to install.
    """
    form, _, place = name.partition(":")
    tasks = list(_tasks(form, rows_of(place, **options), where or {}, limit))
    if not tasks:
        raise SuiteFileError(f"{place}: there is no row{f' with {dict(where)}' if where else ''} in it")
    return Suite(name, tuple(tasks), f"{form} rows of {place}")


def _tasks(form: str, found: Iterable[SourceRow], where: Mapping[str, Any], limit: int | None) -> Iterator[Task]:
    used: set[str] = set()
    shared: dict[str, str] = {}  # many questions are over one text
    for source in found:
        if limit is not None and len(used) >= limit:
            return
        row = source.row
        unknown = [column for column in where if column not in row]
        if unknown:
            raise SuiteFileError(f"{source.place}: there is no column {unknown[0]!r}; there are {', '.join(row)}")
        if any(str(row[column]) != str(value) for column, value in where.items()):
            continue
        task = _task(form, source, shared)
        if task.id in used:
            raise SuiteFileError(f"{source.place}: the id {task.id!r} was used before; ids must differ")
        used.add(task.id)
        yield task


def _task(form: str, source: SourceRow, shared: dict[str, str]) -> Task:
    row = source.row
    if form == "oolong" and "context_window_text" in row:
        _need(source, "question", "answer")
        kind = str(row.get("answer_type", ""))
        score: Callable[[Any], float] = scores.oolong(str(row["answer"]), kind, source.place)
        question, column, expected = str(row["question"]), "context_window_text", row["answer"]
        group = str(row.get("task_group") or row.get("question_type") or "oolong")
    elif form == "ruler" and ("input" in row or "context" in row):
        whole = "input" in row
        column, answers = ("input", "outputs") if whole else ("context", "answer")
        _need(source, *(["outputs"] if whole else ["question", "answer"]))
        group = str(row.get("task") or source.group)
        question = scores.ruler_question(str(row["input"])) if whole else str(row["question"])
        expected = _texts(row[answers])
        score = scores.ruler(expected, part=group.startswith("qa"))
    else:
        raise SuiteFileError(f"{source.place}: these are no columns of {form}: {', '.join(row)}")
    identity = next((str(row[c]) for c in ("id", "index") if row.get(c) is not None), str(source.number))
    return Task(
        f"{form}-{group}-{identity}",
        question,
        _Scorer(score),
        expected,
        context=_context(source, column, shared),
        tags=(form, group),
        facts={"family": group, "size": len(str(row[column])), **_figures(row)},
    )


def _need(source: SourceRow, *columns: str) -> None:
    for column in columns:
        if source.row.get(column) is None:
            raise SuiteFileError(f"{source.place}: column {column!r} is missing or empty")


def _figures(row: Mapping[str, Any]) -> dict[str, Any]:
    return {c: row[c] for c in ("context_len", "length", "dataset", "task", "answer_type") if row.get(c) is not None}


def _texts(value: Any) -> list[str]:
    """Accepted answers: a list, or a list as JSON, or one text."""
    if isinstance(value, str):
        try:
            read: Any = json.loads(value)
        except ValueError:
            read = value
        value = read if isinstance(read, list) else value
    return [str(x) for x in value] if isinstance(value, Iterable) and not isinstance(value, str) else [str(value)]


def _context(source: SourceRow, column: str, shared: dict[str, str]) -> Any:
    """The text itself, kept once, or where it is read from again when a run needs it."""
    text = str(source.row[column])
    if source.again is None:
        return shared.setdefault(text, text)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    again = source.again
    return Deferred(f"{source.place}:{column}:{digest}", lambda: str(again()[column]), lambda: f"sha256 {digest}")


class _Scorer:
    """A published rule as a scorer: resolved at the full score."""

    def __init__(self, rule: Callable[[Any], float]) -> None:
        self.rule = rule

    def __call__(self, attempt: Attempt) -> Score:
        try:
            if attempt.answer is None:
                return Score(False, 0.0, "no answer")
            value = self.rule(attempt.answer)
            shown = " ".join(str(attempt.answer).split())[:80]  # of 5,000 digits there is no text
        except (ImportError, OSError):  # the machine's fault, not the answer's
            raise
        except Exception as error:  # an answer can be any object
            return Score(False, 0.0, f"the answer cannot be compared: {type(error).__name__}")
        return Score(value >= 1.0, value, "right" if value >= 1.0 else f"scored {value:.2f}: {shown}")
