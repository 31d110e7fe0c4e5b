"""Put together the files to be judged, as git trees: no file is written before it is known which ones count."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.workspace import Workspace
from rlm_loop.workspace.git import Git
from rlm_loop.workspace.objects import ABSENT, LINK, SUBMODULE, Blob, contents, differences, listed
from rlm_loop.workspace.patches import applied
from rlm_loop.workspace.tree import index_line, lay_out


@dataclass(frozen=True)
class Trees:
    """git on a clean checkout, with indexes of its own.

    In an index nothing is hidden by a `.gitignore`, which a patch may change as well.
    """

    root: Path
    _git: Git
    _folder: Path

    def applied(self, tree: str, patch: str) -> str:
        """The tree with a patch applied to it; `WorkspaceError` says why it does not fit."""
        return applied(self._git, tree, patch, self._new_index()) if patch.strip() else tree

    def changes(self, old: str, new: str) -> dict[str, tuple[Blob, Blob]]:
        """What differs: by name, what it is in `old` and in `new`."""
        return differences(self._git, old, new)

    def files(self, tree: str) -> dict[str, Blob]:
        """The files of a tree."""
        return listed(self._git, tree)[0]

    def links(self, files: Mapping[str, Blob]) -> dict[str, str]:
        """Of these files the symbolic links, each with what it leads to."""
        return {name: os.fsdecode(self.content(blob) or b"") for name, blob in files.items() if blob.mode == LINK}

    def content(self, blob: Blob) -> bytes | None:
        """The content of a file, `None` where there is none."""
        return None if blob.mode in (ABSENT, SUBMODULE) else contents(self._git, [blob.id])[blob.id]

    def grafted(self, tree: str, files: Mapping[str, Blob]) -> str:
        """The tree with these files as given; they win over what is in their way."""
        if not files:
            return tree
        index = self._new_index()
        absent_first = sorted(files.items(), key=lambda pair: pair[1].mode != ABSENT)
        lines = [index_line(blob.mode, blob.id, name) for name, blob in absent_first]
        self._git("read-tree", tree, GIT_INDEX_FILE=index)
        self._git("update-index", "--replace", "-z", "--index-info", stdin=b"".join(lines), GIT_INDEX_FILE=index)
        return self._git("write-tree", GIT_INDEX_FILE=index).decode().strip()

    def lay(self, old: str, new: str) -> None:
        """Make the files in the folder, which are those of `old`, the files of `new`."""
        changed = self.changes(old, new).items()
        lay_out(self._git, self.root, {name: None if now.mode == ABSENT else now for name, (_, now) in changed})

    def _new_index(self) -> str:
        return str(self._folder / f"{len(os.listdir(self._folder))}.index")


@contextmanager
def trees(space: Workspace) -> Generator[Trees]:
    """The trees of a workspace in which nothing was done yet."""
    pointer = (space.root / ".git").read_text().removeprefix("gitdir:").strip()
    with tempfile.TemporaryDirectory(prefix="rlm-trees-") as folder:
        yield Trees(space.root, Git(Path(pointer), space.root), Path(folder))
