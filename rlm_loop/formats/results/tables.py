"""CSV, JSON Lines and JSON with a row for each task, arm and seed."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from rlm_loop.formats.results.source import ReadOptions, Source, objects_of, parsed, read_bytes
from rlm_loop.study.compare.columns import guessed_columns, rows_of_table
from rlm_loop.study.errors import StudyError

#: What names of tables end in, gzip included or not.
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")


def read_table(path: Path, reading: ReadOptions) -> Source:
    """The rows of a table; its columns are found by their spelling, or as `reading.columns` names them.

    Raises `StudyError` where a column is missing or a value cannot be read, with the row.
    """
    records, lines = _records(path)
    columns = dict(reading.columns)
    if reading.score is not None:
        columns.setdefault("resolved", reading.score)
    if not records:
        raise StudyError(f"{path} holds no rows")
    names = guessed_columns(records, str(path), columns, "")
    rows = rows_of_table(
        records, str(path), columns=columns, arm="", threshold=reading.threshold, lines=lines, word="line"
    )
    told = ", ".join(f"{ours} from {theirs!r}" for ours, theirs in names.items() if ours != theirs)
    return Source(path, "table", rows, [f"{path.name}: {told}"] if told else [])


def _records(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind in (".csv", ".tsv"):
        return _separated(path, "\t" if kind == ".tsv" else None)
    if kind == ".json":
        value = parsed(read_bytes(path), path)
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
            raise StudyError(f"{path} is no list of JSON objects, and no evaluation log that this version knows")
        return value, list(range(1, len(value) + 1))
    return objects_of(path)


def _separated(path: Path, delimiter: str | None) -> tuple[list[dict[str, Any]], list[int]]:
    text = read_bytes(path).decode("utf-8-sig", "replace")
    if delimiter is None:
        head = text.partition("\n")[0]
        delimiter = max(",;\t", key=head.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval=None)
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    try:
        for record in reader:
            if None in record:
                raise StudyError(f"{path}, line {reader.line_num}: more cells than columns")
            records.append(record)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise StudyError(f"{path}, line {reader.line_num}: {error}") from None
    return records, lines
