"""Texts of a run as HTML: escaped, clipped with a note of what is left out, code and patches coloured."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from html import escape
from typing import Any

# Control characters that would be lost or steer the page, lone surrogates (no UTF-8), and marks that turn the
# direction of writing: code that reads otherwise than it runs must not look innocent.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def safe(text: Any) -> str:
    """Any text as HTML text or the value of an attribute in quotes."""
    text = str(text).replace("\r\n", "\n")
    if _HIDDEN.search(text):
        text = _HIDDEN.sub(_named, text)
    return escape(text)


def _named(found: re.Match[str]) -> str:
    return f"‹U+{ord(found[0]):04X}›" if _TURNING.match(found[0]) else "\N{REPLACEMENT CHARACTER}"


def plain_text(text: str, limit: int) -> str:
    """A text, head and tail of it where it is longer than `limit`."""
    return _clipped(text, limit, safe)


def python_code(code: str, limit: int) -> str:
    """Python, coloured."""
    return _clipped(code, limit, _coloured)


def patch(text: str, limit: int) -> str:
    """A unified diff, line by line coloured."""
    return _clipped(text.rstrip("\n"), limit, _diff_lines)


def is_patch(text: str) -> bool:
    """Whether a text is a unified diff."""
    return text.startswith(("diff --git ", "--- ")) and "\n@@ " in text


def brief(text: str, limit: int = 90) -> str:
    """The beginning of a text on one line, not escaped."""
    words = " ".join(text[: 4 * limit].split())
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def _clipped(text: str, limit: int, shown: Callable[[str], str]) -> str:
    if len(text) <= limit:
        return shown(text)
    head = limit * 2 // 3
    tail = limit - head
    note = f'<span class="cut">{len(text) - limit:,} characters left out</span>'
    return f"{shown(text[:head])}{note}{shown(text[len(text) - tail :])}"


def _diff_lines(text: str) -> str:
    parts: list[str] = []
    for line in text.split("\n"):
        if line.startswith(("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity", "rename ")):
            kind = "dh"
        else:
            kind = {"+": "da", "-": "dr", "@": "dp"}.get(line[:1], "")
        parts.append(f'<span class="{kind}">{safe(line)}\n</span>' if kind else safe(line) + "\n")
    return "".join(parts)


@lru_cache(maxsize=512)
def _coloured(code: str) -> str:
    from pygments.lexers.python import PythonLexer

    # `get_tokens` would change the text; tokens are joined while their class is the same, to keep pages small
    parts: list[str] = []
    held, kind = "", ""
    for _, token, value in PythonLexer().get_tokens_unprocessed(code.replace("\r\n", "\n")):
        now = _kind(token)
        if now == kind or value.isspace():
            held += value
            continue
        parts.append(_span(held, kind))
        held, kind = value, now
    parts.append(_span(held, kind))
    return "".join(parts)


def _span(text: str, kind: str) -> str:
    return f'<span class="{kind}">{safe(text)}</span>' if kind and text.strip() else safe(text)


@lru_cache(maxsize=256)
def _kind(token: Any) -> str:
    """The class of a token of pygments; names, brackets and operators keep the colour of text."""
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    for family, kind in (
        (Comment, "hc"),
        (String, "hs"),
        (Number, "hn"),
        (Keyword, "hk"),
        (Operator.Word, "hk"),
        (Name.Builtin, "hb"),
        (Name.Exception, "hb"),
        (Name.Function, "hf"),
        (Name.Class, "hf"),
        (Name.Decorator, "hf"),
    ):
        if token in family:
            return kind
    return ""
