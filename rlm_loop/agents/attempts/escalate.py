"""A fast model first, and a strong one when it fails (as SOFAI does, arXiv 2110.01834)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from rlm_loop.agents.attempts.around import Around, shaped
from rlm_loop.agents.attempts.attempts import Attempting, Attempts, Tried, best_of_tried
from rlm_loop.agents.attempts.retry import REPAIR, RepairTemplate
from rlm_loop.dialects.base import Dialect
from rlm_loop.dialects.injectors import Injected
from rlm_loop.models.names import model_name
from rlm_loop.traces.trace import plain

HandOver = Literal["fresh", "continue", "best"]


@dataclass(frozen=True)
class Escalate(Around):
    """One attempt of `fast`; where the check does not pass, one of `strong`.

    `hand_over`: `fresh` tells the strong model nothing of the first attempt; `continue` lets it go on in the same
    conversation and files, with what the check said; `best` gives it a new conversation, the files with the best patch
    so far, and what the check said.  Several fast attempts are `escalate(retry(fast, 2), strong)`.  `check`, `oracle`
    and `budget` are as in `retry`.
    """

    fast: Attempting
    strong: Attempting
    hand_over: HandOver = "fresh"
    _: KW_ONLY
    template: RepairTemplate = REPAIR

    def __post_init__(self) -> None:
        if self.hand_over not in ("fresh", "continue", "best"):
            raise ValueError(f'hand_over is "fresh", "continue" or "best", not {self.hand_over!r}')
        self._judge()
        if self.hand_over == "continue":
            fast, strong = (_innermost(agent.dialect()) for agent in (self.fast, self.strong))
            if type(fast) is not type(strong):
                raise ValueError(
                    f'hand_over="continue" needs two agents that speak alike, not {fast.name} and {strong.name}'
                )

    def _roles(self) -> Mapping[str, Attempting]:
        return {"fast": shaped(self.fast, seed=self.seed), "strong": shaped(self.strong, seed=self.seed)}

    def _how(self) -> Mapping[str, Any]:
        models = {f"{role}_model": model_name(getattr(agent, "model", "")) for role, agent in self._roles().items()}
        return {"hand_over": self.hand_over, "template": plain(self.template), **models}

    def _go(self, attempts: Attempts) -> tuple[Tried | None, str]:
        fast, strong = self.agents()
        first = attempts.make(fast)
        if first.passed:
            return first, ""
        if (spent := attempts.spent()) is not None:
            return first, spent
        earlier = None
        if self.hand_over != "fresh":
            feedback = "" if first.check is None else first.check.feedback
            begin = "continue" if self.hand_over == "continue" else "patched"
            earlier = self.template.attempt_context(begin, feedback, first.patch, first.conversation)
        attempts.make(strong, earlier)
        return best_of_tried(attempts.tried), ""


escalate = Escalate


def _innermost(dialect: Dialect) -> Dialect:
    while isinstance(dialect, Injected):
        dialect = dialect.dialect
    return dialect
