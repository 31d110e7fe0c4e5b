"""From the bytes that a cell printed to the text that a model reads: decoded, cleaned, its middle left out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlm_loop.repl.worker import RECORD

HARD_CAP = 65_536
"""The most characters of one observation that a model sees, whatever else is set."""

RECORD_CAP = RECORD
"""The most characters of one observation that are kept for the record."""

# Escape sequences of terminals: CSI (colours, cursor), OSC (titles, links), and the short ones.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_]|[ -/]+[0-~])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class Piece:
    """A text of which the middle may be missing: its head, the number of characters dropped, its tail."""

    head: str = ""
    dropped: int = 0
    tail: str = ""

    @property
    def characters(self) -> int:
        return len(self.head) + self.dropped + len(self.tail)

    def then(self, other: Piece) -> Piece:
        """Both, one after the other; what lies between the two gaps counts as dropped with them."""
        if not self.dropped:
            return Piece(self.head + self.tail + other.head, other.dropped, other.tail)
        if not other.dropped:
            return Piece(self.head, self.dropped, self.tail + other.head + other.tail)
        between = len(self.tail) + len(other.head)
        return Piece(self.head, self.dropped + between + other.dropped, other.tail)

    def shown(self) -> Piece:
        """Return it as a terminal would show it."""
        if self.dropped:
            return Piece(shown(self.head), self.dropped, shown(self.tail))
        return Piece(shown(self.head + self.tail))


class Ends:
    """Text of any length, of which `most` characters of the beginning and of the end are kept."""

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

    def piece(self) -> Piece:
        """Return the text until now, as a terminal would show it."""
        self._shorten()
        return Piece(self._head, self._dropped, *self._parts).shown()

    def _shorten(self) -> None:
        text = "".join(self._parts)
        room = self._most - len(self._head)
        self._head, text = self._head + text[:room], text[room:]
        tail = text[-self._most :]
        self._dropped += len(text) - len(tail)
        self._parts, self._held = [tail], len(tail)


def dedented(code: str) -> str:
    """Code without the indentation that all of its lines share, where its first line that is no comment has some."""
    if not code[:1].isspace() and code[:1] != "#":
        return code
    lines = code.split("\n")
    first = next((line for line in lines if (text := line.strip()) and not text.startswith("#")), "")
    if first[:1] not in (" ", "\t"):
        return code
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip()]
    low, high = min(indents), max(indents)  # what these two share at their start, all of them share
    margin = next((low[:at] for at, char in enumerate(low) if high[at : at + 1] != char), low)
    return "\n".join([line.removeprefix(margin) for line in lines])


def shown(text: str) -> str:
    """Text without escape sequences and control characters, and only the last state of a line that was overwritten."""
    text = _ANSI.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return _CONTROL.sub("\ufffd", text)


def _last_state(line: str) -> str:
    """The text of a line after its last carriage return, such as the end of a progress bar."""
    end = "\r" if line.endswith("\r") else ""
    return line.rstrip("\r").rpartition("\r")[2] + end


def same_text(before: str, after: str) -> bool:
    """Say whether two outputs agree, apart from addresses of objects, which differ in every process."""
    return before == after or _ADDRESS.sub("0x", before) == _ADDRESS.sub("0x", after)


_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


def clip(text: str, limit: int) -> tuple[str, bool]:
    """Text of at most `limit` characters: head and tail, with a mark that counts what is left out between them.

    Returns the text and whether anything was left out.  Where the limit is too small for a mark, the head alone.
    """
    return clip_parts(text, 0, "", limit)


def clip_parts(head: str, dropped: int, tail: str, limit: int) -> tuple[str, bool]:
    """`clip` for a text of which `dropped` characters between `head` and `tail` are gone already."""
    if dropped == 0:
        head, tail = head + tail, ""
        if len(head) <= limit:
            return head, False
        tail = head
    total = dropped + (len(head) if tail is head else len(head) + len(tail))
    room = limit - len(_mark(total))  # the mark's number is smaller than the total, so it never takes more
    if room < 2:
        return head[: max(limit, 0)], True
    first, last = head[: (room + 1) // 2], tail[-(room // 2) :]
    return first + _mark(total - len(first) - len(last)) + last, True


def clip_again(text: str, limit: int, total: int | None = None) -> tuple[str, bool]:
    """`clip` for a text that may have been clipped before, so that the new mark counts all that is missing.

    `total` is how many characters it had at the very first: a mark that does not fit to it is the text's own.
    """
    if len(text) <= limit:
        return text, False
    marks = sorted(_MARKS.finditer(text), key=lambda m: abs(m.start() + m.end() - len(text)))
    for mark in marks:
        count = int(mark[1])
        if total is None or len(text) - len(mark[0]) + count == total:
            return clip_parts(text[: mark.start()], count, text[mark.end() :], limit)
    return clip(text, limit)


_MARKS = re.compile(r"\n\.\.\. \[([0-9]{1,15}) characters left out\] \.\.\.\n")


def _mark(count: int) -> str:
    return f"\n... [{count} characters left out] ...\n"
