"""Dialects that users wrote: what they leave out is as it is in most dialects."""

from __future__ import annotations

from typing import Any

from rlm_loop.dialects.base import Dialect, Speaking
from rlm_loop.dialects.wrapped import Wrapped
from rlm_loop.repl.clip import HARD_CAP


class _Given(Wrapped):
    @property
    def observation_cap(self) -> int:
        return getattr(self.dialect, "observation_cap", HARD_CAP)

    @property
    def wants_variables(self) -> bool:
        return getattr(self.dialect, "wants_variables", False)

    @property
    def rewrites(self) -> tuple[Any, ...]:
        return getattr(self.dialect, "rewrites", ())


def complete(dialect: Dialect) -> Dialect:
    """The dialect, with what every dialect has."""
    return dialect if isinstance(dialect, (Speaking, Wrapped)) else _Given(dialect)
