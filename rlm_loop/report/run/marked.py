"""Texts of a run as HTML: escaped, clipped with a note of what is left out, code and patches coloured."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from typing import Any

from markupsafe import Markup

from rlm_loop.report.templates import escaped, macros, safe

#: Characters of one text that are shown.
_LIMIT = 20_000


def parts() -> Any:
    """The macros of `parts.html`: the pieces of a run's page, made of values."""
    return macros("run/parts.html")


def plain_text(text: str, limit: int = _LIMIT) -> Markup:
    """A text, head and tail of it where it is longer than `limit`."""
    return _clipped(text, limit, escaped)


def python_code(code: str) -> Markup:
    """Python, coloured."""
    return _clipped(code, _LIMIT, _coloured)


def patch(text: str) -> Markup:
    """A unified diff, line by line coloured."""
    return _clipped(text.rstrip("\n"), _LIMIT, _diff_lines)


def is_patch(text: str) -> bool:
    """Return whether a text is a unified diff."""
    return text.startswith(("diff --git ", "--- ")) and "\n@@ " in text


def brief(text: str, limit: int = 90) -> str:
    """The beginning of a text on one line, not escaped."""
    words = " ".join(text[: 4 * limit].split())
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def _clipped(text: str, limit: int, shown: Callable[[str], Markup]) -> Markup:
    if len(text) <= limit:
        return shown(text)
    head = limit * 2 // 3
    tail = limit - head
    note = Markup('<span class="cut">{:,} characters left out</span>').format(len(text) - limit)
    return shown(text[:head]) + note + shown(text[len(text) - tail :])


def _diff_lines(text: str) -> Markup:
    parts: list[str] = []
    for line in text.split("\n"):
        if line.startswith(("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity", "rename ")):
            kind = "dh"
        else:
            kind = {"+": "da", "-": "dr", "@": "dp"}.get(line[:1], "")
        parts.append(f'<span class="{kind}">{safe(line)}\n</span>' if kind else safe(line) + "\n")
    return Markup("".join(parts))


@lru_cache(maxsize=512)
def _coloured(code: str) -> Markup:
    from pygments.lexers.python import PythonLexer

    # `get_tokens` would change the text; tokens are joined while their class is the same, to keep pages small
    tokens = PythonLexer().get_tokens_unprocessed(code.replace("\r\n", "\n"))
    runs = groupby(tokens, key=lambda token: _kind(token[1]))
    return Markup("".join(_span("".join(text for *_, text in of), kind) for kind, of in runs))


def _span(text: str, kind: str) -> str:
    return f'<span class="{kind}">{safe(text)}</span>' if kind else safe(text)


@lru_cache(maxsize=256)
def _kind(token: Any) -> str:
    """The class of a token of pygments; names, brackets and operators keep the colour of text."""
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    families = {"hc": (Comment,), "hs": (String,), "hn": (Number,), "hk": (Keyword, Operator.Word)}
    families |= {"hb": (Name.Builtin, Name.Exception), "hf": (Name.Function, Name.Class, Name.Decorator)}
    return next((kind for kind, of in families.items() if any(token in family for family in of)), "")
