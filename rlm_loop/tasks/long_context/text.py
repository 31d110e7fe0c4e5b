"""Real text that comes with the package: documentation strings of Python 3.11.7.

The text is a file, and not that of the Python at hand, since what a library says differs between versions and the
tasks must not.  Which text it was is said by its hash.  It has no line with a character beyond Latin-1 (so that a
character of a long text takes one byte of memory), and none that could be taken for one that a task puts in.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence

from rlm_loop.tasks.packaged import packaged

_DATA = "python_docstrings.json.xz"


def real_text() -> str:
    """Return the documentation strings; they end at the end of a line."""
    return packaged(_DATA)["text"]


@functools.cache
def label() -> str:
    """Return the name of the text, its size and the start of its hash, in one line."""
    sha256 = hashlib.sha256(real_text().encode("utf-8")).hexdigest()
    return f"{packaged(_DATA)['name']}, {len(real_text()):,} characters, sha256 {sha256[:16]}"


def window(text: str, start: int, length: int) -> str:
    """Return `length` characters from the line in which character `start` is; past the end it begins again."""
    begin = text.rfind("\n", 0, start) + 1
    found = text[begin : begin + length]
    while len(found) < length:
        found += text[: length - len(found)]
    return found


def pieces() -> Mapping[str, Sequence[str]]:
    """Return by topic the first paragraphs of documentation strings, each on one line, none in two topics."""
    return packaged(_DATA)["pieces"]
