"""In what isolation cells ran: a study that goes on elsewhere says so where it is another one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from rlm_loop.study.errors import StudyWarning


class Isolations:
    """The isolation of each arm's cells, by the rows of a folder and those that are added.

    It belongs to the machine, so another one is no error: what runs in both is the same, what the stricter one refuses
    is not.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._known: dict[str, set[str]] = {}
        for row in rows:
            self._of(row).update(_kinds(row))

    def learn(self, row: Mapping[str, Any]) -> None:
        """Note the isolation of a row, with a `StudyWarning` for the first of an arm that differs from earlier ones."""
        known, now = self._of(row), _kinds(row)
        if known and not now <= known:
            here, before = (", ".join(sorted(kinds)) for kinds in (now - known, known))
            warnings.warn(
                f"{row['arm']}: cells run as {here!r} here, in earlier rows of this folder as {before!r}; every row "
                "says which. To run all alike stop here (finished episodes are kept) and see `rlm-loop doctor`",
                StudyWarning,
                stacklevel=2,
            )
        known.update(now)

    def _of(self, row: Mapping[str, Any]) -> set[str]:
        return self._known.setdefault(str(row["arm"]), set())


def _kinds(row: Mapping[str, Any]) -> set[str]:
    return {kind} if (kind := str(row.get("isolation") or "")) else set()
