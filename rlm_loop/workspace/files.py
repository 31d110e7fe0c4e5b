"""The files of a workspace as they are now, as a git tree.

Git hashes the files, keeps them and knows what is ignored.  Which files of the start may have changed is decided here,
by times in nanoseconds that no program can set: git would take for unchanged what changed twice within a second.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rlm_loop.workspace.git import Git, WorkspaceError
from rlm_loop.workspace.patterns import Patterns
from rlm_loop.workspace.trees import SUBMODULE, differences

MAX_NEW = 100_000_000  # bytes; a larger new file is data, and no part of a patch
MAX_FOLDERS = 64  # that a new file may lie in, one in the other
MAX_NAME = 3_000  # bytes of a name with its folders; the system opens no path of 4,096
PATIENCE = 20.0  # seconds for git to say what is ignored; it can take for ever over a pattern with many `**`
_REFUSED = re.compile(r"(\.git|git~1)[ .]*([:\\].*)?", re.IGNORECASE | re.DOTALL)  # git takes them for its own
_TICK = 50_000_000  # ns that the clock of a file system may lag behind ours
_COARSE_TICK = 2_100_000_000  # where it counts whole seconds

_Signature = tuple[int, int, int, int, int]


class Files:
    """Finds the files that count: those of the start, and new ones that are neither ignored nor droppings.

    So the tree depends on the files alone, not on how they came about.
    """

    def __init__(self, git: Git, base: str, droppings: Iterable[str], submodules: Iterable[str]) -> None:
        assert git.work_tree is not None
        self._root, self._git, self._base = git.work_tree, git, base
        self._start_index, self._index = (str(git.git_dir / name) for name in ("start", "now"))
        self._droppings, self._submodules = Patterns(droppings), tuple(f"{name}/" for name in submodules)
        git("read-tree", base, GIT_INDEX_FILE=self._start_index)  # without times: what it is asked to look at, it reads
        self._folders: dict[str, set[str]] = {"": set()}
        for line in git("ls-files", "-s", "-z", GIT_INDEX_FILE=self._start_index).split(b"\0")[:-1]:
            if line.startswith(SUBMODULE.encode()):
                continue
            folder, _, last = os.fsdecode(line.partition(b"\t")[2]).rpartition("/")
            self._folders.setdefault(folder, set()).add(last)
            while folder := folder.rpartition("/")[0]:
                self._folders.setdefault(folder, set())
        self._folders = dict(sorted(self._folders.items()))  # outer folders first
        kept = [name for name in self._folders if name and self._droppings.match(name, folder=True)]
        rules = [*self._droppings.texts, *(f"!/{name}/" for name in kept)]  # new files beside old ones count
        (git.git_dir / "info" / "exclude").write_text("".join(f"{rule}\n" for rule in rules), errors="surrogateescape")
        now = time.time_ns()
        self._start = {name: _signature(status, now) for name, status in self._look()}

    def tree(self) -> str:
        """Return the id of the tree of the files now; raise `WorkspaceError` where the folder is a link."""
        if self._root.is_symlink():
            raise WorkspaceError(f"{self._root} was replaced by a link: open a new workspace")
        now = time.time_ns()
        seen = {name: status for name, status in self._look() if _counts(status)}
        signed = {name: _signature(status, now) for name, status in seen.items()}
        changed = [name for name, signature in signed.items() if signature is None or signature != self._start[name]]
        new = [name for name, reason in self._new() if not reason]
        gone = self._start.keys() - seen.keys()
        if not (changed or new or gone):
            return self._base
        for name in (*changed, *new):
            with suppress(FileNotFoundError, NotADirectoryError):
                _make_readable(self._root / name)
        shutil.copyfile(self._start_index, self._index)
        for option, names in (("--force-remove", gone), ("--add", [*changed, *new])):
            if names:
                lines = b"".join(os.fsencode(name) + b"\0" for name in names)
                options = (option, "--remove", "--replace", "-z", "--stdin")
                self._git("update-index", *options, stdin=lines, GIT_INDEX_FILE=self._index)
        tree = self._git("write-tree", GIT_INDEX_FILE=self._index).decode().strip()
        unsure = {name: signed[name] for name in changed if self._start[name] is None and signed[name] is not None}
        if unsure:  # what was too new to be known by its times is so no more, where it is as it was
            other = differences(self._git, self._base, tree)
            self._start.update((name, signature) for name, signature in unsure.items() if name not in other)
        return tree

    def left_out(self) -> dict[str, str]:
        """Return the new files that do not count, or folders with a slash at the end, with the reason."""
        found = {name: reason for name, reason in self._new() if reason}
        inside = [name for name in self._submodules if (self._root / name).is_dir() and os.listdir(self._root / name)]
        found |= dict.fromkeys(inside, "in a submodule")
        exclude = f"--exclude-from={self._git.git_dir / 'info' / 'exclude'}"
        for rules, reason in ((exclude, "build dropping"), ("--exclude-per-directory=.gitignore", "ignored")):
            for name in self._others("--ignored", "--directory", rules):
                found.setdefault(name, reason)
        return found

    def _look(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the files of the start that are there, in folders of the start that are folders still."""
        real = {""}
        for folder, names in self._folders.items():
            if folder not in real:
                continue
            place = os.path.join(self._root, folder)
            with suppress(FileNotFoundError, NotADirectoryError):  # gone meanwhile
                _make_readable(Path(place), folder=True)
                for entry in os.scandir(place):
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.name in names:
                        with suppress(FileNotFoundError):
                            yield name, entry.stat(follow_symlinks=False)
                    if name in self._folders and entry.is_dir(follow_symlinks=False):
                        real.add(name)

    def _new(self) -> Iterator[tuple[str, str]]:
        """Yield the files that git does not ignore and that are not of the start, with the reason to leave them out."""
        for name in self._others("--exclude-standard"):
            if name.endswith("/"):  # a repository that was made in there: its files are files as others
                yield from ((inner, self._reason(inner)) for inner in self._below(name[:-1]))
            elif name not in self._start and not name.startswith(self._submodules):
                yield name, self._reason(name)

    def _others(self, *options: str) -> list[str]:
        git = replace(self._git, seconds=PATIENCE)
        names = git("ls-files", "--others", "-z", *options, GIT_INDEX_FILE=self._start_index).split(b"\0")[:-1]
        return [os.fsdecode(name) for name in names]

    def _below(self, top: str) -> Iterator[str]:
        for folder, below, here in os.walk(self._root / top):
            inner = os.path.relpath(folder, self._root)
            links = [name for name in below if os.path.islink(os.path.join(folder, name))]
            names = [f"{inner}/{name}" for name in (*here, *links)]
            yield from (name for name in names if not self._droppings.match(name))
            below[:] = [name for name in below if name not in links and inner.count("/") < MAX_FOLDERS]
            below[:] = [name for name in below if not self._droppings.match(f"{inner}/{name}", folder=True)]
            below[:] = [name for name in below if not _REFUSED.fullmatch(name)]

    def _reason(self, name: str) -> str:
        parts = name.split("/")
        if any(_REFUSED.fullmatch(part) for part in parts):
            return "git's own"
        if len(parts) > MAX_FOLDERS or len(os.fsencode(name)) > MAX_NAME:
            return "too deep in folders"
        try:
            status = os.lstat(self._root / name)
        except (FileNotFoundError, NotADirectoryError):
            return "gone meanwhile"
        if parts[-1].casefold() == ".gitmodules" and stat.S_ISLNK(status.st_mode):
            return "a link that git refuses"
        if not _counts(status):
            return "no file"
        return "larger than 100 MB" if status.st_size > MAX_NEW else ""


def _counts(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)


def _make_readable(place: Path, *, folder: bool = False) -> None:
    """Give the owner of a file or folder back what a command took away."""
    mode, needed = os.lstat(place).st_mode, 0o700 if folder else 0o400
    if mode & needed != needed and not stat.S_ISLNK(mode):
        place.chmod(stat.S_IMODE(mode) | needed)


def _signature(status: os.stat_result, now: int) -> _Signature | None:
    """Return what tells a change of a file; None where it changed so lately that the next change may look the same.

    The time of the last change of its status cannot be set by a program, unlike that of its content.
    """
    changed = status.st_ctime_ns
    if changed + (_TICK if changed % 1_000_000_000 else _COARSE_TICK) >= now:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns, changed, status.st_mode)
