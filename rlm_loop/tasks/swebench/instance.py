"""Instances of SWE-bench's schema (a repository at a commit, an issue, tests): read from a set, and chosen."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm_loop.errors import nearest
from rlm_loop.tasks.hub import dataset_rows
from rlm_loop.tasks.jsonl import SuiteFileError, rows_of

#: The published sets by the names that people use.
SETS = {
    "lite": "hf://SWE-bench/SWE-bench_Lite",
    "verified": "hf://SWE-bench/SWE-bench_Verified",
    "full": "hf://SWE-bench/SWE-bench",
    "multilingual": "hf://SWE-bench/SWE-bench_Multilingual",
}
#: Columns that cannot be done without: the pattern of their text, and what it is.
_NEEDED = {
    "instance_id": (r"[^/]*[^/.][^/]*", "a plain name, without a slash"),
    "repo": (r"[^/]+/[^/]+", "OWNER/NAME"),
    "base_commit": (r"[0-9a-fA-F]{7,64}", "a commit's hash"),
    "problem_statement": (r".*\S.*", "a text that is not empty"),
}


@dataclass(frozen=True)
class Instance:
    """A row of SWE-bench's schema.

    `repo` is OWNER/NAME, `base_commit` what the agent starts from; `patch` is the reference solution and `test_patch`
    what brings the tests, both unified diffs that are never shown to a model.  `fail_to_pass` and `pass_to_pass` are
    the names of the tests, in the form of the repository's own runner.  `row` has all columns as they came.
    """

    instance_id: str
    repo: str
    base_commit: str
    problem_statement: str
    patch: str
    test_patch: str
    hints_text: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    row: Mapping[str, Any] = field(compare=False, repr=False)


def read_instance(row: Mapping[str, Any], place: str) -> Instance:
    """Return the instance in a row.  Raises `SuiteFileError` that names the place and the column."""
    for column, (pattern, what) in _NEEDED.items():
        if not isinstance(row.get(column), str) or not re.fullmatch(pattern, row[column], re.DOTALL):
            raise SuiteFileError(f"{place}: field {column!r} must be {what}, not {row.get(column)!r:.60}")
    return Instance(
        *(row[column] for column in _NEEDED),
        *(str(row.get(column) or "") for column in ("patch", "test_patch", "hints_text")),
        *(_tests(row.get(column) or (), column, place) for column in ("FAIL_TO_PASS", "PASS_TO_PASS")),
        row=row,
    )


def _tests(value: Any, column: str, place: str) -> tuple[str, ...]:
    """The names of tests in a list, or in the JSON text of one."""
    try:
        names: Any = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        names = None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):  # pyright: ignore
        raise SuiteFileError(f"{place}: field {column!r} must be a list of names of tests, not {value!r:.60}")
    return tuple(names)  # pyright: ignore


def place_of(name: str) -> str:
    """Return where the set of this name is: `hf://OWNER/NAME`, or a file.  Raises `SuiteFileError` for none of them."""
    place = SETS.get(name, name)
    if not place.startswith("hf://") and not Path(place).expanduser().is_file():
        known = f"known are {', '.join(SETS)}, hf://OWNER/NAME, or a file of JSON Lines"
        raise SuiteFileError(f"there is no set {name!r} of SWE-bench instances: {known}")
    return place


def read_instances(name: str, **options: Any) -> Iterator[Instance]:
    """Yield the instances of a set, in its order.

    `options` are for sets of the hub: `split` (`test` where none is given), `revision`.  Raises `SuiteFileError` that
    names the file, the line and the field, and `ImportError` that names the extra to install.
    """
    place, lines = place_of(name), dict[str, str]()
    hub = place.startswith("hf://")
    if options and not hub:
        raise ValueError(f"{', '.join(options)} is for sets of the hub (hf://OWNER/NAME), not for files")
    for row, where in dataset_rows(place.removeprefix("hf://"), **options) if hub else rows_of(place):
        instance = read_instance(row, where)
        before = lines.setdefault(instance.instance_id, where)
        if before != where:
            raise SuiteFileError(f"{where}: field 'instance_id': {instance.instance_id!r} was used before, in {before}")
        yield instance


def select(
    instances: Iterable[Instance],
    *,
    ids: Collection[str] | None = None,
    only: str | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> tuple[Instance, ...]:
    """Return the instances with these `ids`, of a repository (`only`: OWNER/NAME), and of these a draw.

    The draw of `sample` depends on the seed and on the ids alone, not on the order of the file; the set's order is
    kept, and a draw of more than there are takes all.  Raises `SuiteFileError` that names what is not there.
    """
    chosen = list(instances)
    if ids is not None:
        known = {i.instance_id for i in chosen}
        if missing := sorted(set(ids) - known):
            raise SuiteFileError(f"there is no instance {missing[0]!r}{nearest(missing[0], known)}")
        chosen = [i for i in chosen if i.instance_id in ids]
    if only is not None:
        repos = sorted({i.repo for i in chosen})
        if only not in repos:
            raise SuiteFileError(f"there is no instance of {only!r}; there are those of {', '.join(repos)}")
        chosen = [i for i in chosen if i.repo == only]
    if sample is not None:
        names = sorted(i.instance_id for i in chosen)
        drawn = set(random.Random(f"swebench:{seed}").sample(names, min(sample, len(names))))
        chosen = [i for i in chosen if i.instance_id in drawn]
    return tuple(chosen)
