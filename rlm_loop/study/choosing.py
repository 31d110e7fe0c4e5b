"""Some rows of a study, by what they have in their columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rlm_loop.errors import nearest
from rlm_loop.study.errors import StudyError

_SHOWN = 8


def chosen_rows(rows: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any]) -> list[bool]:
    """For each row whether it has, in every column that is named, the value that is wanted, or one of a list.

    Raises `StudyError` for a column that no row has, and for a value that no row has there.
    """
    known = list(dict.fromkeys(name for row in rows for name in row))
    kept = [True] * len(rows)
    for name, value in wanted.items():
        if name not in known:
            raise StudyError(f"results have no column {name!r}{nearest(name, known)}; there are arm, suite, task ...")
        values = list(value) if isinstance(value, Collection) and not isinstance(value, (str, Mapping)) else [value]
        there = [row.get(name) for row in rows]
        for each in values:
            if each not in there:
                raise StudyError(f"no episode has {name}={each!r}; there are {_some(there)}")
        kept = [keep and found in values for keep, found in zip(kept, there, strict=True)]
    return kept


def _some(values: Sequence[Any]) -> str:
    distinct = list(dict.fromkeys(map(repr, values)))
    more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    return ", ".join(distinct[:_SHOWN]) + more
