"""Which instances of a set are taken: by id, by repository, by a slice, or by a seeded draw."""

from __future__ import annotations

import difflib
import random
from collections.abc import Collection, Iterable, Sequence

from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.swebench.instance import Instance


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
