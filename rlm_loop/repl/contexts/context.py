"""The line that tells a model of the `context` variable, and a context as text for a strategy without a REPL."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import accumulate
from typing import Any, cast

from rlm_loop.repl.contexts.frame import frame_line, frame_text, is_frame, short, whole_items
from rlm_loop.repl.contexts.on_disk import ContextFile
from rlm_loop.repl.text import clip

ROOM = 174
"""Characters of the line at most: a small model's 60 tokens."""
FRAME_ROOM = 354
"""The same for a data frame, with the values of its columns in it (context_dose in `experiments/README.md`)."""
TOLD = "The REPL already has the variable context,"
#: Small models like to retype a text from its preview; a line of code that reads it keeps some of them from that.
READ = "Read it with code, such as context.splitlines()"
_COUNTED = 16 << 20  # bytes of a file of which the characters and lines are counted before the run


def describe_workspace(tools: Iterable[str]) -> str:
    """Return the line for a task with a workspace, the same under every dialect."""
    steps = {"search_code": "find the place with search_code", "read_file": "read it with read_file"}
    steps["apply_edit"] = "then change it with apply_edit"
    ways = ", ".join(text for name, text in steps.items() if name in tools)
    return f"The files are in a git checkout{': ' if ways else ''}{ways}. Only what is changed in them counts."


def describe_context(context: Any) -> str:
    """Return one line with the type, the size and a preview of a context.

    A text is told by its first lines, a dict by keys, a data frame by columns (see `frame_line`), a list by
    its first item: each whole, as many as there is room for.  A first one that does not fit is cut, but the first line
    of a text may take twice the room.  Never raises.
    """
    room = FRAME_ROOM if is_frame(context) else ROOM
    try:
        return _line(context, room)
    except Exception:  # a value of the caller's own class can do anything
        return f"{TOLD} a {_kind(context)}"[:room]


def _line(context: Any, room: int) -> str:
    kind = _kind(context)
    if isinstance(context, ContextFile):
        return _file_line(context, room)
    if isinstance(context, str):
        return _text_line(context, room)
    if isinstance(context, bytes | bytearray):
        return _beginning(f"{TOLD} {kind} of length {len(context):,}", bytes(context[: 2 * room]), room)
    if is_frame(context):
        return frame_line(context, f"{TOLD} a {kind} of shape {tuple(context.shape)}", room)
    size, what, items = f"a {kind}", "it is ", cast("Iterable[Any]", (context,))
    if isinstance(shape := getattr(context, "shape", None), tuple):
        size = f"a {kind} of shape {str(cast('tuple[Any, ...]', shape))[:48]}"
        what, items = "columns: ", getattr(context, "columns", ())
    elif isinstance(context, Mapping):
        what, items = "keys: ", cast("Mapping[Any, Any]", context)
        size = f"a {kind} of {len(items):,} entries"
    elif isinstance(context, Sized):
        size = f"a {kind} of {len(context):,} items"
        what, items = "the first is ", cast("Sequence[Any]", context[:1] if isinstance(context, Sequence) else ())
    return whole_items(f"{TOLD} {size}", f"; {what}", map(short.repr, items), room)


def _kind(context: Any) -> str:
    return type(context).__name__[:24]


def _file_line(file: ContextFile, room: int) -> str:
    if file.kind == "bytes":
        return _beginning(f"{TOLD} bytes of length {file.size:,}", next(file.read(), b"")[: 2 * room], room)
    if file.size <= _COUNTED:
        return _text_line(_text(b"".join(file.read())), room)
    start = _text(next(file.read(), b"")[: 8 * room])[: 2 * room]
    return _beginning(f"{TOLD} a str of {file.size:,} bytes in UTF-8", start, room)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _text_line(text: str, room: int) -> str:
    size = f"{TOLD} a str of {len(text):,} characters"
    lines = text.count("\n") + (not text.endswith("\n"))
    read = f"{size} in {lines:,} lines. {READ}"
    start = text[: 2 * room]
    return _beginning(read if lines > 1 and len(read) <= room else size, start, room, whole=len(start) == len(text))


def _beginning(size: str, start: str | bytes, room: int, *, whole: bool = False) -> str:
    """Return `size` and as many whole lines of the beginning as there is room for.

    The first of several lines is told whole where it takes no more than twice the room: half a header misleads.
    """
    if not start:
        return f"{size}; it is empty"
    head = f"{size}; it starts with "
    left = room - len(head)
    end = 0
    if isinstance(start, str):
        lines = start.splitlines(keepends=True)
        ends = [*accumulate(map(len, lines if whole else lines[:-1]))]
        end = _longest(start, ends, left) or (_longest(start, ends[:1], left + room) if len(lines) > 1 else 0)
    end = end or _longest(start, range(1, len(start) + 1), left)
    return head + repr(start[:end]) if end else size


def _longest(text: str | bytes, ends: Sequence[int], room: int) -> int:
    """Return the greatest of the ends up to which a text's repr fits into the room, 0 for none."""
    at = bisect_right(ends, room, key=lambda end: len(repr(text[:end])))
    return ends[at - 1] if at else 0


def inline_context(context: Any, *, limit: int) -> str:
    """Return the context as text, clipped head and tail to `limit` characters."""
    if context is None:
        return ""
    if isinstance(context, ContextFile):
        data = b"".join(context.read())
        context = repr(data) if context.kind == "bytes" else _text(data)
    if is_frame(context):
        return frame_text(context, limit)
    if not isinstance(context, str):
        try:
            context = json.dumps(context, ensure_ascii=False)
        except (TypeError, ValueError):
            context = str(context)
    return clip(context, limit)[0]
