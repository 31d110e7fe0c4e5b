"""From the bytes that a cell printed to the text that a model reads."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlm_loop.repl.clip import clip_parts

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

    def clip(self, limit: int) -> tuple[str, bool]:
        return clip_parts(self.head, self.dropped, self.tail, limit)


NOTHING = Piece()
"""What a cell printed that printed nothing."""


def printed(head: bytes, dropped: int, tail: bytes) -> Piece:
    """Decode what came through a cell's pipe: bad bytes and control characters replaced, ANSI sequences removed."""
    if not dropped:
        return Piece(readable(head + tail))
    return Piece(readable(head), dropped, readable(tail))


def readable(data: bytes) -> str:
    """Text as a terminal would show it."""
    return shown(data.decode("utf-8", "replace"))


def shown(text: str) -> str:
    """Text without escape sequences and control characters, and only the last state of a line that was overwritten."""
    text = _ANSI.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return _CONTROL.sub("\ufffd", text)


def _last_state(line: str) -> str:
    """What a carriage return did not overwrite: of a progress bar, its end."""
    end = "\r" if line.endswith("\r") else ""
    return line.rstrip("\r").rpartition("\r")[2] + end


def same_text(before: str, after: str) -> bool:
    """Whether two outputs agree, apart from the addresses of objects, which differ in every process."""
    return before == after or _ADDRESS.sub("0x", before) == _ADDRESS.sub("0x", after)


_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
