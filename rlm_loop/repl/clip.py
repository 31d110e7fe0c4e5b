"""Shorten text by leaving out its middle, and say how much is missing."""

from __future__ import annotations

import re

HARD_CAP = 65_536
"""The most characters of one observation that a model sees, whatever else is set."""

RECORD_CAP = 262_144
"""The most characters of one observation that are kept for the record (the worker has the same number)."""


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
