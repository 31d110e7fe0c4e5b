"""The episodes that count, and as what: one rule for every table, figure and comparison of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from rlm_loop.study.errors import StudyError
from rlm_loop.study.store.rows import MACHINE, finished, kind_of, never_begun

#: What arms are paired on: model, suite, task, seed.
PairKey = tuple[str, str, str, int]
AnyRow = TypeVar("AnyRow", bound=Mapping[str, Any])


def pair_key(row: Mapping[str, Any]) -> PairKey:
    """The columns on which arms are paired."""
    return (row["model"], row["suite"], row["task"], row["seed"])


def is_resolved(row: Mapping[str, Any] | None) -> bool | None:
    """Say whether the arm resolved the task; `None` means not scored, and is not counted as a failure.

    An episode that its own arm ended (the loop raised, the model or its provider failed for good) is not resolved.
    One that the machine or the scorer ended is not scored, and neither is one that nothing judged or that is not there.
    """
    if row is None:
        return None
    if not finished(row):
        return None if never_begun(row) or kind_of(row) in MACHINE else False
    value = row.get("resolved")
    return None if value is None else bool(value)


def crashes_by_kind(rows: Iterable[Mapping[str, Any]]) -> str:
    """The crashes among rows, counted by the class of their error, as in "2 TypeError, 1 OSError"; empty for none."""
    kinds = Counter(str(kind_of(row)) for row in rows if not finished(row))
    return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())


def crash_sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """Count the episodes of each arm that crashed, and of what; empty where none did."""
    told: list[str] = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        mine = [row for row in rows if row["arm"] == arm]
        if crashed := sum(not finished(row) for row in mine):
            told.append(f"{arm} in {crashed} of {len(mine)} episodes ({crashes_by_kind(mine)})")
    return f"Crashed: {'; '.join(told)}." if told else ""


def complete_and_incomplete(
    rows: Iterable[Mapping[str, Any]], arms: Sequence[str] | None = None
) -> tuple[list[PairKey], list[PairKey]]:
    """The units that count, in their order, and those that do not count yet.

    A unit counts as soon as each arm that the model has any row of was tried on it, however that ended; so an arm that
    always crashes takes no unit from the others, and a unit under way is not lost.  `arms` are those that matter (all).
    """
    tried: dict[PairKey, set[str]] = {}
    of_model: dict[str, set[str]] = {}
    for row in rows:
        if arms is None or row["arm"] in arms:
            tried.setdefault(pair_key(row), set()).add(row["arm"])
            of_model.setdefault(row["model"], set()).add(row["arm"])
    there = {u: of == of_model[u[0]] for u, of in tried.items()}
    return [u for u, whole in there.items() if whole], [u for u, whole in there.items() if not whole]


def by_episode(rows: Sequence[AnyRow]) -> dict[tuple[str, PairKey], AnyRow]:
    """The row of each arm and pair key.  Raises `StudyError` that names an episode with two rows: none may win."""
    found: dict[tuple[str, PairKey], AnyRow] = {}
    for row in rows:
        episode = (row["arm"], pair_key(row))
        if episode in found:
            model, suite, task, seed = episode[1]
            raise StudyError(
                f"there are two rows of arm {row['arm']!r} on task {task!r} of suite {suite!r}, seed {seed}, with "
                f"model {model}; keep one of them (`load_study` keeps the last of each episode)"
            )
        found[episode] = row
    return found
