"""What a model is told of a repository's files before it begins."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.agents.localise.listing import file_tree
from rlm_loop.agents.localise.ranking import PATH_WEIGHT, rank_files
from rlm_loop.dialects.injectors import Told
from rlm_loop.tools import code as code_tools
from rlm_loop.workspace import Workspace

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
        root.path,
        question,
        most=settings.files,
        path_weight=settings.path_weight,
        leave_out=settings.leave_out,
    )
    return tuple(r.path for r in found)
