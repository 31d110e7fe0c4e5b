"""What a model is told of the `context` variable: type, size and a short preview, never the whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sized
from typing import Any, cast

PREVIEW = 80
#: Small models like to retype a text from its preview; being told not to helps some of the time.
TOLD = "The variable context exists already (do not assign it):"
INLINE = 12_000


def describe_context(context: Any, *, preview: int = PREVIEW) -> str:
    """One line: type, size and beginning, as in `... a str of 1,234 characters in 56 lines; it starts with '...'`."""
    kind = type(context).__name__
    if isinstance(context, str):
        lines = context.count("\n") + (not context.endswith("\n"))
        size = f"{len(context):,} characters" + (f" in {lines:,} lines" if lines > 1 else "")
        return f"{TOLD} a str of {size}; it starts with {context[:preview]!r}"
    if isinstance(context, Mapping):
        entries = cast("Mapping[Any, Any]", context)
        keys = ", ".join(repr(k) for k in list(entries)[:5])
        return f"{TOLD} a {kind} of {len(entries):,} entries; keys: {keys[:preview]}"
    shape = getattr(context, "shape", None)
    if shape is not None:
        return f"{TOLD} a {kind} of shape {tuple(shape)}"
    if isinstance(context, Sized):
        return f"{TOLD} a {kind} of {len(context):,} items"
    return f"{TOLD} a {kind}: {repr(context)[:preview]}"


def context_fingerprint(context: Any) -> dict[str, Any] | None:
    """What a trace holds of the context: its type, size and hash, never its text."""
    if context is None:
        return None
    raw = context if isinstance(context, bytes) else str(context).encode("utf-8", "surrogatepass")
    return {"type": type(context).__name__, "bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def inline_context(context: Any, *, limit: int = INLINE) -> str:
    """The context as text for a strategy without a REPL, clipped head and tail to `limit` characters."""
    from rlm_loop.repl.clip import clip

    if context is None:
        return ""
    if isinstance(context, str):
        text = context
    else:
        try:
            text = json.dumps(context, ensure_ascii=False)
        except (TypeError, ValueError):
            text = str(context)
    return clip(text, limit)[0]
