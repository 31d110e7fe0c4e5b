"""A `Source` is one file or folder of results that was read: its rows, and what there is to know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rlm_loop.study.errors import StudyError
from rlm_loop.study.store.rows import Row
from rlm_loop.traces.received import file_bytes, parse


class ReadOptions(NamedTuple):
    """How results are read.

    `score` names the score that says whether a task is resolved, where a log has several; `threshold` is the value from
    which it does; `columns` names columns of a table that are not found by their spelling.
    """

    score: str | None = None
    threshold: float | None = None
    columns: Mapping[str, str] = {}


@dataclass(frozen=True)
class Source:
    """What one path holds.  `kind` says in words what it is; `notes` are what a reader of the results has to know.

    The `arm` of a row is what the file itself calls it, and empty where it does not say.  `fingerprints` has something
    of each task (a hash or a text) by suite and id, by which tasks of one name are known to be the same.
    """

    path: Path
    kind: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    fingerprints: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    @property
    def arms(self) -> list[str]:
        return list(dict.fromkeys(r["arm"] for r in self.rows))


def read_bytes(path: Path) -> bytes:
    """A file, gzip unpacked.  Raises `StudyError` where it cannot be read."""
    try:
        return file_bytes(path)
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from error


def parsed(raw: str | bytes, where: object) -> Any:
    """The value of a JSON text.  Raises `StudyError` that says where it is damaged."""
    try:
        return parse(raw)
    except ValueError as error:
        raise StudyError(f"{where} is no JSON ({error})") from None


def objects_of(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """The objects of a JSON Lines file and the numbers of their lines.  Raises `StudyError` that names a wrong line."""
    found: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in enumerate(read_bytes(path).decode("utf-8-sig", "replace").split("\n"), 1):
        if line.strip():
            value = parsed(line, f"{path}, line {number},")
            if not isinstance(value, dict):
                raise StudyError(f"{path}, line {number}, is no JSON object")
            found.append(value)
            lines.append(number)
    return found, lines
