"""What a model is told of the `context` variable: type, size and a short preview, never the whole.

One line of fewer than 60 tokens, the same under every dialect (`preview` has the rule by which they are counted).
"""

from __future__ import annotations

import json
import re
import reprlib
from ast import literal_eval
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import islice
from typing import Any, cast

from rlm_loop.repl.contexts.on_disk import ContextFile, ContextFolder
from rlm_loop.repl.contexts.preview import estimate_tokens, first_tokens
from rlm_loop.repl.text import clip, clip_parts

PREVIEW = 80
"""Characters of a preview at most; fewer where they would take too many tokens."""
TOKENS = 58
TOLD = "The REPL already has the variable context,"
#: Small models like to retype a text from its preview; a line of code that reads it keeps some of them from that.
READ = "Read it with code, such as context.splitlines()"
INLINE = 12_000
_COUNTED = 16 << 20  # bytes of a file of which the characters and lines are counted before the run
_STEP = 1 << 20
_START = re.compile(r"it starts with ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")

_short = reprlib.Repr()
_short.maxstring = _short.maxother = PREVIEW
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = 3
_short.maxlevel = 2


def describe_workspace(tools: Iterable[str]) -> str:
    """One line for a task with a workspace, the same under every dialect: what counts, and the `tools` to use."""
    steps = {"search_code": "find the place with search_code", "read_file": "read it with read_file"}
    steps["apply_edit"] = "then change it with apply_edit"
    ways = ", ".join(text for name, text in steps.items() if name in tools)
    return f"The files are in a git checkout{': ' if ways else ''}{ways}. Only what is changed in them counts."


def describe_context(context: Any, *, preview: int = PREVIEW) -> str:
    """One line: type, size and beginning, as in `... a str of 8 characters; it starts with '...'`."""
    kind = first_tokens(type(context).__name__, 8)
    if isinstance(context, ContextFolder):
        total = sum(context.sizes.values())
        head = f"a dict of {len(context.sizes):,} files by relative path, {total:,} bytes"
        return _told(head, "keys:", _names(context.sizes), preview)
    if isinstance(context, ContextFile):
        return _of_file(context, preview)
    if isinstance(context, str):
        return _of_text(len(context), context.count("\n") + (not context.endswith("\n")), context[:preview], preview)
    if isinstance(context, bytes | bytearray):
        return _told(f"{kind} of length {len(context):,}", "it starts with", bytes(context[:preview]), preview)
    shape = getattr(context, "shape", None)
    if isinstance(shape, tuple):
        size = first_tokens(str(cast("tuple[Any, ...]", shape)), 16)
        return _told(f"a {kind} of shape {size}", "columns:", _names(getattr(context, "columns", ())), preview)
    if isinstance(context, Mapping):
        entries = cast("Mapping[Any, Any]", context)
        return _told(f"a {kind} of {len(entries):,} entries", "keys:", _names(entries), preview)
    if isinstance(context, Sized):
        first = _short.repr(context[0]) if isinstance(context, Sequence) and len(context) else ""
        return _told(f"a {kind} of {len(context):,} items", "the first is", first, preview)
    return _told(f"a {kind}", "it is", _short.repr(context), preview)


def told_start(text: str) -> str | None:
    """The preview that stands in a text as `describe_context` worded it; `None` where there is none."""
    found = _START.search(text)
    return None if found is None else literal_eval(found[1])


def _of_file(file: ContextFile, preview: int) -> str:
    head = file.head(4 * preview)
    if file.kind == "bytes":
        return _told(f"bytes of length {file.size:,}", "it starts with", head[:preview], preview)
    start = head.decode("utf-8", "surrogateescape")[:preview]
    if file.size > _COUNTED:
        return _told(f"a str of {file.size:,} bytes in UTF-8", "it starts with", start, preview)
    text = file.head(file.size).decode("utf-8", "surrogateescape")
    return _of_text(len(text), text.count("\n") + (not text.endswith("\n")), start, preview)


def _of_text(length: int, lines: int, start: str, preview: int) -> str:
    size = f"{length:,} characters" + (f" in {lines:,} lines. {READ}" if lines > 1 else "")
    return _told(f"a str of {size}", "it starts with", start, preview)


def _told(size: str, what: str, start: str | bytes, preview: int) -> str:
    """The line, with as much of the preview as there are tokens for."""
    if not start:
        return f"{TOLD} {size}" + ("; it is empty" if what == "it starts with" else "")
    head = f"{TOLD} {size}; {what} "
    room = TOKENS - estimate_tokens(head)
    if what != "it starts with":
        shown = first_tokens(str(start)[:preview], room)
    else:
        longest = next((n for n in range(len(start), 0, -1) if estimate_tokens(repr(start[:n])) <= room), 0)
        shown = repr(start[:longest]) if longest else ""
    return head + shown if shown else f"{TOLD} {size}"


def _names(names: Iterable[Any]) -> str:
    return ", ".join(_short.repr(name) for name in islice(names, 8))


def inline_context(context: Any, *, limit: int = INLINE) -> str:
    """The context as text for a strategy without a REPL, clipped head and tail to `limit` characters."""
    if context is None:
        return ""
    if isinstance(context, ContextFolder):
        return _folder_inline(context, limit)
    if isinstance(context, ContextFile):
        return _file_inline(context, limit)
    if hasattr(context, "to_csv") and hasattr(context, "columns"):
        return _frame_inline(context, limit)
    if isinstance(context, str):
        text = context
    else:
        try:
            text = json.dumps(context, ensure_ascii=False)
        except (TypeError, ValueError):
            text = str(context)
    return clip(text, limit)[0]


def _frame_inline(frame: Any, limit: int) -> str:
    """A data frame as CSV, whole rows of the beginning and the end; an index that only counts them is left out."""
    index = type(frame.index).__name__ != "RangeIndex"
    head: str = frame.head(limit).to_csv(index=index)  # a row has one character or more
    if len(frame) <= limit and len(head) <= limit:
        return head
    tail: str = frame.tail(limit).to_csv(index=index, header=False)
    room = (limit - len(f"... [{len(frame)} rows left out] ...\n")) // 2
    first = head[: head.rfind("\n", 0, max(room, 0)) + 1]
    last = tail[tail.find("\n", -room - 1) + 1 :] if room > 0 else ""
    left = len(frame) + 1 - first.count("\n") - last.count("\n")
    return f"{first}... [{left} rows left out] ...\n{last}" if first else clip(head, limit)[0]


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
