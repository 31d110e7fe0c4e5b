"""Sources of instances: a published set, any set of the hub, files; and the choice among them."""

from __future__ import annotations

import difflib
import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rlm_loop.tasks.hub import dataset_rows
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.source_rows import rows_of
from rlm_loop.tasks.swebench.instance import Instance, read_instance

#: The published sets by the names that people use.
SETS = {
    "lite": "hf://SWE-bench/SWE-bench_Lite",
    "verified": "hf://SWE-bench/SWE-bench_Verified",
    "full": "hf://SWE-bench/SWE-bench",
    "multilingual": "hf://SWE-bench/SWE-bench_Multilingual",
}
_ENDINGS = (".jsonl", ".jsonl.gz", ".json")


def place_of(name: str) -> str:
    """Return where the set of this name is: `hf://OWNER/NAME`, or a file.  Raises `SuiteFileError` for none of them."""
    known = SETS.get(name.strip().lower())
    if known is not None:
        return known
    if name.startswith("hf://") or (name.endswith(_ENDINGS) and Path(name).expanduser().is_file()):
        return name
    endings = ", ".join(_ENDINGS)
    if name.endswith(_ENDINGS):
        raise SuiteFileError(f"there is no file {name}; name a file of SWE-bench instances ({endings})")
    known = f"known are {', '.join(SETS)}, hf://OWNER/NAME, or a file ({endings})"
    raise SuiteFileError(f"there is no set {name!r}: {known}")


def read_instances(name: str, **options: Any) -> Iterator[Instance]:
    """Yield the instances of a set, in its order.

    `options` are for sets of the hub: `split` (`test` where none is given), `revision`.  Raises `SuiteFileError` that
    names the file, the line and the field, and `ImportError` that names the extra to install.
    """
    lines: dict[str, str] = {}
    place = place_of(name)
    if options and not place.startswith("hf://"):
        raise ValueError(f"{', '.join(options)} is for sets of the hub (hf://OWNER/NAME), not for files")
    rows = dataset_rows(place.removeprefix("hf://"), **options) if place.startswith("hf://") else rows_of(place)
    for row, where in rows:
        instance = read_instance(row, where)
        before = lines.setdefault(instance.instance_id, where)
        if before != where:
            raise SuiteFileError(f"{where}: field 'instance_id': {instance.instance_id!r} was used before, in {before}")
        yield instance
    if not lines:
        raise SuiteFileError(f"{place}: there is no instance in it")


def select(
    instances: Iterable[Instance],
    *,
    ids: str | Collection[str] | None = None,
    only: str | Collection[str] | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> tuple[Instance, ...]:
    """Return the instances with these `ids`, of these repositories (`only`: OWNER/NAME or NAME), and of these a draw.

    The draw of `sample` depends on the seed and on the ids alone, not on the order of the file; the set's order is
    kept, and a draw of more than there are takes all.  Raises `SuiteFileError` that lists near names.
    """
    chosen = list(instances)
    if ids is not None:
        wanted = {ids} if isinstance(ids, str) else set(ids)
        _refuse_unknown("instance", wanted, {i.instance_id for i in chosen}, {i.instance_id for i in chosen})
        chosen = [i for i in chosen if i.instance_id in wanted]
    if only is not None:
        wanted = {only} if isinstance(only, str) else set(only)
        repos = {i.repo for i in chosen}
        _refuse_unknown("instance of", wanted, repos | {repo.rpartition("/")[2] for repo in repos}, repos)
        chosen = [i for i in chosen if wanted & {i.repo, i.repo.rpartition("/")[2]}]
    if sample is not None:
        if sample < 0:
            raise ValueError(f"sample must be >= 0 (instances), got {sample}")
        names = sorted(i.instance_id for i in chosen)
        drawn = set(random.Random(f"swebench:{seed}").sample(names, min(sample, len(names))))
        chosen = [i for i in chosen if i.instance_id in drawn]
    return tuple(chosen)


def _refuse_unknown(what: str, wanted: Collection[str], known: Collection[str], listed: Collection[str]) -> None:
    for name in sorted(set(wanted) - set(known)):
        near: Sequence[str] = difflib.get_close_matches(name, listed, 3, 0.6)
        more = " ..." if len(listed) > 5 else ""
        hint = f"near are {', '.join(near)}" if near else f"there are {', '.join(sorted(listed)[:5])}{more}"
        raise SuiteFileError(f"there is no {what} {name!r}; {hint}")
