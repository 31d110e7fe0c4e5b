"""Attempts: the part of a run that a scorer may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rlm_loop.outcome import Outcome
from rlm_loop.tasks.written import Written, written_in

#: What of a run is scored: the answer that it gave, or what it left behind (a patch, a definition in the REPL).
Submission = Literal["answer", "artifact"]


@dataclass(frozen=True)
class Attempt:
    """The part of a run that a scorer may see: the answer (in time or not), the task's artifact, and the last reply.

    `isolation` is what kept its cells apart from this machine; a scorer that runs code of it keeps it as far apart.
    `written` is the code that ran and that the answer holds, oldest first; `submission` is the contract to score by,
    where a task knows several; `None` is the first of `Task.submissions`.
    """

    answer: Any = None
    artifact: Any = None
    answered: bool = False
    last_reply: str = ""
    isolation: str = ""
    written: tuple[Written, ...] = ()
    submission: Submission | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> Attempt:
        """Return a run's outcome as an attempt."""
        return cls(
            outcome.answer,
            outcome.artifact,
            outcome.answered,
            outcome.last_reply,
            outcome.isolation,
            written_in(outcome.turns),
        )
