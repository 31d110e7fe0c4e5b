"""A throw-away git checkout: read, search, edit, run, and the patch of what came of it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rlm_loop.repl.host.clearing import remove
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.tools.code import CodeTools
from rlm_loop.tools.processes import Finished, watch
from rlm_loop.workspace.files import Files
from rlm_loop.workspace.git import Git, WorkspaceError, prepare
from rlm_loop.workspace.sources import Source, lay_out
from rlm_loop.workspace.trees import applied, differences, lay, render


class Workspace(CodeTools):
    """A git checkout in a temporary folder, removed when closed (or with the object), and the code tools for its files.

    `source` maps file names to text or bytes, or is one of

    - a folder: all its files;
    - a git repository with its files: these as they lie there now, committed or not, without ignored ones;
      with `commit` (any name git knows, such as a tag), the files of that commit, byte for byte;
    - a bare repository, such as a mirror: the files of `commit`, by default of its HEAD.

    Nothing is ever written back to it, and once the workspace is there it no longer needs the source.  `root` is
    the folder, `base` the git tree id of the start, `commit` the full id of the commit it came from ("" for none).
    Submodules are left empty.  In there git knows one commit, the start: later history, with the fix that a task asks
    for, is not to be found.

    Raises `WorkspaceError`, in one line, for a source that is no such thing, an unknown commit, and where git is
    missing or the disk is full.
    """

    def __init__(self, source: Source, *, commit: str | None = None) -> None:
        top = Path(tempfile.mkdtemp(prefix="rlm-workspace-")).resolve()
        self._removed = weakref.finalize(self, _remove_own, top, os.getpid())
        (top / "work").mkdir()
        super().__init__(top / "work")
        # Both repositories lie outside of the folder, so that nothing done in there can spoil the patch: one of
        # ours, with all objects, and one for git as it is run in the folder, which only borrows them.
        self._own, theirs = Git(top / "own", self.root), Git(top / "repository", self.root)
        try:
            for git in (self._own, theirs):
                prepare(git)
            self.commit = lay_out(source, commit, self._own, self.root)
            self.base = self._own("write-tree").decode().strip()
            _show_start(self._own, theirs, self.root, self.base)
            self._files = Files(self._own, self.root)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise WorkspaceError(f"the workspace could not be made: {error}") from None
            raise

    def run(self, command: str | Sequence[str], timeout: float = 60.0) -> Finished:
        """Run a command in the folder; on timeout its process group is killed and its output kept."""
        return watch(command, cwd=self.root, timeout=timeout)

    def diff(self, since: str = "", until: str = "") -> str:
        """Return the patch from one snapshot to another, by default from the start to now; empty for no change.

        New, deleted and binary files, modes and links are in it, tests with them; what running the code left
        behind, new files that a `.gitignore` names, and those of more than 100 MB, are not.
        """
        return render(self._own, since or self.base, until or self.snapshot())

    def apply(self, patch: str) -> None:
        """Apply a patch; `WorkspaceError` says why it does not fit, and nothing is changed then."""
        now = self.snapshot()
        lay(self._own, now, applied(self._own, now, patch))

    def snapshot(self) -> str:
        """Return the git tree id of the files now: equal for equal contents, and kept until the workspace is closed.

        Only files that changed since the last one are read.
        """
        if not self._own.git_dir.is_dir():
            raise WorkspaceError("the workspace is closed: open a new one")
        self.root.mkdir(exist_ok=True)  # without its folder all files are gone, and the patch says so
        return self._files.tree()

    def hashes_between(self, before: str, after: str) -> dict[str, tuple[str, str]]:
        """Return git's hashes of the files that differ between two snapshots, by name; an empty one means no file."""
        changes = differences(self._own, before, after).items()
        named = {os.fsencode(name).decode("utf-8", "replace"): blobs for name, blobs in changes}
        return {n: (old.id.strip("0") and old.id, new.id.strip("0") and new.id) for n, (old, new) in named.items()}

    def close(self) -> None:
        """Remove the folder; closing twice is fine."""
        with shielded():
            self._removed()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove_own(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # else a forked copy of the process is ending: the folder is not its own
        remove(folder)


def _show_start(own: Git, theirs: Git, root: Path, start: str) -> None:
    """Let git, run in the folder, see one commit, the start, whose objects it reads from ours."""
    commit = own("commit-tree", start, "-m", "start").decode().strip()
    (theirs.git_dir / "objects" / "info").mkdir(exist_ok=True)
    (theirs.git_dir / "objects" / "info" / "alternates").write_text("../../own/objects\n")
    theirs("update-ref", "HEAD", commit)
    shutil.copyfile(own.git_dir / "index", theirs.git_dir / "index")
    (root / ".git").write_text(f"gitdir: {theirs.git_dir}\n")
