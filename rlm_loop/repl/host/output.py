"""Output of a cell, as it comes through the cell's pipe: head and tail, and a count of what lies between."""

from __future__ import annotations

import os

from rlm_loop.repl.text import Piece, printed
from rlm_loop.repl.worker import RECORD

_READ = 1 << 16
_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that do not begin a character


class Output:
    """The output of one cell, from the pipe `fd`: head and tail, half of `cap` characters each, at up to four bytes.

    Once it is not `live` any more, what still comes is dropped.
    """

    def __init__(self, fd: int, cap: int) -> None:
        self.fd, self._keep = fd, 2 * max(cap, RECORD)
        self.head, self._tail, self._dropped = bytearray(), bytearray(), 0
        self.live = True
        self._raw: list[bytes] = []

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
                room = self._keep - len(self.head)
                self.head += data[:room]
                self._tail += data[room:] if room > 0 else data
                if len(self._tail) > 4 * self._keep + _READ:
                    self._trim()
        return False

    def piece(self) -> Piece:
        """Return what was printed."""
        self._trim()
        if cut := _unfinished(self.head) if self._dropped else 0:
            del self.head[-cut:]
            self._dropped += 1
        return printed(self.head, self._dropped, self._tail)

    def _trim(self) -> None:
        extra = len(self._tail) - self._keep
        if extra > 0:
            while extra < len(self._tail) and self._tail[extra] in _CONTINUATION:
                extra += 1  # cut between characters, so that the count is exact
            self._dropped += len(bytes(self._tail[:extra]).translate(None, _CONTINUATION))
            del self._tail[:extra]


def _unfinished(data: bytearray) -> int:
    """Count the bytes at the end that begin a character of UTF-8 without finishing it."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            return back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte < 0x80:
            return 0
    return 0
