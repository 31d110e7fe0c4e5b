"""A throw-away git checkout: read, search, edit, run, and the diff of what came of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rlm_loop import code_tools
from rlm_loop.processes import Finished, child_environment, run_group

#: No configuration, hook, signature, identity or clock of the machine has a say in a checkout.
_GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "rlm-loop",
    "GIT_AUTHOR_EMAIL": "rlm-loop@localhost",
    "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "rlm-loop",
    "GIT_COMMITTER_EMAIL": "rlm-loop@localhost",
    "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
    "LC_ALL": "C",
}
_PLAIN = "* -text -eol -filter -ident -working-tree-encoding\n"  # bytes are kept as they are
_IGNORED = "__pycache__/\n*.pyc\n.pytest_cache/\n"  # left by running the code, no part of a patch


class WorkspaceError(Exception):
    """A checkout could not be made or used: git is missing or failed, a patch does not apply."""


class Workspace:
    """A git checkout in a temporary folder, removed when closed (or with the object).

    `source` maps file names to text or bytes, or is a local folder: of a git repository the files as they lie
    there now (ignored ones left out), else every file.  Nothing is ever written back to it.  The state at the
    start is the one commit; `root` is the folder.
    """

    def __init__(self, source: Mapping[str, str | bytes] | str | os.PathLike[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rlm-workspace-", ignore_cleanup_errors=True)
        top = Path(self._folder.name).resolve()
        self.root = top / "work"
        self._repository, self._index = top / "repository", top / "index"
        self.root.mkdir()
        try:
            if isinstance(source, Mapping):
                for name, content in source.items():
                    target = code_tools.inside(self.root, name)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(content.encode() if isinstance(content, str) else content)
            else:
                _copy(Path(source), self.root)
            # The repository lies outside of the folder, so that nothing done in there can spoil the diff.
            _git(["init", "-q", "--template=", f"--separate-git-dir={self._repository}", str(self.root)], self.root)
            (self._repository / "info").mkdir(exist_ok=True)
            (self._repository / "info" / "attributes").write_text(_PLAIN)
            (self._repository / "info" / "exclude").write_text(_IGNORED)
            self._own("add", "-A", "-f")
            self.base = self._own("write-tree").decode().strip()
            commit = self._own("commit-tree", self.base, "-m", "start").decode().strip()
            self._own("update-ref", "HEAD", commit)
            shutil.copyfile(self._index, self._repository / "index")
        except BaseException:
            self.close()
            raise

    def search_code(self, query: str) -> str:
        """Find lines that contain this text in the repository."""
        return code_tools.search(self.root, query)

    def read_file(self, path: str, start_line: int = 1, end_line: int = 0) -> str:
        """Read numbered lines of a file; end_line 0 is its end."""
        return code_tools.read(self.root, path, start_line, end_line)

    def apply_edit(self, path: str, start_line: int, end_line: int, replacement: str) -> str:
        """Replace lines start_line to end_line (inclusive) of a file.

        `end_line = start_line - 1` inserts, an empty replacement deletes.  Refused, with the file unchanged,
        where a Python file would no longer compile.
        """
        return code_tools.edit(self.root, path, start_line, end_line, replacement)

    def tools(self) -> tuple[Callable[..., str], ...]:
        """The three functions that a model is given."""
        return (self.search_code, self.read_file, self.apply_edit)

    def run(self, command: str | Sequence[str], timeout: float = 60.0) -> Finished:
        """Run a command in the folder; on timeout its process group is killed and its output kept."""
        return run_group(command, cwd=self.root, timeout=timeout)

    def diff(self) -> str:
        """The patch from the start to now, new and binary files included, for `git apply`; empty for no change."""
        now = self.snapshot()
        patch = self._own("diff-tree", "-p", "--binary", "--full-index", "--no-renames", self.base, now)
        try:
            return patch.decode("utf-8")
        except UnicodeDecodeError:  # text in another encoding: git's binary form says it in ASCII
            attributes = self._repository / "info" / "attributes"
            attributes.write_text(_PLAIN + "* -diff\n")
            try:
                patch = self._own("diff-tree", "-p", "--binary", "--full-index", "--no-renames", self.base, now)
            finally:
                attributes.write_text(_PLAIN)
            return patch.decode("ascii")

    def apply(self, patch: str) -> None:
        """Apply a patch made by `diff`; `WorkspaceError` says why it does not fit, and nothing is changed then."""
        if patch.strip():
            self._own("apply", "--whitespace=nowarn", "-", stdin=patch.encode())

    def snapshot(self) -> str:
        """The git tree id of the files now: equal for equal contents."""
        self._own("add", "-A")
        return self._own("write-tree").decode().strip()

    def changes_since(self, snapshot: str) -> dict[str, list[str]]:
        """Names of the files `added`, `changed` and `removed` since a `snapshot`."""
        listed = self._own("diff-tree", "-r", "-z", "--name-status", "--no-renames", snapshot, self.snapshot())
        fields = listed.decode("utf-8", "replace").split("\0")
        kinds = {"A": "added", "D": "removed"}
        changes: dict[str, list[str]] = {"added": [], "changed": [], "removed": []}
        for status, name in zip(fields[::2], fields[1::2], strict=False):
            changes[kinds.get(status, "changed")].append(name)
        return changes

    def close(self) -> None:
        """Remove the folder; closing twice is fine."""
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _own(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """git on the checkout, with an index of ours, so that `git add` run by a model does not touch it."""
        place = [f"--git-dir={self._repository}", f"--work-tree={self.root}"]
        return _git([*place, *arguments], self.root, stdin=stdin, GIT_INDEX_FILE=str(self._index))


def _git(arguments: Iterable[str], cwd: Path, *, stdin: bytes = b"", **env: Any) -> bytes:
    if not cwd.is_dir():
        raise WorkspaceError("the workspace is closed: open a new one")
    environment = {**child_environment(), **_GIT_ENVIRONMENT, **env}
    argv = ["git", "-c", "core.hooksPath=" + os.devnull, "-c", "init.defaultBranch=main", *arguments]
    try:
        done = subprocess.run(argv, cwd=cwd, env=environment, input=stdin, capture_output=True, check=False)
    except FileNotFoundError:
        raise WorkspaceError("workspaces need git, which was not found: install it and put it on the PATH") from None
    if done.returncode:
        reason = " ".join(done.stderr.decode("utf-8", "replace").split()) or f"exit status {done.returncode}"
        raise WorkspaceError(f"git failed: {reason[:500]}")
    return done.stdout


def _copy(source: Path, root: Path) -> None:
    if not source.is_dir():
        raise WorkspaceError(f"{source} is not a folder: give an existing folder or a mapping of files")
    if (source / ".git").exists():
        listed = _git(["ls-files", "-z", "--cached", "--others", "--exclude-standard"], source)
        names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    else:
        names = [
            os.path.relpath(os.path.join(folder, name), source)
            for folder, below, here in os.walk(source)
            for name in [*here, *(b for b in below if os.path.islink(os.path.join(folder, b)))]
            if ".git" not in Path(folder, name).relative_to(source).parts
        ]
    for name in names:
        origin = source / name
        if origin.is_symlink() or origin.is_file():
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(origin, target, follow_symlinks=False)
