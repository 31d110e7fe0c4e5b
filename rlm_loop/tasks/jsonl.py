"""A user's own tasks: one JSON object a line.

Needed: `id`, `question`, `answer`.  Optional: `context` (any JSON value) or `context_path` (a UTF-8 text file, seen
from the folder of the JSONL file); `needles`, a list of [start, end) ranges of characters of the context that the
answer depends on; `files`, an object of file name to text; `match` and `tolerance`, see `match.Match`: "exact" (by the
answer's type, the default), "number", "contains", "regex" and more.  Blank lines are skipped.  Whatever else is found
is refused with the file's name, the line's number and the field.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, cast

from rlm_loop.tasks.base import Suite, Task, inline_text
from rlm_loop.tasks.match import How, Match

if TYPE_CHECKING:
    from pydantic import ValidationError


class SuiteFileError(ValueError):
    """A task file that cannot be used; the message says where and what to change."""


def read_suite(path: str | Path) -> Suite:
    """Return the suite in a JSONL file, named after the file.  Raises `SuiteFileError`."""
    from pydantic import ValidationError

    path = Path(path).expanduser()
    tasks: dict[str, Task] = {}
    lines: dict[str, int] = {}
    texts: dict[Path, str] = {}
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            task = _task(_line_type().model_validate_json(line), path, texts)
            if task.id in tasks:
                raise ValueError(f"id {task.id!r} was used in line {lines[task.id]}; ids must differ")
        except ValidationError as error:
            raise SuiteFileError(f"{path}:{number}: {_explained(error)}") from None
        except (ValueError, TypeError) as error:
            raise SuiteFileError(f"{path}:{number}: {error}") from None
        tasks[task.id], lines[task.id] = task, number
    if not tasks:
        raise SuiteFileError(f"{path}: there is no task in it; write objects with id, question and answer, one a line")
    return Suite(path.stem, tuple(tasks.values()), f"tasks of {path.name}")


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise SuiteFileError(f"there is no file {path}") from None
    except OSError as error:
        raise SuiteFileError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SuiteFileError(f"{path} is not UTF-8 text (byte {error.start}); convert it first") from None


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
        match=(How | None, None),
        tolerance=(float | None, None),
        needles=(list[tuple[int, int]] | None, None),
    )


def _explained(error: ValidationError) -> str:
    """Return the first thing that is wrong with a line."""
    problem = error.errors(include_url=False)[0]
    name = problem["loc"][0] if problem["loc"] else ""
    match problem["type"]:
        case "json_invalid" | "model_type":
            return f"this is no JSON object with id, question and answer ({problem['msg']}); write one a line"
        case "extra_forbidden":
            return f"unknown field {name!r}; known are {', '.join(_line_type().model_fields)}"
        case "missing":
            return f"field {name!r} is missing"
        case _:
            return f"field {name!r}: {problem['msg']}, got {problem['input']!r:.80}"


def _task(line: Any, path: Path, texts: dict[Path, str]) -> Task:
    if line.answer is None:
        raise ValueError("field 'answer' must be given, got null")
    for start, end in line.needles or ():
        if not 0 <= start < end:
            raise ValueError(f"field 'needles' must have ranges with 0 <= start < end, got [{start}, {end}]")
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
        Match(line.answer, line.match or "exact", line.tolerance),
        line.answer,
        context=context,
        files=line.files,
        inline=inline_text(line.files) if line.files else "",
        tags=(path.stem,),
        needles=tuple(line.needles or ()),
    )
