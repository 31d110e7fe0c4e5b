"""What goes wrong with replaying that is not a difference."""

from __future__ import annotations


class ReplayError(ValueError):
    """A run cannot be replayed or forked; the message is one line that says what to give or do."""


class RecordEnds(BaseException):
    """The record has nothing more to drive the loop with.  No `Exception`, so that the loop does not take it for one
    of its own."""
