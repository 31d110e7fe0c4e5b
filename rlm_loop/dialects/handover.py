"""What an attempt at a task is given of the ones before it: their conversation, and how they failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlm_loop.actions import Action
from rlm_loop.dialects.base import NO_TOOLS, Dialect, Hands, Problem
from rlm_loop.dialects.injectors import appended
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.outcome import Turn
from rlm_loop.repl.clip import HARD_CAP
from rlm_loop.tools import Tool


@dataclass(frozen=True)
class Handover:
    """`turns` of an earlier attempt are shown as if they were this one's; `text` follows, charged to
    `scaffold:<name>`; `patch` is applied to the workspace before the attempt begins."""

    turns: tuple[Turn, ...] = ()
    text: str = ""
    patch: str = ""
    name: str = "repair"

    def around(self, dialect: Dialect) -> Dialect:
        """The dialect whose brief holds what is handed over."""
        return HandedOver(dialect, self) if self.turns or self.text else dialect


NOTHING = Handover()


@dataclass(frozen=True)
class HandedOver:
    """A dialect with a longer brief; it reads and shows turns exactly as the dialect does."""

    dialect: Dialect
    handover: Handover

    @property
    def name(self) -> str:
        return self.dialect.name

    @property
    def hands(self) -> Hands:
        return self.dialect.hands

    @property
    def observation_cap(self) -> int:
        return getattr(self.dialect, "observation_cap", HARD_CAP)

    def brief(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        prompt, last = self.dialect.brief(problem, tools), 0
        for turn in self.handover.turns:
            prompt, last = prompt + self.dialect.replay(turn), turn.index
        said = [(self.handover.name, self.handover.text)]
        return replace(prompt, messages=appended(prompt.messages, said, last))

    def parse(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        return self.dialect.parse(reply, tools)

    def replay(self, turn: Turn) -> Sequence[Message]:
        return self.dialect.replay(turn)
