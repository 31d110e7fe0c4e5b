"""Output of a cell, as it comes through the cell's pipe: head and tail, and a count of what lies between."""

from __future__ import annotations

import codecs
import os

from rlm_loop.repl.text import Piece, shown
from rlm_loop.repl.worker import RECORD

_READ = 1 << 16
_decoder = codecs.getincrementaldecoder("utf-8")


class Output:
    """The output of one cell, from the pipe `fd`: `cap` characters of its head, and as many of its tail.

    Once it is not `live` any more, what still comes is dropped.
    """

    def __init__(self, fd: int, cap: int) -> None:
        self.fd, self._keep = fd, max(cap, RECORD)
        self.head, self._tail, self._dropped = "", "", 0
        self.live = True
        self._raw: list[bytes] = []
        self._decode = _decoder("replace").decode

    def read(self) -> bool:
        """Take what is in the pipe, without waiting; return whether it has ended."""
        for _ in range(16):  # a pipe holds less than this; a writer that never stops must not keep us here
            try:
                if not self._raw:  # read and kept in one call, so that Ctrl-C in between loses nothing
                    self._raw.extend(map(os.read, (self.fd,), (_READ,)))
            except BlockingIOError:
                return False
            data = self._raw.pop()
            if not data:
                return True
            if self.live:
                self._add(self._decode(data))
        return False

    def piece(self) -> Piece:
        """Return what was printed, as a terminal would show it."""
        self._add(self._decode(b"", True))
        self._trim()
        if not self._dropped:
            return Piece(shown(self.head + self._tail))
        return Piece(shown(self.head), self._dropped, shown(self._tail))

    def _add(self, text: str) -> None:
        room = self._keep - len(self.head)
        if room > 0:
            self.head += text[:room]
            text = text[room:]
        self._tail += text
        if len(self._tail) > 4 * self._keep:
            self._trim()

    def _trim(self) -> None:
        extra = len(self._tail) - self._keep
        if extra > 0:
            self._dropped += extra
            self._tail = self._tail[extra:]
