"""Files ranked for a text by BM25 (Robertson and Zaragoza 2009), computed by the library `bm25s`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop.hints.install import install_line
from rlm_loop.tools import code as code_tools

PATH_WEIGHT = 5
_LARGEST = 1_000_000  # bytes; larger files are data, not code
_DIGITS = 5  # of a score: what differs less is a tie


class LocaliseError(Exception):
    """Files could not be ranked; the message is one line that says what to do."""


@dataclass(frozen=True)
class Ranked:
    """A file and its score: higher fits better, and scores of different queries cannot be compared."""

    path: str
    score: float


def rank_files(
    source: Path | Mapping[str, str],
    query: str,
    *,
    most: int = 20,
    path_weight: int = PATH_WEIGHT,
    leave_out: Sequence[str] = (),
) -> list[Ranked]:
    """The text files that fit a query best, best first; none that shares no word with it.

    `source` is a folder (without links, caches, binary files and files over 1 MB) or files by name.  A file is
    the words of its text and, `path_weight` times, those of its path.  `leave_out` are patterns of paths such as
    `tests/*` (`fnmatch`).  Ties are in the order of their names, so the same files give the same list.  Raises
    `LocaliseError` where `bm25s` is not installed.
    """
    texts = source.items() if isinstance(source, Mapping) else _texts(source)
    documents: dict[str, list[str]] = {}
    for name, text in sorted(texts):
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in leave_out):
            continue
        if found := words(name) * path_weight + words(text):
            documents[name] = found
    wanted = words(query)
    if not documents or not wanted or most < 1:
        return []
    index: Any = _library().BM25()
    index.index(list(documents.values()), show_progress=False)
    scores = [round(float(score), _DIGITS) for score in index.get_scores(wanted)]
    ranked = [Ranked(name, score) for name, score in zip(documents, scores, strict=True) if score > 0]
    return sorted(ranked, key=lambda r: (-r.score, r.path))[:most]


def _texts(root: Path) -> Iterable[tuple[str, str]]:
    for name in code_tools.files(root):
        path = root / name
        try:
            data = path.read_bytes() if path.stat().st_size <= _LARGEST else b"\0"
        except OSError:  # it has gone, or may not be read: then it cannot be shown to a model either
            continue
        if b"\0" not in data:
            yield name, data.decode("utf-8", "replace")


def _library() -> Any:
    try:
        import bm25s
    except ImportError:
        raise LocaliseError(f"ranking files needs bm25s: {install_line('localise')}") from None
    return bm25s


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
