"""Which version of its model a provider says that it answered with: one that changed makes another study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rlm_loop.study.errors import StudyError


class Versions:
    """What the replies of each model said, by the rows of a folder and those that are added.

    Only replies of an earlier run bind this one: what a provider mixes within a run is recorded, in each row.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._before: dict[str, set[str]] = {}
        self._now: dict[str, set[str]] = {}
        for row in rows:
            self._before.setdefault(_model(row), set()).update(_said(row))

    def learn(self, row: Mapping[str, Any]) -> None:
        """Note what a row says.  Raises `StudyError` where the folder's rows are of another version."""
        name, said = _model(row), _said(row)
        known = self._before.get(name, set())
        if known and not said <= known:
            raise StudyError(
                f"{name} now answers as {', '.join(sorted(said - known))}, the rows of this folder are of "
                f"{', '.join(sorted(known))}: the provider has changed the model; choose another folder"
            )
        self._now.setdefault(name, set()).update(said)

    @property
    def learned(self) -> bool:
        """Whether this run has heard of a version."""
        return any(self._now.values())

    def noted(self) -> dict[str, Any]:
        """For `study.json`: all versions by model; nothing where no provider said one."""
        names = sorted({*self._before, *self._now})
        found = {n: sorted(self._before.get(n, set()) | self._now.get(n, set())) for n in names}
        found = {name: versions for name, versions in found.items() if versions}
        return {"model_versions": found} if found else {}


def _model(row: Mapping[str, Any]) -> str:
    return str(row.get("model_name") or row["model"])


def _said(row: Mapping[str, Any]) -> set[str]:
    return {version for version in str(row.get("model_version") or "").split(", ") if version}
