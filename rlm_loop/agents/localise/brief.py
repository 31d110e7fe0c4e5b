"""What a model is told of a repository's files before it begins: those that fit the task by BM25, and a tree."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop.agents.localise.listing import file_tree
from rlm_loop.dialects.injectors import Told
from rlm_loop.errors import install_line
from rlm_loop.tools import code as code_tools
from rlm_loop.workspace import Workspace

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


LIST_HEAD = "Files that fit the task best, the best first:"
TREE_HEAD = "Files of the repository:"


@dataclass(frozen=True)
class Localise:
    """An agent's setting: a ranked list of `files` names (0: none) and a tree of `tree` characters (0: none).

    The list is made for the question's text; `leave_out` are patterns of paths that it does not hold (`tests/*`), and
    `path_weight` is how often the words of a path count.  Names only, no contents.
    """

    files: int = 10
    tree: int = 0
    leave_out: Sequence[str] = ()
    path_weight: int = PATH_WEIGHT

    def __post_init__(self) -> None:
        if self.files < 0 or self.tree < 0 or self.path_weight < 0:
            raise ValueError("Localise takes numbers of 0 or more: files (how many) and tree (characters)")
        object.__setattr__(self, "leave_out", tuple(self.leave_out))

    def told(self, question: str, workspace: Workspace) -> tuple[Told, ...]:
        """The texts for a workspace as it is now; none where there is nothing to say.

        Raises `LocaliseError` where a list is asked for and `bm25s` is not installed.
        """
        texts: list[Told] = []
        if self.files:
            listed = _ranked(self, question, workspace.snapshot(), _Root(workspace.root))
            texts += [Told("\n".join([LIST_HEAD, *listed]), "file_list")] if listed else []
        if self.tree:
            shown = file_tree(code_tools.files(workspace.root), self.tree)
            texts += [Told(f"{TREE_HEAD}\n{shown}", "file_tree")] if shown else []
        return tuple(texts)


class _Root:
    """A folder that does not count where results are kept by arguments: what is in it does, by its tree id."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Root)

    def __hash__(self) -> int:
        return 0


@functools.lru_cache(maxsize=256)  # a study opens the same checkout for every arm and seed
def _ranked(settings: Localise, question: str, tree: str, root: _Root) -> tuple[str, ...]:
    found = rank_files(
        root.path, question, most=settings.files, path_weight=settings.path_weight, leave_out=settings.leave_out
    )
    return tuple(r.path for r in found)
