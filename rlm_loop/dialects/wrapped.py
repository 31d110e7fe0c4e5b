"""A dialect that wraps another one and delegates what it does not change.  It also completes a user's dialect."""

from __future__ import annotations

import warnings
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


#: The methods and the attribute of a dialect, and what they were called in 0.1.
OLD_NAMES = {"format_task": "brief", "parse_reply": "parse", "format_turn": "replay", "action_mode": "hands"}


class _Completed(Wrapped):
    """A user's dialect with what every dialect has, also where it has the names of 0.1."""

    @property
    def action_mode(self) -> ActionMode:
        return self._named("action_mode")

    @property
    def observation_cap(self) -> int:
        return getattr(self.dialect, "observation_cap", DialectDefaults.observation_cap)

    @property
    def wants_variables(self) -> bool:
        return getattr(self.dialect, "wants_variables", DialectDefaults.wants_variables)

    @property
    def rewrites(self) -> tuple[Any, ...]:
        return getattr(self.dialect, "rewrites", DialectDefaults.rewrites)

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        return self._named("format_task")(problem, tools)

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        return self._named("parse_reply")(reply, tools)

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        return self._named("format_turn")(turn)

    def _named(self, name: str) -> Any:
        return getattr(self.dialect, name if hasattr(self.dialect, name) else OLD_NAMES[name])


#: The class that stands around a user's dialect, and is no part of what an arm is.
ADAPTER = _Completed.__name__


def complete(dialect: Dialect) -> Dialect:
    """The dialect, with what every dialect has.  Warns of names that were those of 0.1."""
    if isinstance(dialect, (DialectDefaults, Wrapped)):
        return dialect
    if old := [f"{now} (it was {then})" for now, then in OLD_NAMES.items() if not hasattr(dialect, now)]:
        line = f"{type(dialect).__name__}: a dialect now has {', '.join(old)}; rename them, the old names go with 0.3"
        warnings.warn(line, DeprecationWarning, stacklevel=2)
    return _Completed(dialect)
