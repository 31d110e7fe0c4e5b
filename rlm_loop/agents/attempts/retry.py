"""Try again, with what failed as feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from rlm_loop.actions import RunCode
from rlm_loop.agents.attempts.around import Around, shaped
from rlm_loop.agents.attempts.attempts import Attempting, Attempts, Tried, best_of_tried
from rlm_loop.agents.session import Exchange
from rlm_loop.outcome import Turn
from rlm_loop.repl.text import clip
from rlm_loop.traces.trace import plain

#: How a new attempt begins: nothing but the text of what failed; the old patch applied too; or the whole conversation.
Begin = Literal["fresh", "patched", "continue"]

_STATE: dict[str, str] = {
    "fresh": "The files are as they were before it.",
    "patched": "The files hold that fix.",
    "continue": "The files are as you left them.",
}
_NEW_REPL = " The REPL was started anew: its variables are gone."


@dataclass(frozen=True)
class RepairTemplate:
    """`text` with `{feedback}` (what failed, `limit` characters of it at most) and `{state}` (of the files)."""

    text: str = "A fix was tried, and the check still fails:\n{feedback}\n{state} Find out why and make it right."
    limit: int = 2000

    def __post_init__(self) -> None:
        if self.limit < 1 or "{feedback}" not in self.text:
            raise ValueError("a repair template needs {feedback} in its text and a limit of 1 character or more")

    def attempt_context(self, begin: Begin, feedback: str, patch: str, conversation: Sequence[Turn]) -> Exchange:
        """What the next attempt is given."""
        goes_on = begin == "continue"
        state = _STATE[begin if patch.strip() or goes_on else "fresh"]
        if goes_on and any(isinstance(action, RunCode) for turn in conversation for action in turn.actions):
            state += _NEW_REPL
        failed = clip(feedback.strip() or "(it does not say why)", self.limit)[0]
        text = self.text.replace("{state}", state).replace("{feedback}", failed)
        return Exchange(
            turns=tuple(conversation) if goes_on else (), text=text, patch="" if begin == "fresh" else patch
        )


REPAIR = RepairTemplate()


@dataclass(frozen=True)
class Retry(Around):
    """Up to `times` further attempts, each told what the check said of the one before, until one passes.

    `begin` is how they begin: `fresh` in a clean checkout, `patched` in one with the old patch applied (both in a new
    conversation), or `continue` with the old conversation and the old patch.  `check` judges a checkout; by default it
    is the task's own visible one.  `oracle=True` has the task's hidden score judge instead, which results record.
    `budget` limits all attempts together, besides the agent's own budget for each.

    The patch is that of the attempt that passed; where none did, of the one with the most tests passed, else the last.
    """

    agent: Attempting
    times: int = 1
    _: KW_ONLY
    model: Any = None
    begin: Begin = "patched"
    template: RepairTemplate = REPAIR

    def __post_init__(self) -> None:
        if self.times < 0 or self.begin not in ("fresh", "patched", "continue"):
            raise ValueError('times is 0 or more, and begin "fresh", "patched" or "continue"')
        if self.model is None:
            object.__setattr__(self, "model", getattr(self.agent, "model", None))
        self._judge()

    def _roles(self) -> Mapping[str, Attempting]:
        return {"inner": shaped(self.agent, self.model, self.seed)}

    def _how(self) -> Mapping[str, Any]:
        return {"times": self.times, "begin": self.begin, "template": plain(self.template)}

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


retry = Retry
