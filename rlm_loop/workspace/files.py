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
from collections.abc import Iterable, Sequence
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

_SUBMODULE = "in a submodule"

_Signature = tuple[int, int, int, int, int]


class Files:
    """Finds the files that count: those of the start, and new ones that are neither ignored nor droppings.

    So the tree depends on the files alone, not on how they came about.  `left_out` are the other new files of the last
    look, or folders with a slash at the end, each with the reason.
    """

    def __init__(self, git: Git, base: str, droppings: Iterable[str], submodules: Iterable[str]) -> None:
        assert git.work_tree is not None
        self._root, self._git, self._base = git.work_tree, git, base
        self._start_index, self._index = (str(git.git_dir / name) for name in ("start", "now"))
        self._droppings, self._submodules = Patterns(droppings), frozenset(submodules)
        self.left_out: dict[str, str] = {}
        git("read-tree", base, GIT_INDEX_FILE=self._start_index)  # without times: what it is asked to look at, it reads
        lines = git("ls-files", "-s", "-z", GIT_INDEX_FILE=self._start_index).split(b"\0")[:-1]
        names = [os.fsdecode(line.partition(b"\t")[2]) for line in lines if not line.startswith(SUBMODULE.encode())]
        self._start: dict[str, _Signature | None] = dict.fromkeys(names)
        self._folders = {name[:at] for name in names for at, sign in enumerate(name) if sign == "/"}
        now = time.time_ns()
        self._start.update((n, _signature(s, now)) for n, s in self._look().items() if n in self._start)

    def tree(self) -> str:
        """Return the id of the tree of the files now; raise `WorkspaceError` where the folder is a link."""
        if self._root.is_symlink():
            raise WorkspaceError(f"{self._root} was replaced by a link: open a new workspace")
        now = time.time_ns()
        seen = self._look()
        signed = {name: _signature(status, now) for name, status in seen.items() if name in self._start}
        changed = [name for name, signature in signed.items() if signature is None or signature != self._start[name]]
        new = [name for name in seen if name not in self._start]
        gone = self._start.keys() - seen.keys()
        if not (changed or new or gone):
            return self._base
        for name in (*changed, *new):
            with suppress(FileNotFoundError, NotADirectoryError):
                _make_readable(self._root / name)
        shutil.copyfile(self._start_index, self._index)
        for option, names in (("--force-remove", gone), ("--add", [*changed, *new])):
            if names:
                options = (option, "--remove", "--replace", "-z", "--stdin")
                self._git("update-index", *options, stdin=listed(names), GIT_INDEX_FILE=self._index)
        tree = self._git("write-tree", GIT_INDEX_FILE=self._index).decode().strip()
        unsure = {name: signed[name] for name in changed if self._start[name] is None and signed[name] is not None}
        if unsure:  # what was too new to be known by its times is so no more, where it is as it was
            other = differences(self._git, self._base, tree)
            self._start.update((name, signature) for name, signature in unsure.items() if name not in other)
        return tree

    def _look(self) -> dict[str, os.stat_result]:
        """Return the files that count, through no link; note what is left out."""
        seen: dict[str, os.stat_result] = {}
        level = [""]  # folders that lie equally deep: of those that are ignored nothing is read
        self.left_out = {}
        while level:
            folders, new = list[str](), list[str]()
            for folder in level:
                with suppress(FileNotFoundError, NotADirectoryError):  # gone meanwhile
                    _make_readable(self._root / folder, folder=True)
                    for entry in os.scandir(self._root / folder):
                        name = f"{folder}/{entry.name}" if folder else entry.name
                        with suppress(FileNotFoundError):
                            status = entry.stat(follow_symlinks=False)
                            inner = stat.S_ISDIR(status.st_mode)
                            known = name in (self._folders if inner else self._start)
                            if reason := "" if known else self._reason(name, status):
                                empty = reason == _SUBMODULE and not os.listdir(entry.path)
                                self.left_out |= {} if empty else {f"{name}/" if inner else name: reason}
                                continue
                            new += [] if known else [name]
                            if inner:
                                folders.append(name)
                            elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                                seen[name] = status
            ignored = self._ignored(new)
            self.left_out |= {name if seen.pop(name, None) else f"{name}/": "ignored" for name in ignored}
            level = [name for name in folders if name not in ignored]
        self.left_out = {name: reason for name, reason in self.left_out.items() if name.rstrip("/") != ".git"}
        return seen

    def _ignored(self, names: Sequence[str]) -> set[str]:
        """Return those of these names that a `.gitignore` covers."""
        if not names:
            return set()
        git = replace(self._git, seconds=PATIENCE)
        asked = listed(f"./{name}" for name in names)  # a name may begin with a colon
        answer = git("check-ignore", "--no-index", "-z", "--stdin", stdin=asked, also=(1,))
        return {os.fsdecode(name)[2:] for name in answer.split(b"\0")[:-1]}

    def _reason(self, name: str, status: os.stat_result) -> str:
        """Return why a new file does not count, or why a new folder is not looked into; else nothing."""
        folder, last = stat.S_ISDIR(status.st_mode), name.rpartition("/")[2]
        if _REFUSED.fullmatch(last):
            return "git's own"
        if name in self._submodules:
            return _SUBMODULE
        if name.count("/") + folder > MAX_FOLDERS or len(os.fsencode(name)) > MAX_NAME:
            return "too deep in folders"
        if self._droppings.match(name, folder=folder):
            return "build dropping"
        if folder:
            return ""
        if last.casefold() == ".gitmodules" and stat.S_ISLNK(status.st_mode):
            return "a link that git refuses"
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            return "no file"
        return "larger than 100 MB" if status.st_size > MAX_NEW else ""


def listed(names: Iterable[str]) -> bytes:
    """Return names as git reads them with `-z --stdin`."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)


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
