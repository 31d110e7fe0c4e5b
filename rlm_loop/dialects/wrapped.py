"""A dialect that wraps another one and delegates what it does not change.  It also completes a user's dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.actions import Action
from rlm_loop.dialects.base import NO_TOOLS, ActionMode, Dialect, DialectDefaults, Problem
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool


@dataclass(frozen=True)
class Wrapped:
    """Speaks exactly as `dialect` does.  Subclasses change one thing, and may be put around each other."""

    dialect: Dialect

    @property
    def name(self) -> str:
        return self.dialect.name

    @property
    def action_mode(self) -> ActionMode:
        return self.dialect.action_mode

    @property
    def observation_cap(self) -> int:
        return self.dialect.observation_cap

    @property
    def wants_variables(self) -> bool:
        """Whether something inside tells of the REPL's variables (see `Observation.variables`)."""
        return self.dialect.wants_variables

    @property
    def rewrites(self) -> tuple[Any, ...]:
        """The injectors inside that change what was said before (see `rewriting`)."""
        return self.dialect.rewrites

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        return self.dialect.format_task(problem, tools)

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        return self.dialect.parse_reply(reply, tools)

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        return self.dialect.format_turn(turn)


class _Completed(Wrapped):
    """A user's dialect with what every dialect has."""

    @property
    def observation_cap(self) -> int:
        return getattr(self.dialect, "observation_cap", DialectDefaults.observation_cap)

    @property
    def wants_variables(self) -> bool:
        return getattr(self.dialect, "wants_variables", DialectDefaults.wants_variables)

    @property
    def rewrites(self) -> tuple[Any, ...]:
        return getattr(self.dialect, "rewrites", DialectDefaults.rewrites)


#: The class that stands around a user's dialect, and is no part of what an arm is.
ADAPTER = _Completed.__name__


def complete(dialect: Dialect) -> Dialect:
    """The dialect, with what every dialect has."""
    if isinstance(dialect, (DialectDefaults, Wrapped)):
        return dialect
    return _Completed(dialect)
