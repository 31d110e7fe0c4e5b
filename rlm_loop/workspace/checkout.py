"""A throw-away git checkout: read, search, edit, run, and the patch of what came of it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rlm_loop.repl.host.clearing import remove
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.tools.code import CodeTools
from rlm_loop.tools.processes import Finished, run_group
from rlm_loop.workspace import patches, trees
from rlm_loop.workspace.files import Files
from rlm_loop.workspace.git import Git, WorkspaceError, prepare
from rlm_loop.workspace.patches import Patch
from rlm_loop.workspace.patterns import DROPPINGS, TEST_FILES, Patterns
from rlm_loop.workspace.sources import Source, recognise


class Workspace(CodeTools):
    """A git checkout in a temporary folder, removed when closed (or with the object), and the code tools for its files.

    `source` maps file names to text or bytes, or is one of

    - a folder: all its files;
    - a git repository with its files: these as they lie there now, committed or not, without ignored ones;
      with `commit` (any name git knows, such as a tag), the files of that commit, byte for byte;
    - a bare repository, such as a mirror: the files of `commit`, by default of its HEAD.

    Nothing is ever written back to it, and once the workspace is there it no longer needs the source.  `root` is
    the folder, `base` the git tree id of the start, `commit` the full id of the commit it came from ("" for none),
    `submodules` names the folders that belong to other repositories, which are left empty.  In there git knows
    one commit, the start: later history, with the fix that a task asks for, is not to be found.

    Raises `WorkspaceError`, in one line, for a source that is no such thing, an unknown commit, and where git is
    missing or the disk is full.
    """

    def __init__(self, source: Source, *, commit: str | None = None, droppings: Iterable[str] = DROPPINGS) -> None:
        origin = recognise(source, commit)
        top = Path(tempfile.mkdtemp(prefix="rlm-workspace-")).resolve()
        self._removed = weakref.finalize(self, _remove_own, top, os.getpid())
        (top / "work").mkdir()
        super().__init__(top / "work")
        self.commit = origin.commit
        # Both repositories lie outside of the folder, so that nothing done in there can spoil the patch: one of
        # ours, with all objects, and one for git as it is run in the folder, which only borrows them.
        self._own, theirs = Git(top / "own", self.root), Git(top / "repository", self.root)
        try:
            for git in (self._own, theirs):
                prepare(git, f"--object-format={origin.object_format}")
            self.submodules = tuple(origin.fill(self._own, self.root))
            self.base = self._own("write-tree").decode().strip()
            _show_start(self._own, theirs, self.base)
            self._files = Files(self._own, self.base, droppings, self.submodules)
        except OSError as error:
            self.close()
            raise WorkspaceError(f"the workspace could not be made: {error}") from None
        except BaseException:
            self.close()
            raise

    def run(self, command: str | Sequence[str], timeout: float = 60.0) -> Finished:
        """Run a command in the folder; on timeout its process group is killed and its output kept."""
        return run_group(command, cwd=self.root, timeout=timeout)

    def diff(self, since: str = "", until: str = "") -> str:
        """Return the patch from one snapshot to another, by default from the start to now; empty for no change.

        New, deleted and binary files, modes and links are in it, tests with them; what running the code left
        behind, and new files that a `.gitignore` names, are not.
        """
        return patches.render(self._own, since or self.base, until or self.snapshot())

    def patch(self, *, tests: bool = False, test_files: Iterable[str] = TEST_FILES) -> Patch:
        """Return the patch from the start to now as one would hand it in: without test files unless asked.

        `test_files` are patterns in the manner of `.gitignore`.  It was applied to a clean copy of the start and
        gave just these files; what was left out is listed.  Raises `WorkspaceError` where it did not.
        """
        now = self.snapshot()
        return patches.compose(self._own, self.base, now, Patterns(() if tests else test_files), self._files.left_out)

    def apply(self, patch: str) -> None:
        """Apply a patch; `WorkspaceError` says why it does not fit, and nothing is changed then."""
        if patch.strip():
            self.root.mkdir(exist_ok=True)
            whole = patch if patch.endswith("\n") else patch + "\n"
            try:
                data = whole.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                raise WorkspaceError("the patch holds half of a surrogate pair, which no file can hold") from None
            self._own("apply", "--whitespace=nowarn", "-", stdin=data)

    def snapshot(self) -> str:
        """Return the git tree id of the files now: equal for equal contents, and kept until the workspace is closed.

        Only files that changed since the start are read.
        """
        if not self._own.git_dir.is_dir():
            raise WorkspaceError("the workspace is closed: open a new one")
        try:
            self.root.mkdir(exist_ok=True)  # without its folder all files are gone, and the patch says so
            return self._files.tree()
        except OSError as error:
            raise WorkspaceError(f"the workspace cannot be read: {error}") from None

    def hashes_between(self, before: str, after: str) -> dict[str, tuple[str, str]]:
        """Return git's hashes of the files that differ between two snapshots, by name; an empty one means no file."""
        changes = trees.differences(self._own, before, after).items()
        named = {os.fsencode(name).decode("utf-8", "replace"): blobs for name, blobs in changes}
        return {n: (old.id.strip("0") and old.id, new.id.strip("0") and new.id) for n, (old, new) in named.items()}

    def close(self) -> None:
        """Remove the folder; closing twice is fine."""
        with shielded():
            self._removed()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _remove_own(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # else a forked copy of the process is ending: the folder is not its own
        remove(folder)


def _show_start(own: Git, theirs: Git, start: str) -> None:
    """Let git, run in the folder, see one commit, the start, whose objects it reads from ours."""
    commit = own("commit-tree", start, "-m", "start").decode().strip()
    borrowed = theirs.git_dir / "objects" / "info" / "alternates"
    borrowed.parent.mkdir(exist_ok=True)
    borrowed.write_text("../../own/objects\n")
    theirs("update-ref", "HEAD", commit)
    shutil.copyfile(own.git_dir / "index", theirs.git_dir / "index")
    assert theirs.work_tree is not None
    (theirs.work_tree / ".git").write_text(f"gitdir: {theirs.git_dir}\n")
