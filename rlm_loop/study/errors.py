"""The errors of a study as a whole; what goes wrong in one episode is a row instead."""

from __future__ import annotations

from rlm_loop.errors import ShownBriefly


class StudyError(ShownBriefly, Exception):
    """A study cannot be run or read; the message is one line that says what to do."""


class StudyWarning(UserWarning):
    """Something that a reader of the results has to know; the message is one line that says what to do."""


class StudyInterrupted(KeyboardInterrupt):
    """The user stopped a study.  Everything finished is on disk; the message says how to go on.

    `finished` and `planned` count episodes; `exit_code` is the shell's convention for Ctrl-C.
    """

    exit_code = 130

    def __init__(self, message: str, finished: int, planned: int) -> None:
        super().__init__(message)
        self.message = message
        self.finished = finished
        self.planned = planned
