"""Where instances come from (a published set, any set of the hub, files), and which of them are taken."""

from __future__ import annotations

import difflib
import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.source_rows import ENDINGS, rows_of
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
    for source in rows_of(place, **options):
        instance = read_instance(source.row, source.place)
        before = lines.setdefault(instance.instance_id, source.place)
        if before != source.place:
            raise SuiteFileError(
                f"{source.place}: field 'instance_id': {instance.instance_id!r} was used before, in {before}"
            )
        yield instance
    if not lines:
        raise SuiteFileError(f"{place}: there is no instance in it")


def select(
    instances: Iterable[Instance],
    *,
    ids: Collection[str] | None = None,
    only: Collection[str] | None = None,
    part: slice | str | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> tuple[Instance, ...]:
    """The instances with these `ids`, of these repositories (`only`: OWNER/NAME or NAME), of this `part`, and of these
    a draw of `sample`.

    The steps come in this order.  `part` is a slice or its text, such as "0:10" or "::5".  The draw depends on the
    seed and on the ids alone, not on the order of the file; the set's order is kept.  A draw of more than there are
    takes all.  Raises `SuiteFileError` that lists near names, and `ValueError` for a slice that is none.
    """
    chosen = list(instances)
    if ids is not None:
        chosen = _by_id(chosen, [ids] if isinstance(ids, str) else list(ids))
    if only is not None:
        chosen = _by_repository(chosen, [only] if isinstance(only, str) else list(only))
    if part is not None:
        chosen = chosen[_slice(part) if isinstance(part, str) else part]
    if sample is not None:
        if sample < 0:
            raise ValueError(f"sample is a number of instances, not {sample}")
        names = sorted(i.instance_id for i in chosen)
        drawn = set(random.Random(f"swebench:{seed}").sample(names, min(sample, len(names))))
        chosen = [i for i in chosen if i.instance_id in drawn]
    return tuple(chosen)


def _by_id(instances: Sequence[Instance], ids: Sequence[str]) -> list[Instance]:
    known = {i.instance_id: i for i in instances}
    for wanted in ids:
        if wanted not in known:
            raise SuiteFileError(f"there is no instance {wanted!r}; {_near(wanted, known)}")
    return [i for i in instances if i.instance_id in set(ids)]


def _by_repository(instances: Sequence[Instance], wanted: Sequence[str]) -> list[Instance]:
    known = {name for i in instances for name in (i.repo, i.repo.rpartition("/")[2])}
    for name in wanted:
        if name not in known:
            raise SuiteFileError(f"there is no instance of {name!r}; {_near(name, {i.repo for i in instances})}")
    return [i for i in instances if i.repo in wanted or i.repo.rpartition("/")[2] in wanted]


def _near(wanted: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(wanted, known, 3, 0.6)
    if near:
        return f"near are {', '.join(near)}"
    return f"there are {', '.join(sorted(known)[:5])}{' ...' if len(known) > 5 else ''}"


def _slice(text: str) -> slice:
    try:
        numbers = [int(x) if x.strip() else None for x in text.split(":")]
        if len(numbers) not in (2, 3) or numbers[2:] == [0]:
            raise ValueError
    except ValueError:
        raise ValueError(f"part is a slice such as 0:10 or ::5, not {text!r}") from None
    return slice(*numbers)
