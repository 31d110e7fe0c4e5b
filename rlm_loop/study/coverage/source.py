"""The context of a run, taken again: a trace holds only its hash and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from rlm_loop.repl.contexts.fingerprint import context_fingerprint
from rlm_loop.traces.reader import RunRecord


class CoverageError(Exception):
    """Coverage cannot be had; the message is one line that says what to do."""


def text_of(context: Any) -> str:
    """The text in which ranges are counted.

    A str as it is; a `Path` as the UTF-8 text of that file; bytes as one character a byte; the strings of a list or
    tuple, and the values of a mapping, joined by newlines.  Raises `CoverageError` for anything else.
    """
    if isinstance(context, str):
        return context
    if isinstance(context, Path):
        try:
            return context.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CoverageError(f"cannot read the context {context} as UTF-8 text: {error}") from error
    if isinstance(context, (bytes, bytearray)):
        return bytes(context).decode("latin-1")
    if isinstance(context, Mapping):
        return text_of(list(cast("Mapping[Any, Any]", context).values()))
    if isinstance(context, Sequence):
        items = cast("Sequence[Any]", context)
        if all(isinstance(item, str) for item in items):
            return "\n".join(items)
    kind = type(context).__name__
    raise CoverageError(f"coverage counts characters of text, and the context is a {kind}: hand in text=... for it")


def check(context: Any, record: RunRecord) -> None:
    """Raises `CoverageError` where the trace is of a run on another context, or on none."""
    stored = record.start.get("context")
    if stored is None:
        raise CoverageError("this run had no context, so there is nothing to cover")
    found = [context_fingerprint(context)]
    if isinstance(context, Path):
        found.append(context_fingerprint(text_of(context)))
    late = [e for e in record.of("context") if e["type"] == stored["type"] and "sha256" in e]  # hashed beside the run
    stored = stored if "sha256" in stored else late[0] if late else {**stored, "sha256": ""}
    if not stored["sha256"]:
        raise CoverageError("this run ended before its context was hashed, so that it cannot be told which it was")
    if stored["sha256"] not in [f["sha256"] for f in found if f is not None]:
        size = stored.get("bytes", stored.get("size")) or 0
        raise CoverageError(
            f"this is not the context of the run: its trace says {stored['type']} of {size:,} bytes, SHA-256 "
            f"{stored['sha256'][:12]}...; hand in that one"
        )
