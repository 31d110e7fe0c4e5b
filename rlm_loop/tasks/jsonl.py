"""A user's own tasks: one JSON object a line.

Needed: `id`, `question`, `answer`.  Optional: `context` (any JSON value) or `context_path` (a UTF-8 text file, seen
from the folder of the JSONL file; a large one is read again when a run needs it); `needles`, a list of [start, end)
ranges of characters of the context that the answer depends on; `files`, an object of file name to text; `match` and
`tolerance`, see `match.Match`: "exact" (by the answer's type, the default), "number", "contains", "regex" and more.
Blank lines are skipped.  Whatever else is found is refused with the file's name, the line's number and the field.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn, cast

from rlm_loop.tasks.base import Deferred, Ranges, Suite, Task, inline_text
from rlm_loop.tasks.match import HOWS, Match

FIELDS = ("id", "question", "answer", "context", "context_path", "files", "match", "tolerance", "needles")
#: Files above this many bytes are not kept in memory while a suite is listed.
KEPT = 1 << 20


class SuiteFileError(ValueError):
    """A task file that cannot be used; the message says where and what to change."""


def read_suite(path: str | Path) -> Suite:
    """The suite in a JSONL file, named after the file.  Raises `SuiteFileError`."""
    path = Path(path).expanduser()
    tasks: dict[str, Task] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(_text(path, f"{path}").split("\n"), 1):
        if not line.strip():
            continue
        task = _Line(path, number).task(line)
        if task.id in tasks:
            raise SuiteFileError(f"{path}:{number}: id {task.id!r} was used in line {lines[task.id]}; ids must differ")
        tasks[task.id], lines[task.id] = task, number
    if not tasks:
        raise SuiteFileError(
            f"{path}: there is no task in it; write one JSON object a line with id, question and answer"
        )
    return Suite(path.stem, tuple(tasks.values()), f"tasks of {path.name}")


def _text(path: Path, where: str) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise SuiteFileError(f"{where}: there is no file {path}") from None
    except OSError as error:
        raise SuiteFileError(f"{where}: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SuiteFileError(f"{where}: {path} is not UTF-8 text (byte {error.start}); convert it first") from None


def write_lines(path: str | os.PathLike[str], text: str, ending: str, what: str) -> Path:
    """Write a file in one step; returns the path.  Raises `SuiteFileError` for another ending, or where it cannot be.

    The text is ASCII: the readers of others open the file in the machine's own encoding.
    """
    target = Path(path)
    if target.suffix != ending:
        raise SuiteFileError(f"{path}: {what}; choose a name that ends in {ending}")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="ascii")
        os.replace(part, target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise SuiteFileError(f"cannot write {path}: {error.strerror}; choose another path") from None
    return target


class _Line:
    """One line being read; knows where it stands, for the errors."""

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number

    def refuse(self, message: str) -> NoReturn:
        raise SuiteFileError(f"{self.path}:{self.number}: {message}") from None

    def task(self, line: str) -> Task:
        fields = self.fields(line)
        files = self.files(fields.get("files", {}))
        return Task(
            self.identity(fields["id"]),
            self.text(fields["question"], "question"),
            self.match(fields),
            fields["answer"],
            context=self.context(fields),
            files=files,
            inline=inline_text(files) if files else "",
            tags=(self.path.stem,),
            needles=self.needles(fields.get("needles") or []),
        )

    def needles(self, value: Any) -> Ranges:
        ranges = cast("list[Any]", value if isinstance(value, list) else [None])
        for pair in ranges:
            whole = isinstance(pair, list) and [type(x) for x in cast("list[Any]", pair)] == [int, int]
            if not whole or not 0 <= pair[0] < pair[1]:
                self.refuse(f"field 'needles' is a list of [start, end] with 0 <= start < end, not {value!r:.80}")
        return tuple((start, end) for start, end in ranges)

    def fields(self, line: str) -> dict[str, Any]:
        try:
            value: Any = json.loads(line, object_pairs_hook=self.object)
        except json.JSONDecodeError as error:
            self.refuse(f"this is not JSON (column {error.colno}: {error.msg}); write one object a line")
        except RecursionError:
            self.refuse("this JSON is nested too deeply")
        if not isinstance(value, dict):
            self.refuse(f"this is a JSON {type(value).__name__}, not an object with id, question and answer")
        fields = cast("dict[str, Any]", value)
        unknown = [name for name in fields if name not in FIELDS]
        if unknown:
            self.refuse(f"unknown fields {', '.join(map(repr, unknown))}; known are {', '.join(FIELDS)}")
        missing = [name for name in FIELDS[:3] if fields.get(name) is None]
        if missing:
            self.refuse(f"field {missing[0]!r} is missing")
        return fields

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            self.refuse(f"field {twice!r} is given twice")
        return dict(pairs)

    def identity(self, value: Any) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.text(value, "id")

    def text(self, value: Any, field: str) -> str:
        if not isinstance(value, str) or not value.strip():
            self.refuse(f"field {field!r} must be a text that is not empty, not {json.dumps(value)[:80]}")
        return value

    def match(self, fields: Mapping[str, Any]) -> Match:
        how: Any = fields.get("match") or "exact"
        if how not in HOWS:
            self.refuse(f"field 'match' is {json.dumps(how)[:80]}, but must be one of {', '.join(HOWS)}")
        tolerance: Any = fields.get("tolerance")
        if tolerance is not None and (isinstance(tolerance, bool) or not isinstance(tolerance, int | float)):
            self.refuse(f"field 'tolerance' must be a number, not {json.dumps(tolerance)[:80]}")
        try:
            return Match(fields["answer"], how, tolerance)
        except (ValueError, TypeError) as error:
            self.refuse(f"field {'tolerance' if 'tolerance' in str(error) else 'answer'!r}: {error}")

    def files(self, value: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            self.refuse("field 'files' must be an object of file name to text")
        files = cast("dict[str, Any]", value)
        for name, text in files.items():
            if not isinstance(text, str):
                self.refuse(f"field 'files': the content of {name!r} must be text")
            path = PurePosixPath(name)
            if not path.name or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
                self.refuse(f"field 'files': {name!r} is not a name inside the working folder")
        return files

    def context(self, fields: Mapping[str, Any]) -> Any:
        source: Any = fields.get("context_path")
        if source is None:
            return fields.get("context")
        if fields.get("context") is not None:
            self.refuse("fields 'context' and 'context_path' exclude each other; keep one")
        found = self.path.parent / Path(self.text(source, "context_path")).expanduser()
        where = f"{self.path}:{self.number}: field 'context_path'"
        if not found.is_file() or found.stat().st_size <= KEPT:
            return _text(found, where)
        digest = _digest(found, where)
        return Deferred(f"{found} {digest}", lambda: _text(found, where), lambda: f"{found.name}, sha256 {digest}")


def _digest(path: Path, where: str) -> str:
    """The hash of a file, which is read through once in steps: what is no UTF-8 is refused before a run."""
    digest, decoder = hashlib.sha256(), codecs.getincrementaldecoder("utf-8")()
    try:
        with path.open("rb") as file:
            while step := file.read(KEPT):
                digest.update(step)
                decoder.decode(step)
            decoder.decode(b"", final=True)
    except OSError as error:
        raise SuiteFileError(f"{where}: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SuiteFileError(f"{where}: {path} is not UTF-8 text; convert it first") from None
    return digest.hexdigest()
