"""Try again, with what failed as feedback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlm_loop.accounting.budget import Budget
from rlm_loop.agents.attempts.around import Around, shaped
from rlm_loop.agents.attempts.attempts import Attempting, Attempts, Tried, best_of_tried
from rlm_loop.agents.attempts.checks import Check, Judge
from rlm_loop.agents.attempts.feedback import REPAIR, Begin, RepairTemplate
from rlm_loop.traces.trace import plain


@dataclass(frozen=True)
class Retry(Around):
    """See `retry`."""

    agent: Attempting
    times: int = 1
    begin: Begin = "patched"
    check: Check | None = None
    oracle: bool = False
    template: RepairTemplate = REPAIR
    budget: Budget | None = None
    model: Any = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.times < 0 or self.begin not in ("fresh", "patched", "continue"):
            raise ValueError('times is 0 or more, and begin "fresh", "patched" or "continue"')
        if self.model is None:
            object.__setattr__(self, "model", getattr(self.agent, "model", None))
        self._judge()

    def _roles(self) -> Mapping[str, Attempting]:
        return {"inner": shaped(self.agent, self.model, self.seed)}

    def _how(self) -> Mapping[str, Any]:
        how = {"times": self.times, "begin": self.begin, "template": plain(self.template)}
        return {**how, **Judge(self.check, self.oracle).settings()}

    def _judge(self) -> Judge:
        return Judge(self.check, self.oracle)

    def _go(self, attempts: Attempts) -> tuple[Tried | None, str]:
        agent = self.agents()[0]
        last = attempts.make(agent)
        for _ in range(self.times):
            if last.passed:
                break
            if (spent := attempts.spent()) is not None:
                return best_of_tried(attempts.tried), spent
            feedback = "" if last.check is None else last.check.feedback
            last = attempts.make(
                agent, self.template.attempt_context(self.begin, feedback, last.patch, last.conversation)
            )
        return best_of_tried(attempts.tried), ""


def retry(
    agent: Attempting,
    times: int = 1,
    *,
    begin: Begin = "patched",
    check: Check | None = None,
    oracle: bool = False,
    template: RepairTemplate = REPAIR,
    budget: Budget | None = None,
) -> Retry:
    """Up to `times` further attempts, each told what the check said of the one before, until one passes.

    `begin` is how they begin: `fresh` in a clean checkout, `patched` in one with the old patch applied (both in a new
    conversation), or `continue` with the old conversation and the old patch.  `check` judges a checkout; by default it
    is the task's own visible one.  `oracle=True` has the task's hidden score judge instead, which results record.
    `budget` limits all attempts together, besides the agent's own budget for each.

    The patch is that of the attempt that passed; where none did, of the one with the most tests passed, else the last.
    """
    return Retry(agent, times, begin, check, oracle, template, budget)
