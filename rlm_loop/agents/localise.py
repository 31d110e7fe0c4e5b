"""The files of a repository to look at first, ranked for an issue's text by BM25.

    >>> LeanAgent(injectors=[Localise(files=10)])  # doctest: +SKIP

The list is said once, after the question, in every dialect; the ledger has it as `scaffold:file_list`, so that with and
without is an ablation like any other.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop.dialects.injectors import Told
from rlm_loop.errors import install_line
from rlm_loop.tools import code as code_tools
from rlm_loop.workspace import Workspace

LIST_HEAD = "Files that fit the task best, the best first:"
_PATH_WEIGHT = 5  # how often the words of a path count
_LARGEST = 1_000_000  # bytes; larger files are data, not code
_DIGITS = 5  # of a score: what differs less is a tie
_LONGEST = 64  # characters; a longer word is data (a hash, an encoded text)
_IDENTIFIER = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")
#: Where camelCase is split: `HTTPServerError2` is `HTTP`, `Server`, `Error2`.
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+|[^\W_]")


@dataclass(frozen=True)
class Localise:
    """Setting of an agent: name the `files` that fit the question best, but none like `leave_out` (`tests/*`)."""

    files: int = 10
    leave_out: Sequence[str] = ()

    def told(self, question: str, workspace: Workspace) -> tuple[Told, ...]:
        """The list for a workspace as it is now; nothing where no file fits.  Raises as `rank_files` does."""
        listed = rank_files(workspace.root, question, most=self.files, leave_out=self.leave_out)
        return (Told("\n".join([LIST_HEAD, *listed]), "file_list"),) if listed else ()


def rank_files(root: Path, query: str, *, most: int = 20, leave_out: Sequence[str] = ()) -> list[str]:
    """The text files of a folder that fit a query best, best first; none that shares no word with it.

    Links, caches, binary files and files over 1 MB are left out.  A file is the words of its text and, five times,
    those of its path.  Ties are in the order of their names.  Raises `ImportError` where `bm25s` is not installed.
    """
    documents: dict[str, list[str]] = {}
    for name in sorted(code_tools.files(root)):
        data = b"\0"
        with suppress(OSError):  # it has gone, or may not be read: then it cannot be shown to a model either
            data = (root / name).read_bytes() if (root / name).stat().st_size <= _LARGEST else data
        if b"\0" not in data and not any(fnmatch.fnmatchcase(name, pattern) for pattern in leave_out):
            documents[name] = words(name) * _PATH_WEIGHT + words(data.decode("utf-8", "replace"))
    documents = {name: counted for name, counted in documents.items() if counted}
    wanted = words(query)
    if not documents or not wanted:
        return []
    try:
        import bm25s
    except ImportError:
        raise ImportError(f"ranking files needs bm25s: {install_line('localise')}") from None
    index: Any = bm25s.BM25()
    index.index(list(documents.values()), show_progress=False)
    scores = [round(float(score), _DIGITS) for score in index.get_scores(wanted)]
    ranked = sorted((-score, name) for name, score in zip(documents, scores, strict=True) if score > 0)
    return [name for _, name in ranked[:most]]


def words(text: str) -> list[str]:
    """Lower-case words in order: each identifier whole and, where it has several parts, each of these.

    Identifiers are split at underscores and in camelCase; single characters and very long words are left out.
    """
    found: list[str] = []
    for whole in _IDENTIFIER.findall(text):
        if len(whole) <= _LONGEST:
            parts = _PART.findall(whole) if whole.isascii() else whole.split("_")
            found += [word.lower() for word in ([whole] if len(parts) > 1 else []) + parts if len(word) > 1]
    return found
