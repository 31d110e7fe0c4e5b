"""The errors of a study as a whole; what goes wrong in one episode is a row instead."""

from __future__ import annotations

from rlm_loop.errors import ShownBriefly


class StudyError(ShownBriefly, Exception):
    """A study cannot be run or read; the message is one line that says what to do."""


class StudyWarning(UserWarning):
    """Something that a reader of the results has to know; the message is one line that says what to do."""


class StudyInterrupted(KeyboardInterrupt):
    """The user stopped a study.  Everything finished is on disk; the message says how to go on."""
