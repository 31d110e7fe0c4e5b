"""Where instances come from: a published set by its name, any set of the hub, or files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.published_rows import ENDINGS, Source, rows_of
from rlm_loop.tasks.swebench.instance import Instance, read_instance

#: The published sets by the names that people use.
SETS = {
    "lite": "hf://SWE-bench/SWE-bench_Lite",
    "verified": "hf://SWE-bench/SWE-bench_Verified",
    "full": "hf://SWE-bench/SWE-bench",
    "multilingual": "hf://SWE-bench/SWE-bench_Multilingual",
}


def place_of(name: str) -> str:
    """Where the set of this name is: one of `SETS`, `hf://OWNER/NAME`, or a file or folder.

    Raises `SuiteFileError` for what is none of them.
    """
    known = SETS.get(name.strip().lower())
    if known is not None:
        return known
    if name.startswith("hf://") or Path(name).expanduser().exists():
        return name
    endings = ", ".join((*ENDINGS, ".json"))
    if name.endswith((*ENDINGS, ".json")):
        raise SuiteFileError(f"there is no file {name}; name a file of SWE-bench instances ({endings})")
    raise SuiteFileError(
        f"there is no set {name!r}: known are {', '.join(SETS)}, hf://OWNER/NAME, or a file or folder ({endings})"
    )


def read_instances(name: str, **options: Any) -> Iterator[Instance]:
    """The instances of a set, in its order.

    `options` are for sets of the hub: `split` (`test` where none is given), `revision`, `open_dataset`.  Raises
    `SuiteFileError` that names the file, the line and the field, and `ImportError` that names the extra to install.
    """
    lines: dict[str, str] = {}
    place = place_of(name)
    for source in _rows(place, options):
        instance = read_instance(source.row, source.place)
        before = lines.setdefault(instance.instance_id, source.place)
        if before != source.place:
            raise SuiteFileError(
                f"{source.place}: field 'instance_id': {instance.instance_id!r} was used before, in {before}"
            )
        yield instance
    if not lines:
        raise SuiteFileError(f"{place}: there is no instance in it")


def _rows(place: str, options: dict[str, Any]) -> Iterator[Source]:
    if place.endswith(".json"):
        if options:
            raise ValueError(f"{', '.join(options)} is for sets of the hub (hf://OWNER/NAME), not for files")
        return _json(Path(place).expanduser())
    return rows_of(place, **options)


def _json(file: Path) -> Iterator[Source]:
    """One JSON list of instances, or an object of them by their ids."""
    try:
        read: Any = json.loads(file.read_bytes())
    except OSError as error:
        raise SuiteFileError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise SuiteFileError(f"{file}: this is not JSON ({error})") from None
    if isinstance(read, dict) and "instance_id" in read:
        read = [read]
    many: Any = list(cast("dict[str, Any]", read).values()) if isinstance(read, dict) else read
    if not isinstance(many, list):
        raise SuiteFileError(f"{file}: this is a JSON {type(many).__name__}, not a list of instances")
    for number, row in enumerate(cast("list[Any]", many), 1):
        place = f"{file}:[{number - 1}]"
        if not isinstance(row, dict):
            raise SuiteFileError(f"{place}: this is a JSON {type(row).__name__}, not an instance")
        yield Source(cast("dict[str, Any]", row), place, number, file.stem)
