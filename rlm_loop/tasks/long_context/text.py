"""Real text that comes with the package: documentation strings of Python 3.11.7.

The text is a file, and not that of the Python at hand, since what a library says differs between versions and the
tasks must not.  Which text it was is said by its hash.  It has no line with a character beyond Latin-1 (so that a
character of a long text takes one byte of memory), and none that could be taken for one that a task puts in.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlm_loop.tasks.packaged import packaged

_DATA = "python_docstrings.json.xz"


@dataclass(frozen=True)
class RealText:
    """A text to take windows from.  `name` says what it is; it ends at the end of a line."""

    name: str
    text: str = field(repr=False)

    @functools.cached_property
    def label(self) -> str:
        """Return its name, its size and the start of its hash, in one line."""
        sha256 = hashlib.sha256(self.text.encode("utf-8")).hexdigest()
        return f"{self.name}, {len(self.text):,} characters, sha256 {sha256[:16]}"

    def window(self, start: int, length: int) -> str:
        """Return `length` characters from the line in which character `start` is; past the end it begins again."""
        begin = self.text.rfind("\n", 0, start) + 1
        found = self.text[begin : begin + length]
        while len(found) < length:
            found += self.text[: length - len(found)]
        return found


@functools.cache
def real_text() -> RealText:
    """Return the documentation strings."""
    return RealText(packaged(_DATA)["name"], packaged(_DATA)["text"])


def pieces() -> Mapping[str, Sequence[str]]:
    """Return by topic the first paragraphs of documentation strings, each on one line, none in two topics."""
    return packaged(_DATA)["pieces"]
