"""The rows of a published set, one at a time: from JSON Lines, from parquet, or from the Hugging Face hub."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from rlm_loop.errors import install_line
from rlm_loop.tasks.jsonl import SuiteFileError

ENDINGS = (".jsonl", ".jsonl.gz", ".parquet")


@dataclass(frozen=True)
class SourceRow:
    """A row and where it stands, for messages."""

    row: Mapping[str, Any]
    place: str


def rows_of(place: str, **options: Any) -> Iterator[SourceRow]:
    """All rows of a file, of the files in a folder (by name), or of `hf://OWNER/NAME[/CONFIGURATION]`.

    A file of JSON Lines, plain or packed, or parquet; one that is named may also be a JSON list, or an object by id.
    """
    if place.startswith("hf://"):
        yield from hub_rows(place.removeprefix("hf://"), **options)
        return
    if options:
        raise ValueError(f"{', '.join(options)} is for places on the hub (hf://OWNER/NAME), not for files")
    path = Path(place).expanduser()
    files = sorted(p for p in path.rglob("*") if p.name.endswith(ENDINGS)) if path.is_dir() else [path]
    if not files:
        raise SuiteFileError(f"{place}: there is no file that ends in {', '.join(ENDINGS)} in it")
    for file in files:
        if not file.is_file():
            raise SuiteFileError(f"{place}: there is no file {file}")
        reader = {".parquet": _parquet, ".json": _whole}.get(file.suffix, _lines)
        yield from reader(file)


def _whole(file: Path) -> Iterator[SourceRow]:
    try:
        read: Any = json.loads(file.read_bytes())
    except OSError as error:
        raise SuiteFileError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise SuiteFileError(f"{file}: this is not JSON ({error})") from None
    if isinstance(read, dict):
        read = [read] if "instance_id" in read else list(cast("dict[str, Any]", read).values())
    if not isinstance(read, list):
        raise SuiteFileError(f"{file}: this is a JSON {type(read).__name__}, not a list of rows")
    for number, row in enumerate(cast("list[Any]", read)):
        yield SourceRow(_object(row, f"{file}:[{number}]"), f"{file}:[{number}]")


def _lines(file: Path) -> Iterator[SourceRow]:
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                place = f"{file}:{number}"
                yield SourceRow(_row(line, place), place)


def _row(line: bytes, place: str) -> Mapping[str, Any]:
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SuiteFileError(f"{place}: this is not JSON ({error}); write one object a line") from None
    return _object(value, place)


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise SuiteFileError(f"{place}: this is a JSON {type(value).__name__}, not an object")
    return cast("dict[str, Any]", value)


def _parquet(file: Path) -> Iterator[SourceRow]:
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise ImportError(f"parquet files need pyarrow: {install_line('hub')}") from None
    number = 0
    try:
        opened = parquet.ParquetFile(file)
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise SuiteFileError(f"{file}: this is no parquet file ({' '.join(str(error).split())[:120]})") from None
    for batch in opened.iter_batches(batch_size=64):
        for row in batch.to_pylist():
            number += 1
            yield SourceRow(row, f"{file}:{number}")


def hub_rows(
    name: str, *, split: str | None = None, revision: str | None = None, open_dataset: Callable[..., Any] | None = None
) -> Iterator[SourceRow]:
    """The rows of a set on the hub, streamed: what is not asked for is not fetched.

    `split` is `test` where none is given; `revision` is a commit or tag, for results
    that can be repeated; `open_dataset` stands in for `datasets.load_dataset`.
    """
    owner, _, rest = name.partition("/")
    repository, _, configuration = rest.partition("/")
    if not owner or not repository:
        raise ValueError(f"hf://{name} names no set; write hf://OWNER/NAME or hf://OWNER/NAME/CONFIGURATION")
    chosen = split or "test"
    options: dict[str, Any] = {"split": chosen, "streaming": True}
    if revision is not None:
        options["revision"] = revision
    load = open_dataset or _load_dataset()
    rows: Any = load(f"{owner}/{repository}", *([configuration] if configuration else []), **options)
    for number, row in enumerate(rows, 1):
        yield SourceRow(row, f"hf://{name}:{chosen}:{number}")


def _load_dataset() -> Callable[..., Any]:
    try:
        return import_module("datasets").load_dataset
    except ImportError:
        raise ImportError(f"sets on the hub need datasets: {install_line('hub')}") from None
