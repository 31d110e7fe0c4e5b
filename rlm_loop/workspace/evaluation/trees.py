"""Put together the files to be judged, as git trees: no file is written before it is known which ones count."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.workspace import Workspace
from rlm_loop.workspace.git import Git
from rlm_loop.workspace.objects import ABSENT, LINK, Blob, differences
from rlm_loop.workspace.objects import listed as files_of
from rlm_loop.workspace.tree import index_line


@dataclass(frozen=True)
class Trees:
    """git on a clean checkout, with indexes of its own.

    In an index nothing is hidden by a `.gitignore`, which a patch may change as well.
    """

    root: Path
    _git: Git
    _folder: Path

    def start(self) -> str:
        """The tree of the checkout."""
        return self._git("rev-parse", "HEAD^{tree}").decode().strip()

    def applied(self, tree: str, patch: str) -> str:
        """The tree with a patch applied to it; `WorkspaceError` says why it does not fit."""
        if not patch.strip():
            return tree
        index = self._index(tree)
        given = patch.encode("utf-8", "surrogatepass")
        self._git("apply", "--cached", "--whitespace=nowarn", "-", stdin=given, GIT_INDEX_FILE=index)
        return self._written(index)

    def changes(self, old: str, new: str) -> dict[str, Blob]:
        """What differs: by name, what it is in `old`."""
        return {name: was for name, (was, _) in differences(self._git, old, new).items()}

    def files(self, tree: str) -> Mapping[str, str]:
        """The files of a tree, each with its mode (120000: a link)."""
        return {name: blob.mode for name, blob in files_of(self._git, tree)[0].items()}

    def links(self, tree: str, files: Mapping[str, str]) -> dict[str, str]:
        """Of the files of a tree the symbolic links, each with what it leads to."""
        names = [name for name, mode in files.items() if mode == LINK]
        return {name: os.fsdecode(self.content(tree, name) or b"") for name in names}

    def content(self, tree: str, name: str) -> bytes | None:
        """The content of a file in a tree, `None` where there is none."""
        found = self._git("ls-tree", "-z", tree, "--", name).split(b"\0")[0].split(b"\t")[0].split()
        return self._git("cat-file", "blob", found[2].decode()) if len(found) == 3 and found[1] == b"blob" else None

    def grafted(self, tree: str, files: Mapping[str, Blob]) -> str:
        """The tree with these files as given; they win over what is in their way."""
        if not files:
            return tree
        index = self._index(tree)
        absent_first = sorted(files.items(), key=lambda pair: pair[1].mode != ABSENT)
        lines = [index_line(blob.mode, blob.id, name) for name, blob in absent_first]
        self._git("update-index", "--replace", "-z", "--index-info", stdin=b"".join(lines), GIT_INDEX_FILE=index)
        return self._written(index)

    def lay(self, old: str, new: str) -> None:
        """Make the files in the folder, which are those of `old`, the files of `new`."""
        changed = differences(self._git, old, new)
        for name, (was, _) in changed.items():
            if was.mode != ABSENT:
                _remove(self.root, name)
        index = self._index(new)
        given = b"".join(os.fsencode(name) + b"\0" for name, (_, now) in changed.items() if now.mode != ABSENT)
        self._git("checkout-index", "-f", "-z", "--stdin", stdin=given, GIT_INDEX_FILE=index)

    def _index(self, tree: str) -> str:
        index = str(self._folder / f"{len(os.listdir(self._folder))}.index")
        self._git("read-tree", tree, GIT_INDEX_FILE=index)
        return index

    def _written(self, index: str) -> str:
        return self._git("write-tree", GIT_INDEX_FILE=index).decode().strip()


@contextmanager
def trees(space: Workspace) -> Generator[Trees]:
    """The trees of a workspace in which nothing was done yet."""
    pointer = (space.root / ".git").read_text().removeprefix("gitdir:").strip()
    with tempfile.TemporaryDirectory(prefix="rlm-trees-") as folder:
        yield Trees(space.root, Git(Path(pointer), space.root), Path(folder))


def _remove(root: Path, name: str) -> None:
    """Remove a file, and the folders that are empty then; the folders above it are real ones, as git laid them."""
    path = root / name
    with contextlib.suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():  # another repository's, which is left empty
            path.rmdir()
        else:
            path.unlink()
    for folder in path.parents:
        if folder == root or os.listdir(folder):
            break
        folder.rmdir()


def listed(names: Iterable[str], most: int = 3) -> str:
    """A few of these names in one line."""
    given = list(names)
    more = f" and {len(given) - most} more" if len(given) > most else ""
    return ", ".join(given[:most]) + more
