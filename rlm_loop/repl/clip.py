"""Shorten text by leaving out its middle, and say how much is missing."""

from __future__ import annotations


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


def _mark(count: int) -> str:
    return f"\n... [{count} characters left out] ...\n"
