"""What a model is told of the `context` variable: type, size and a short preview, never the whole.

One line of about so many tokens at most (an agent's `context_tokens`; where it says nothing 120 for a data frame, else
60), the same under every dialect.  A token is taken for three bytes.
"""

from __future__ import annotations

import json
import reprlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from itertools import accumulate
from typing import Any, cast

from rlm_loop.repl.contexts.frame import frame_columns, frame_text, is_frame
from rlm_loop.repl.contexts.on_disk import ContextFile, ContextFolder
from rlm_loop.repl.contexts.preview import BYTES, beginning, whole_items, width
from rlm_loop.repl.text import clip, clip_parts

CONTEXT_TOKENS = 60
"""Tokens of the line, unless an agent's `context_tokens` says otherwise."""
FRAME_TOKENS = 120
"""The same for a data frame, with the values of its columns in it (context_dose in `experiments/README.md`)."""
_LONG = 60  # in a line of more there is room for more of everything
LEAST_TOKENS = 30
"""The fewest tokens that the line can be given."""
PREVIEW = 80
"""Characters of a key or an item that are shown at most, in a line of no more than 60 tokens."""
TOLD = "The REPL already has the variable context,"
_SHORT = "The variable context is"  # in a line of fewer than 60 tokens
#: Small models like to retype a text from its preview; a line of code that reads it keeps some of them from that.
READ = "Read it with code, such as context.splitlines()"
#: Of a data frame they make nothing: they load a file that nobody spoke of, unless told how to begin
#: (context_dose in `experiments/README.md`).
START = ". Start with df = context.copy()"
INLINE = 12_000
_COUNTED = 16 << 20  # bytes of a file of which the characters and lines are counted before the run
_STEP = 1 << 20


def describe_workspace(tools: Iterable[str]) -> str:
    """One line for a task with a workspace, the same under every dialect: what counts, and the `tools` to use."""
    steps = {"search_code": "find the place with search_code", "read_file": "read it with read_file"}
    steps["apply_edit"] = "then change it with apply_edit"
    ways = ", ".join(text for name, text in steps.items() if name in tools)
    return f"The files are in a git checkout{': ' if ways else ''}{ways}. Only what is changed in them counts."


def describe_context(context: Any, *, tokens: int | None = None) -> str:
    """Return one line with the type and a preview of a context.

    It has about `tokens` at most (`LEAST_TOKENS` or more; `None`: what suits the context).
    From 60 tokens on it takes up to twice as many where the first line of a text needs them.

    A text is told by its first lines, a dict or a folder by keys, a data frame by columns, a list by its first items:
    each whole, as many as fit.  Only a first one that does not fit is cut.  Where there is room for all columns of a
    data frame, the values of columns that have few follow and the types of the others, then its first rows; in a line
    of more than 60 tokens every column has its type before any has its values.  From 60 tokens on it ends with a first
    line of code for a data frame.  Never raises.
    """
    line = _Line(tokens or (FRAME_TOKENS if is_frame(context) else CONTEXT_TOKENS))
    try:
        told = line.of(context)
    except Exception:  # a value of the caller's own class can do anything
        told = line.told(f"a {line.kind(context)}")
    return beginning(told, line.room)


class _Line:
    """The line about a context that has room for so many tokens."""

    def __init__(self, tokens: int) -> None:
        self.room = BYTES * (max(tokens, LEAST_TOKENS) - 2)  # bytes; two tokens are what the dialect puts around it
        self._lead, self._long = TOLD if tokens >= _LONG else _SHORT, tokens > _LONG
        self._short = reprlib.Repr()
        self._short.maxstring = self._short.maxother = 2 * tokens if self._long else PREVIEW
        few = 12 if self._long else 3
        self._short.maxlist = self._short.maxtuple = self._short.maxdict = self._short.maxset = few
        self._short.maxlevel = 2

    def of(self, context: Any) -> str:
        kind = self.kind(context)
        if isinstance(context, ContextFolder):
            total = sum(context.sizes.values())
            size = f"a dict of {len(context.sizes):,} files by relative path, {total:,} bytes"
            return self._listing(size, "keys", map(self._short.repr, context.sizes))
        if isinstance(context, ContextFile):
            return self._of_file(context)
        if isinstance(context, str):
            return self._of_text(len(context), _lines(context), context[: 2 * self.room])
        if isinstance(context, bytes | bytearray):
            return self._beginning([f"{kind} of length {len(context):,}"], bytes(context[: 2 * self.room]))
        if is_frame(context):
            size = self.told(f"a {kind} of shape {tuple(context.shape)}")
            start = START if self._lead == TOLD else ""
            return frame_columns(context, size, self._short.repr, self.room, end=start, types_first=self._long)
        shape = getattr(context, "shape", None)
        if isinstance(shape, tuple):
            size = str(cast("tuple[Any, ...]", shape))[:48]
            columns = cast("Iterable[Any]", getattr(context, "columns", ()))
            return self._listing(f"a {kind} of shape {size}", "columns", map(self._short.repr, columns))
        if isinstance(context, Mapping):
            entries = cast("Mapping[Any, Any]", context)
            return self._listing(f"a {kind} of {len(entries):,} entries", "keys", map(self._short.repr, entries))
        if isinstance(context, Sized):
            first = cast("Sequence[Any]", context if isinstance(context, Sequence) else ())
            first = first if self._long else first[:1]
            what = "the first are" if len(first) > 1 else "the first is"
            return self._listing(f"a {kind} of {len(context):,} items", what, map(self._short.repr, first))
        return self._listing(f"a {kind}", "it is", [self._short.repr(context)])

    def kind(self, context: Any) -> str:
        return type(context).__name__[:24]

    def told(self, size: str) -> str:
        return f"{self._lead} {size}"

    def _listing(self, size: str, what: str, items: Iterable[str]) -> str:
        colon = ":" if what in ("keys", "columns") else ""
        return whole_items(f"{self.told(size)}; {what}{colon} ", items, self.room) or self.told(size)

    def _of_file(self, file: ContextFile) -> str:
        head = file.head(8 * self.room)
        if file.kind == "bytes":
            return self._beginning([f"bytes of length {file.size:,}"], head[: 2 * self.room])
        start = head.decode("utf-8", "surrogateescape")[: 2 * self.room]
        if file.size > _COUNTED:
            return self._beginning([f"a str of {file.size:,} bytes in UTF-8"], start)
        text = file.head(file.size).decode("utf-8", "surrogateescape")
        return self._of_text(len(text), _lines(text), start)

    def _of_text(self, length: int, lines: int, start: str) -> str:
        size = f"a str of {length:,} characters"
        more = [f"{size} in {lines:,} lines. {READ}", f"{size} in {lines:,} lines"] if lines > 1 else []
        return self._beginning([*more, size], start, whole=len(start) == length)

    def _beginning(self, sizes: Sequence[str], start: str | bytes, *, whole: bool = False) -> str:
        """The first of the sizes that fits, and as much of the beginning as there is room for, in whole lines.

        The first of several lines is told whole where it takes no more than twice the room: half a header misleads.
        """
        told = next((t for t in map(self.told, sizes) if width(t) <= self.room), self.told(sizes[-1]))
        if not start:
            return f"{told}; it is empty"
        head = f"{told}; it starts with "
        room = self.room - width(head)

        def takes(end: int) -> int:
            return width(repr(start[:end]))

        end = 0
        if isinstance(start, str):
            lines = start.splitlines(keepends=True)
            ends = [*accumulate(map(len, lines if whole else lines[:-1]))]
            end = _longest(ends, takes, room)
            if not end and len(lines) > 1 and self._lead == TOLD and takes(ends[0]) <= room + self.room:
                end, self.room = ends[0], 2 * self.room
        end = end or _longest(range(1, len(start) + 1), takes, room)
        return head + repr(start[:end]) if end else told


def _longest(ends: Sequence[int], takes: Callable[[int], int], room: int) -> int:
    """The greatest of the ends up to which a text takes no more than the room, 0 for none."""
    at = bisect_right(ends, room, key=takes)
    return ends[at - 1] if at else 0


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def inline_context(context: Any, *, limit: int = INLINE) -> str:
    """The context as text for a strategy without a REPL, clipped head and tail to `limit` characters."""
    if context is None:
        return ""
    if isinstance(context, ContextFolder):
        return _folder_inline(context, limit)
    if isinstance(context, ContextFile):
        return _file_inline(context, limit)
    if is_frame(context):
        return frame_text(context, limit)
    if isinstance(context, str):
        text = context
    else:
        try:
            text = json.dumps(context, ensure_ascii=False)
        except (TypeError, ValueError):
            text = str(context)
    return clip(text, limit)[0]


def _file_inline(file: ContextFile, limit: int) -> str:
    if file.kind == "bytes":
        return clip(repr(file.head(limit)), limit)[0]
    if file.size <= 8 * limit:
        return clip(file.head(file.size).decode("utf-8", "surrogateescape"), limit)[0]
    head = file.head(4 * limit).decode("utf-8", "replace")[:limit]
    tail = file.tail(4 * limit).decode("utf-8", "replace")[-limit:]
    return clip_parts(head, _characters(file) - len(head) - len(tail), tail, limit)[0]


def _characters(file: ContextFile) -> int:
    """Characters of a file of valid UTF-8, counted without keeping it in memory."""
    count, left = 0, file.size
    with file.path.open("rb") as f:
        while left > 0 and (data := f.read(min(left, _STEP))):
            count += len(data) if data.isascii() else len(data.translate(None, bytes(range(0x80, 0xC0))))
            left -= len(data)
    return count


def _folder_inline(folder: ContextFolder, limit: int) -> str:
    """The files one after another, each under its path, as far as they go."""
    parts: list[str] = []
    room = limit
    for name in folder.sizes:
        if room <= 0:
            break
        try:
            part = f"== {name} ==\n{_file_inline(ContextFile(folder.path / name), room)}"
        except (OSError, ValueError) as error:
            part = f"== {name} ==\n(cannot be read: {error})"
        parts.append(part)
        room -= len(part)
    left = len(folder.sizes) - len(parts)
    return "\n".join(parts) + (f"\n... [{left} files left out] ..." if left else "")
