"""A user's own tasks: one JSON object a line.

Needed: `id`, `question`, `answer`.  Optional: `context` (any JSON value) or `context_path` (a UTF-8 text file, seen
from the folder of the JSONL file); `files`, an object of file name to text; `match` and `tolerance`, see `match.Match`:
"exact" (by the answer's type, the default), "number", "contains", "regex" and more.  Blank lines are skipped.  Whatever
else is found is refused with the file's name, the line's number and the field.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, cast

from rlm_loop.tasks.base import Suite, Task, inline_text
from rlm_loop.tasks.match import How, Match

#: A row and where it stands, for messages.
SourceRow = tuple[Mapping[str, Any], str]


class SuiteFileError(ValueError):
    """A task file that cannot be used; the message says where and what to change."""


def rows_of(place: str) -> Iterator[SourceRow]:
    """Yield the rows of a file of JSON Lines, plain or packed with gzip.  Raises `SuiteFileError`."""
    file = Path(place).expanduser()
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _row(line, f"{file}:{number}"), f"{file}:{number}"
    except OSError as error:
        raise SuiteFileError(f"cannot read {file}: {error.strerror or error}") from None


def _row(line: bytes, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SuiteFileError(f"{place}: this is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise SuiteFileError(f"{place}: this is a JSON {type(value).__name__}, not an object")
    return cast("dict[str, Any]", value)


def read_suite(path: str | Path) -> Suite:
    """Return the suite in a JSONL file, named after the file.  Raises `SuiteFileError`."""
    from pydantic import ValidationError

    path = Path(path).expanduser()
    tasks, texts = dict[str, Task](), dict[Path, str]()
    for row, place in rows_of(str(path)):
        try:
            task = _task(_line_type().model_validate(row), path, texts)
            if task.id in tasks:
                raise ValueError(f"id {task.id!r} was used before; ids must differ")
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            unknown = problem["type"] == "extra_forbidden"
            known = f"; known are {', '.join(_line_type().model_fields)}" if unknown else ""
            said = f"field {problem['loc'][0]!r}: {problem['msg']}, got {problem['input']!r:.80}{known}"
            raise SuiteFileError(f"{place}: {said}") from None
        except (ValueError, TypeError) as error:
            raise SuiteFileError(f"{place}: {error}") from None
        tasks[task.id] = task
    if not tasks:
        raise SuiteFileError(f"{path}: there is no task in it; write objects with id, question and answer, one a line")
    return Suite(path.stem, tuple(tasks.values()), f"tasks of {path.name}")


@cache
def _line_type() -> Any:
    from pydantic import ConfigDict, Field, create_model

    text = Annotated[str, Field(pattern=r"\S")]
    return create_model(
        "Line",
        __config__=ConfigDict(extra="forbid", strict=True),
        id=(cast("Any", text | int), ...),
        question=(text, ...),
        answer=(Any, ...),
        context=(Any, None),
        context_path=(str | None, None),
        files=(dict[str, str], {}),
        match=(How, "exact"),
        tolerance=(float | None, None),
    )


def _task(line: Any, path: Path, texts: dict[Path, str]) -> Task:
    if line.answer is None:
        raise ValueError("field 'answer' must be given, got null")
    for name in line.files:
        inside = PurePosixPath(name)
        if not inside.name or inside.is_absolute() or ".." in inside.parts or "\\" in name or "\0" in name:
            raise ValueError(f"field 'files': {name!r} is not a name inside the working folder")
    context = line.context
    if line.context_path is not None:
        if context is not None:
            raise ValueError("fields 'context' and 'context_path' exclude each other; keep one")
        source = path.parent / Path(line.context_path).expanduser()
        if source not in texts:
            texts[source] = _text(source)
        context = texts[source]  # one text in memory for all tasks about it
    return Task(
        str(line.id),
        line.question,
        Match(line.answer, line.match, line.tolerance),
        line.answer,
        context=context,
        files=line.files,
        inline=inline_text(line.files) if line.files else "",
    )


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SuiteFileError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SuiteFileError(f"{path} is not UTF-8 text (byte {error.start}); convert it first") from None
