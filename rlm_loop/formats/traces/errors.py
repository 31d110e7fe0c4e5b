"""What is wrong with a file of another tool."""

from __future__ import annotations


class FormatError(ValueError):
    """A file cannot be read or written in a format; the message is one line that says what is wrong and where."""
