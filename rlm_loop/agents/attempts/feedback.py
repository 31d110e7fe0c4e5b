"""What a new attempt is told of the one before: a repair template of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rlm_loop.actions import RunCode
from rlm_loop.dialects.attempt_context import AttemptContext
from rlm_loop.outcome import Turn
from rlm_loop.repl.clip import clip

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
    """`text` with `{feedback}` (what failed, `limit` characters of it at most) and `{state}` (of the files).

    `show_patch` adds the patch that failed, of at most `limit` characters too.
    """

    text: str = "A fix was tried, and the check still fails:\n{feedback}\n{state} Find out why and make it right."
    limit: int = 2000
    show_patch: bool = False

    def __post_init__(self) -> None:
        if self.limit < 1 or "{feedback}" not in self.text:
            raise ValueError("a repair template needs {feedback} in its text and a limit of 1 character or more")

    def attempt_context(self, begin: Begin, feedback: str, patch: str, conversation: Sequence[Turn]) -> AttemptContext:
        """What the next attempt is given."""
        goes_on = begin == "continue"
        state = _STATE[begin if patch.strip() or goes_on else "fresh"]
        if goes_on and any(isinstance(action, RunCode) for turn in conversation for action in turn.actions):
            state += _NEW_REPL
        failed = clip(feedback.strip() or "(it does not say why)", self.limit)[0]
        text = self.text.replace("{state}", state).replace("{feedback}", failed)
        if self.show_patch and patch.strip():
            text += f"\nThe fix that was tried:\n{clip(patch.strip(), self.limit)[0]}"
        return AttemptContext(
            turns=tuple(conversation) if goes_on else (),
            text=text,
            patch="" if begin == "fresh" else patch,
        )


REPAIR = RepairTemplate()
