"""What the files of a workspace are now, as git's blobs.  Only what changed since the last look is read.

`git add` would do this too, but stops at a file that may not be read and at a repository made inside, and takes for
unchanged what changed twice within a second.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlm_loop.workspace import objects
from rlm_loop.workspace.git import Git, WorkspaceError
from rlm_loop.workspace.objects import Blob, BlobStore
from rlm_loop.workspace.patterns import Patterns

MAX_NEW = 100_000_000  # bytes; a larger new file is data, and no part of a patch
MAX_FOLDERS = 64  # that a new file may lie in, one in the other: git is asked once for each level
MAX_NAME = 3_000  # bytes of a name with its folders; the system opens no path of 4,096
PATIENCE = 20.0  # seconds for git to say what is ignored; it can take for ever over a pattern with many `**`
_REFUSED = re.compile(r"(\.git|git~1)[ .]*([:\\].*)?", re.IGNORECASE | re.DOTALL)  # git takes them for its own
_TICK = 50_000_000  # ns that the clock of a file system may lag behind ours
_COARSE_TICK = 2_100_000_000  # where it counts whole seconds

_SUBMODULE = "in a submodule"
_UNREADABLE = "may not be read"

_Signature = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Files:
    """The files that count, by name, and why others do not: a file, or a folder with a slash at its end."""

    blobs: Mapping[str, Blob]
    left_out: Mapping[str, str]

    def seen(self) -> dict[str, Blob]:
        """Without the files that may not be read, which were taken for what they had been."""
        hidden = [place for place, reason in self.left_out.items() if reason == _UNREADABLE]
        if not hidden:
            return dict(self.blobs)
        return {
            name: blob
            for name, blob in self.blobs.items()
            if not any(
                name == place or place == "/" or (place[-1] == "/" and name.startswith(place)) for place in hidden
            )
        }


@dataclass
class _Look:
    """One walk through the folder: what was found, and what is still to be looked at."""

    now: int = field(default_factory=time.time_ns)
    statuses: dict[str, os.stat_result] = field(default_factory=dict[str, os.stat_result])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    rules: dict[str, _Signature | None] = field(default_factory=dict[str, "_Signature | None"])
    unseen: list[str] = field(default_factory=list[str])  # folders that may not be read
    folders: list[str] = field(default_factory=lambda: [""])
    unsure: dict[str, os.stat_result] = field(default_factory=dict[str, os.stat_result])  # git has to be asked


class Scanner:
    """Looks at the files below `git.work_tree`, and stores what is new of them.

    Files of the start (`begin`) always count; others unless they match `droppings`, are ignored by a `.gitignore`
    as it is now, or lie in a submodule.  So what is found depends on the files alone, not on how they came about.
    """

    def __init__(self, git: Git, store: BlobStore, droppings: Patterns, submodules: Iterable[str] = ()) -> None:
        assert git.work_tree is not None
        self._root, self._store, self._droppings = git.work_tree, store, droppings
        self._git = replace(git, seconds=PATIENCE)
        self._submodules = frozenset(submodules)
        self._start: frozenset[str] | None = None  # None: all that is there belongs to the start
        self._start_folders: frozenset[str] = frozenset()
        self._known: dict[str, tuple[Blob, _Signature | None]] = {}
        self._ignored: dict[str, bool] = {}
        self._rules: dict[str, _Signature | None] = {}

    def begin(self, stored: Mapping[str, Blob]) -> Files:
        """The files of the start; contents of those in `stored` are known and need not be read."""
        self._known = {name: (blob, None) for name, blob in stored.items()}
        look = self._look()
        for name, status in look.statuses.items():
            if name in stored:
                self._known[name] = (stored[name], _signature(status, look.now))
        found = self._blobs(look, trusted=stored)
        self._start = frozenset(found)
        self._start_folders = frozenset(_folders(found))
        return Files(found, look.left_out)

    def scan(self) -> Files:
        """The files now.  Raises `WorkspaceError` where the folder itself was replaced by a link."""
        look = self._look()
        if self._ignored and (look.rules != self._rules or None in look.rules.values()):
            self._ignored.clear()  # the rules may be other ones than those that these verdicts came from
            look = self._look()
        self._rules = look.rules
        return Files(self._blobs(look), look.left_out)

    def _look(self) -> _Look:
        look = _Look()
        if self._root.is_symlink():
            raise WorkspaceError(f"{self._root} was replaced by a link: open a new workspace")
        while look.folders:
            while look.folders:
                self._enter(look.folders.pop(), look)
            self._ask(look.unsure)
            asked, look.unsure = look.unsure, {}
            for name, status in asked.items():
                self._sort(name, status, look)
        return look

    def _enter(self, folder: str, look: _Look) -> None:
        start = self._start or frozenset[str]()
        try:
            with os.scandir(os.path.join(self._root, folder)) as entries:
                for entry in entries:
                    if not folder and entry.name == ".git":
                        continue  # where git, run in here, finds its repository
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    status = entry.stat(follow_symlinks=False)
                    if name in start and stat.S_ISREG(status.st_mode) and entry.name != ".gitignore":
                        look.statuses[name] = status  # nearly all are such files, so they are dealt with fast
                        continue
                    if entry.name == ".gitignore":
                        look.rules[name] = _signature(status, look.now)
                    self._sort(name, status, look)
        except (FileNotFoundError, NotADirectoryError):
            pass  # gone meanwhile
        except PermissionError:
            look.left_out[f"{folder}/"] = _UNREADABLE
            look.unseen.append(f"{folder}/" if folder else "")

    def _sort(self, name: str, status: os.stat_result, look: _Look) -> None:
        folder = stat.S_ISDIR(status.st_mode)
        reason = self._reason(name, status, folder)
        if reason is None:
            look.unsure[name] = status
        elif reason == _SUBMODULE and folder and not _anything_in(self._root / name):
            pass
        elif reason:
            look.left_out[f"{name}/" if folder else name] = reason
        elif folder:
            look.folders.append(name)
        else:
            look.statuses[name] = status

    def _reason(self, name: str, status: os.stat_result, folder: bool) -> str | None:
        """Why this does not count; "" where it does, None where git has to be asked."""
        last = name.rpartition("/")[2]
        if _REFUSED.fullmatch(last):
            return "git's own"
        if name in self._submodules:
            return _SUBMODULE
        if not folder and not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            return "no file"
        if last.casefold() == ".gitmodules" and stat.S_ISLNK(status.st_mode):
            return "a link that git refuses"
        if self._start is None or name in (self._start_folders if folder else self._start):
            return ""
        if name.count("/") > MAX_FOLDERS or (len(name) > MAX_NAME // 4 and len(os.fsencode(name)) > MAX_NAME):
            return "too deep in folders"
        if self._droppings.match(name, folder=folder):
            return "build dropping"
        if not folder and status.st_size > MAX_NEW:
            return "larger than 100 MB"
        ignored = self._ignored.get(name)
        return None if ignored is None else "ignored" if ignored else ""

    def _ask(self, names: Iterable[str]) -> None:
        asked = [os.fsencode(name) for name in names]
        if asked:
            given = b"".join(b"./" + name + b"\0" for name in asked)
            said = set(self._git("check-ignore", "--no-index", "-z", "--stdin", stdin=given, also=(1,)).split(b"\0"))
            self._ignored.update((os.fsdecode(name), b"./" + name in said) for name in asked)

    def _blobs(self, look: _Look, trusted: Mapping[str, Blob] | None = None) -> dict[str, Blob]:
        known: dict[str, tuple[Blob, _Signature | None]] = {}
        for name, status in look.statuses.items():
            entry = self._known.get(name)
            if entry is not None and (trusted or (entry[1] is not None and entry[1] == _signature(status, look.now))):
                known[name] = entry
                continue
            try:
                found = objects.read(self._root, name)
            except PermissionError:
                look.left_out[name] = _UNREADABLE
                if entry is not None:
                    known[name] = (entry[0], None)
                continue
            if found is not None:
                mode, content, status = found
                known[name] = (Blob(mode, self._store.add(content)), _signature(status, look.now))
        for folder in look.unseen:
            known.update((name, (old[0], None)) for name, old in self._known.items() if name.startswith(folder))
        self._known = known
        return {name: blob for name, (blob, _) in known.items()}


def _anything_in(folder: Path) -> bool:
    try:
        return bool(os.listdir(folder))
    except OSError:
        return True


def _signature(status: os.stat_result, now: int) -> _Signature | None:
    """What tells a change of a file; None where it changed so lately that the next change may look the same.

    The time of the last change of its status cannot be set by a program, unlike that of its content.
    """
    changed = status.st_ctime_ns
    if changed + (_TICK if changed % 1_000_000_000 else _COARSE_TICK) >= now:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns, changed, status.st_mode)


def _folders(names: Iterable[str]) -> set[str]:
    """All folders that the files lie in, outer ones with them."""
    above: set[str] = set()
    for name in names:
        while (name := name.rpartition("/")[0]) and name not in above:
            above.add(name)
    return above
