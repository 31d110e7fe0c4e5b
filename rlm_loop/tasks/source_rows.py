"""The rows of a file of JSON Lines, plain or packed with gzip, or of a JSON list."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from rlm_loop.tasks.jsonl import SuiteFileError

#: A row and where it stands, for messages.
SourceRow = tuple[Mapping[str, Any], str]


def rows_of(place: str) -> Iterator[SourceRow]:
    """Yield the rows of a file; of a JSON object, its values.  Raises `SuiteFileError`."""
    file = Path(place).expanduser()
    try:
        if file.suffix != ".json":
            with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        yield _row(_read(line, f"{file}:{number}"), f"{file}:{number}")
            return
        read = _read(file.read_bytes(), f"{file}")
    except OSError as error:
        raise SuiteFileError(f"cannot read {file}: {error.strerror or error}") from None
    if isinstance(read, dict):
        read = [read] if "instance_id" in read else list(cast("dict[str, Any]", read).values())
    if not isinstance(read, list):
        raise SuiteFileError(f"{file}: this is a JSON {type(read).__name__}, not a list of rows")
    for number, row in enumerate(cast("list[Any]", read)):
        yield _row(row, f"{file}:[{number}]")


def _read(data: bytes, place: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SuiteFileError(f"{place}: this is not JSON ({error})") from None


def _row(value: Any, place: str) -> SourceRow:
    if not isinstance(value, dict):
        raise SuiteFileError(f"{place}: this is a JSON {type(value).__name__}, not an object")
    return cast("dict[str, Any]", value), place
