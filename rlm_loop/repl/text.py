"""From the bytes that a cell printed to the text that a model reads: decoded, cleaned, its middle left out."""

from __future__ import annotations

import re

from rlm_loop.repl.worker import RECORD, left_out

HARD_CAP = 65_536
"""The most characters of one observation that a model sees, whatever else is set."""

RECORD_CAP = RECORD
"""The most characters of one observation that are kept for the record."""

# Escape sequences of terminals: CSI (colours, cursor), OSC (titles, links), and the short ones.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_]|[ -/]+[0-~])")
_OVERWRITTEN = re.compile(r"^.*\r(?=[^\r\n])", re.MULTILINE)  # such as a progress bar before its last state
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Ends:
    """Text of any length, of which `most` characters of the beginning and of the end are kept, with a mark between."""

    def __init__(self, most: int) -> None:
        self._most, self._head, self._dropped = most, "", 0
        self._parts: list[str] = []  # behind the head
        self._held = 0

    def add(self, text: str) -> None:
        """Add text at the end."""
        self._parts.append(text)
        self._held += len(text)
        if self._held > 4 * self._most:
            self._shorten()

    def text(self) -> str:
        """Return the text until now, as a terminal would show it."""
        self._shorten()
        return shown(self._head + (left_out(self._dropped) if self._dropped else "") + self._parts[0])

    def _shorten(self) -> None:
        text = "".join(self._parts)
        room = self._most - len(self._head)
        self._head, text = self._head + text[:room], text[room:]
        tail = text[-self._most :]
        self._dropped += len(text) - len(tail)
        self._parts, self._held = [tail], len(tail)


def dedented(code: str) -> str:
    """Code without the indentation that all of its lines share."""
    if not code[:1].isspace() and code[:1] != "#":
        return code
    lines = code.split("\n")
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip()]
    low, high = min(indents, default=""), max(indents, default="")  # what these two share, all of them share
    margin = next((low[:at] for at, char in enumerate(low) if high[at : at + 1] != char), low)
    return "\n".join([line.removeprefix(margin) for line in lines])


def shown(text: str) -> str:
    """Text without escape sequences and control characters, and only the last state of a line that was overwritten."""
    return _CONTROL.sub("\ufffd", _OVERWRITTEN.sub("", _ANSI.sub("", text)))


def settled(text: str) -> str:
    """Return an output without what differs when a cell runs again: addresses of objects, and its own number."""
    return _PASSING.sub("", text)


_PASSING = re.compile(r"\b0x[0-9a-f]{6,}\b|(?<=<cell )\d+(?=>)")


def clip(text: str, limit: int) -> tuple[str, bool]:
    """Text of at most `limit` characters: head and tail, with a mark that counts what is left out between them.

    Returns the text and whether anything was left out.  Where the limit is too small for a mark, the head alone.
    """
    return (text, False) if len(text) <= limit else (_clipped(text, text, len(text), limit), True)


def clip_again(text: str, limit: int) -> tuple[str, bool]:
    """`clip` for a text that may have been clipped before, so that the new mark counts all that is missing."""
    marks = [] if len(text) <= limit else [*_MARKS.finditer(text)]
    if not marks:
        return clip(text, limit)
    mark = min(marks, key=lambda m: abs(m.start() + m.end() - len(text)))
    head, gone, tail = text[: mark.start()], int(mark[1]), text[mark.end() :]
    return _clipped(head, tail, len(head) + gone + len(tail), limit), True


def _clipped(head: str, tail: str, total: int, limit: int) -> str:
    """At most `limit` characters of a text of `total`."""
    room = limit - len(left_out(total))  # the mark's number is smaller than the total, so it never takes more
    if room < 2:
        return head[: max(limit, 0)]
    first, last = head[: (room + 1) // 2], tail[-(room // 2) :]
    return first + left_out(total - len(first) - len(last)) + last


_MARKS = re.compile(r"\n\.\.\. \[([0-9]{1,15}) characters left out\] \.\.\.\n")
