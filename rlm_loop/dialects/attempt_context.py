"""What an attempt at a task is given of the ones before it: their conversation, and how they failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rlm_loop.dialects.base import Dialect, Problem
from rlm_loop.dialects.injectors import appended
from rlm_loop.dialects.wrapped import Wrapped
from rlm_loop.messages import Prompt
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool


@dataclass(frozen=True)
class AttemptContext:
    """`turns` of an earlier attempt are shown as if they were this one's; `text` follows, charged to
    `scaffold:<name>`; `patch` is applied to the workspace before the attempt begins."""

    turns: tuple[Turn, ...] = ()
    text: str = ""
    patch: str = ""
    name: str = "repair"

    def around(self, dialect: Dialect) -> Dialect:
        """The dialect, with this in what it says of the task."""
        return ContinuedDialect(dialect, self) if self.turns or self.text else dialect


#: Nothing came before the first attempt.
FIRST_ATTEMPT = AttemptContext()


@dataclass(frozen=True)
class ContinuedDialect(Wrapped):
    """A dialect that adds the earlier conversation, and how it failed, to the task; all else is the dialect's own."""

    earlier: AttemptContext

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        prompt, last = self.dialect.format_task(problem, tools), 0
        for turn in self.earlier.turns:
            prompt, last = prompt + self.dialect.format_turn(turn), turn.index
        said = [(self.earlier.name, self.earlier.text)]
        return replace(prompt, messages=appended(prompt.messages, said, last))
