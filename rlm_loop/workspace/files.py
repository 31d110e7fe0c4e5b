"""The files of a workspace as they are now, as a git tree."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from rlm_loop.workspace.git import Git, WorkspaceError
from rlm_loop.workspace.trees import SUBMODULE, in_index

#: Left by running, building or editing code.  Written as in a `.gitignore`: a slash at the end means a folder, one
#: at the beginning the top folder only.
DROPPINGS = (
    *("__pycache__/", "*.pyc", "*.pyo", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", ".tox/"),
    *(".nox/", ".cache/", ".benchmarks/", ".ipynb_checkpoints/", "node_modules/", ".venv/", "/venv/"),
    *("*.egg-info/", "*.dist-info/", "*.egg-link", ".eggs/", "/build/", "/dist/", "*.so", "*.o"),
    *(".coverage", ".coverage.*", "htmlcov/", "*.orig", "*.rej", "*.swp", ".DS_Store"),
)
MAX_NEW = 100_000_000  # bytes; a larger new file is data, and no part of a patch
PATIENCE = 20.0  # seconds for git to find new files; it can take for ever over a pattern with many `**`
_OF_GIT = re.compile(r"(\.git|git~1)[ .]*([:\\].*)?", re.IGNORECASE | re.DOTALL)  # git takes them for its own


class Files:
    """Finds the files that count: those of the start, and new ones that are neither ignored nor droppings.

    So the tree depends on the files alone, not on how they came about.
    """

    def __init__(self, git: Git, root: Path) -> None:
        self._git, self._root, self._first = git, root, git.git_dir / "start"
        shutil.copyfile(git.git_dir / "index", self._first)
        self._start = {name for name, blob in in_index(git).items() if blob.mode != SUBMODULE}
        self._indexed = self._start
        above = {name[:at] for name in self._start for at, sign in enumerate(name) if sign == "/"}
        folders = {f"/{folder}" for folder in above} | {os.path.basename(folder) for folder in above}
        rules = [rule for rule in DROPPINGS if rule.rstrip("/") not in folders]  # of the start: new files in it count
        (git.git_dir / "info" / "exclude").write_text("\n".join(rules))

    def tree(self) -> str:
        """Return the id of the tree of the files now; raise `WorkspaceError` where the folder is a link."""
        if self._root.is_symlink():
            raise WorkspaceError(f"{self._root} was replaced by a link: open a new workspace")
        seen = set(self._look())
        options = ("--force-write-index", "--remove", "--replace", "-z", "--stdin")
        for option, names in (("--force-remove", self._indexed - seen), ("--add", seen)):
            self._git("update-index", option, *options, stdin=b"".join(os.fsencode(n) + b"\0" for n in names))
        self._indexed = seen
        return self._git("write-tree").decode().strip()

    def _look(self) -> Iterator[str]:
        """Yield the files that count, through no link; give the owner back what a command took away."""
        git = replace(self._git, seconds=PATIENCE)
        others = git("ls-files", "-z", "--others", "--exclude-standard", GIT_INDEX_FILE=str(self._first))
        new = {os.fsdecode(name) for name in others.split(b"\0")[:-1]}
        repositories = [name for name in new if name.endswith("/")]  # made in there: their files are as others
        new |= {f"{name}{inner}" for name in repositories for inner in names_below(self._root / name)}

        @cache
        def real(folder: str) -> bool:
            return not folder or (not os.path.islink(self._root / folder) and real(os.path.dirname(folder)))

        for name in {*self._start, *new}:
            try:
                status = os.lstat(self._root / name)
            except OSError:
                continue
            if not stat.S_ISLNK(status.st_mode):
                if not stat.S_ISREG(status.st_mode) or (status.st_size > MAX_NEW and name not in self._start):
                    continue
                if not status.st_mode & stat.S_IRUSR:
                    os.chmod(self._root / name, stat.S_IMODE(status.st_mode) | stat.S_IRUSR)
            known = name in self._start and real(os.path.dirname(name))
            if known or (name in new and not any(map(_OF_GIT.fullmatch, name.split("/")))):
                yield name


def names_below(root: Path) -> Iterable[str]:
    """Yield the names of all files and links in a folder but git's own."""
    for folder, below, here in os.walk(root):
        below[:] = [name for name in below if name.casefold() != ".git"]
        links = [name for name in below if os.path.islink(os.path.join(folder, name))]
        for name in [*here, *links]:
            if name.casefold() != ".git":
                yield os.path.relpath(os.path.join(folder, name), root)
