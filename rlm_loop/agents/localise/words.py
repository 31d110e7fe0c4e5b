"""The words of source code and of a text about it, so that `max_retries` and "the retries" have one in common."""

from __future__ import annotations

import re

_IDENTIFIER = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")
#: Where camelCase is split: `HTTPServerError2` is `HTTP`, `Server`, `Error2`.
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+|[^\W_]")
_LONGEST = 64  # characters; what is longer is data (a hash, an encoded text)


def words(text: str) -> list[str]:
    """Lower-case words in order: each identifier whole and, where it has several parts, each of these.

    Identifiers are split at underscores and in camelCase; single characters and very long words are left out.
    """
    found: list[str] = []
    for match in _IDENTIFIER.finditer(text):
        whole = match.group()
        if len(whole) > _LONGEST:
            continue
        parts = _parts(whole)
        found += [word for word in ([whole.lower()] if len(parts) > 1 else []) + parts if len(word) > 1]
    return found


def _parts(identifier: str) -> list[str]:
    if identifier.isascii():
        return [part.lower() for part in _PART.findall(identifier)]
    return [part.lower() for part in identifier.split("_") if part]  # scripts without capitals are not split further
