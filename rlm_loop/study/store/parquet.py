"""Rows as Parquet, for tools that read columns; what is read back is equal to what was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.study.errors import StudyError
from rlm_loop.study.store.rows import Row
from rlm_loop.traces.received import parse

_NOTE = b"rlm_loop"
SCHEMA = 1


def write_parquet(path: Path, rows: Sequence[Row], lines: bytes) -> None:
    """Write rows to a file; `lines` are the bytes of the `results.jsonl` that they come from.

    Numbers, texts and lists of numbers are columns of that type, `by_cause` is a map, anything else is JSON text.
    Raises `StudyError` without pyarrow, `OSError` where the file cannot be written.
    """
    arrow, parquet = _arrow()
    names = list(dict.fromkeys(name for row in rows for name in row))
    kinds = {name: _kind([row.get(name) for row in rows]) for name in names}
    for name in names:  # `None` and "not there" are two things: where a column has both, only text can say which
        there = [row[name] for row in rows if name in row]
        if len(there) < len(rows) and None in there:
            kinds[name] = "json"
    fields = [(name, _type(arrow, kinds[name])) for name in names]
    columns = [[_cell(row, name, kinds[name]) for row in rows] for name in names]
    note = {
        "schema": SCHEMA,
        "lines": hashlib.sha256(lines).hexdigest(),
        "json": [n for n in names if kinds[n] == "json"],
        "maps": [n for n in names if kinds[n] == "map"],
        "partly": [n for n in names if any(n not in row for row in rows)],
    }
    schema = arrow.schema(fields, metadata={_NOTE: json.dumps(note).encode()})
    table = arrow.Table.from_arrays(
        [arrow.array(c, t) for c, (_, t) in zip(columns, fields, strict=True)], schema=schema
    )
    parquet.write_table(table, path, compression="zstd")


def read_parquet(path: Path) -> list[Row]:
    """The rows of a file.  Raises `StudyError` where it cannot be read."""
    _, parquet = _arrow()
    try:
        if not path.is_file():
            raise OSError("it is not an ordinary file")
        table = parquet.read_table(path)
        note = parse((table.schema.metadata or {})[_NOTE])
    except (OSError, ValueError, KeyError) as error:
        raise StudyError(f"cannot read {path}: {' '.join(str(error).split())}; restore it from a copy") from error
    if note.get("schema", 0) > SCHEMA:
        raise StudyError(f"{path} has schema {note['schema']}; this version reads up to {SCHEMA}: upgrade rlm-loop")
    rows = table.to_pylist()
    for row in rows:
        for name in note["partly"]:
            if row[name] is None:
                del row[name]
        for name in note["json"]:
            if row.get(name) is not None:
                row[name] = parse(row[name])
        for name in note["maps"]:
            if row.get(name) is not None:
                row[name] = dict(row[name])
    return rows


def covered(path: Path, lines: bytes) -> bool:
    """Whether a file can be read here, and holds all of these lines."""
    try:
        _, parquet = _arrow()
        note = parse((parquet.read_schema(path).metadata or {})[_NOTE]) if path.is_file() else {}
    except (StudyError, OSError, ValueError, KeyError):
        return False
    return note.get("schema") == SCHEMA and note["lines"] == hashlib.sha256(lines).hexdigest()


def _cell(row: Mapping[str, Any], name: str, kind: str) -> Any:
    if name not in row:
        return None
    value = row[name]
    if kind == "json":
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return list(value.items()) if kind == "map" and value is not None else value


def _kind(values: Sequence[Any]) -> str:
    """The type of column that gives every value back as it was."""
    kinds = {_of(v) for v in values if v is not None and v != []}
    if any(v == [] for v in values):
        kinds = {k if k.startswith("list of ") else "json" for k in kinds or {"list of int"}}
    if len(kinds) == 1:
        return kinds.pop()
    return "json" if kinds else "str"


def _of(value: Any) -> str:
    simple = _simple(value)
    if simple is not None:
        return simple
    if isinstance(value, list):
        inner = {_simple(v) for v in value}
        return f"list of {inner.pop()}" if inner in ({"int"}, {"float"}) else "json"
    whole = isinstance(value, dict) and all(_simple(k) == "str" and _simple(v) == "int" for k, v in value.items())
    return "map" if whole else "json"


def _simple(value: Any) -> str | None:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -(2**63) <= value < 2**63 else None
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "str" if value.isascii() or value == value.encode(errors="replace").decode() else None
    return None


def _type(arrow: Any, kind: str) -> Any:
    simple = {"bool": arrow.bool_(), "int": arrow.int64(), "float": arrow.float64(), "str": arrow.string()}
    if kind.startswith("list of "):
        return arrow.list_(simple[kind.removeprefix("list of ")])
    if kind == "map":
        return arrow.map_(arrow.string(), arrow.int64())
    return simple.get(kind, arrow.string())


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise StudyError(f"Parquet needs pyarrow: {install_line('parquet')}") from error
    return pyarrow, pyarrow.parquet
