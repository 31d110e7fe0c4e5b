"""Snapshots: equal for equal files, whatever the way there; nothing that a command does to the folder spoils them."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from files_on_disk import git

from rlm_loop.workspace import Workspace, WorkspaceError

FILES: dict[str, str | bytes] = {"a.py": "x = 1\n", "pkg/b.py": "y = 1\n", "pkg/c.py": "z\n", ".gitignore": "*.log\n"}


def names(space: Workspace) -> set[str]:
    """The files of a snapshot."""
    listed = git(space.root.parent / "own", "ls-tree", "-r", "-z", "--name-only", space.snapshot())
    return {*listed.split("\0")} - {""}


def test_a_change_in_the_same_instant_and_of_the_same_size_is_seen() -> None:
    with Workspace(FILES) as space:
        seen = {space.snapshot()}
        for digit in range(2, 9):
            (space.root / "a.py").write_text(f"x = {digit}\n")
            seen.add(space.snapshot())
        assert len(seen) == 8


def test_the_way_to_the_files_does_not_matter() -> None:
    """Ignored files count by the rules as they are now, not as they were when the files came."""
    with Workspace(FILES) as one, Workspace(FILES) as other:
        (one.root / "late.txt").write_text("x")
        (one.root / "new").mkdir()
        (one.root / "new" / "deep.txt").write_text("x")
        assert one.snapshot() != one.base
        for space in (one, other):
            (space.root / "late.txt").write_text("x")
            (space.root / ".gitignore").write_text("*.log\n*.txt\n")
            (space.root / "new").mkdir(exist_ok=True)
            (space.root / "new" / "deep.txt").write_text("x")
        assert one.snapshot() == other.snapshot()
        with_rules = one.snapshot()
        (one.root / ".gitignore").write_text("*.log\n")
        assert names(one) == {*FILES, "late.txt", "new/deep.txt"}
        (one.root / ".gitignore").write_text("*.log\n*.txt\n")
        assert one.snapshot() == with_rules
        (one.root / "a.py").unlink()
        (one.root / ".gitignore").write_text("*\n")
        (one.root / "a.py").write_text("x = 1\n")  # of the start: no rule hides it
        assert list(one.hashes_between(one.base, one.snapshot())) == [".gitignore"]


def _pipe(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "pkg" / "b.py").unlink()
    os.mkfifo(root / "pkg" / "b.py")
    server = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(root)
    server.bind("s")
    os.chdir(here)
    server.close()


def _repository(root: Path) -> None:
    (root / "inner").mkdir()
    (root / "inner" / "new.py").write_text("n\n")
    assert os.system(f"cd {root}/inner && git init -q") == 0
    assert os.system(f"cd {root}/pkg && git init -q") == 0


def _own_git(root: Path) -> None:
    (root / ".git").unlink()
    assert os.system(f"cd {root} && git init -q && git add -A") == 0


def _unreadable(root: Path) -> None:
    (root / "new.py").write_text("n\n")
    (root / "pkg" / "b.py").chmod(0)
    (root / "pkg").chmod(0)


def _links(root: Path) -> None:
    shutil.rmtree(root / "pkg")
    (root / "pkg").symlink_to("/etc")
    (root / "loop").symlink_to("loop")
    (root / ".gitignore").unlink()
    (root / ".gitignore").symlink_to("/etc/passwd")


def _odd_names(root: Path) -> None:
    (root / "git~1").write_text("x")
    (root / "pkg" / ".GIT ").mkdir()
    (root / "pkg" / ".GIT " / "x").write_text("x")


@pytest.mark.parametrize(
    ("harm", "files"),
    [
        (_pipe, {"a.py", "pkg/c.py", ".gitignore"}),
        (_repository, {*FILES, "inner/new.py"}),
        (_own_git, {*FILES}),
        (_unreadable, {*FILES, "new.py"}),
        (_links, {"a.py", "pkg", "loop", ".gitignore"}),
        (_odd_names, {*FILES}),
        (lambda root: shutil.rmtree(root), set()),
        (lambda root: shutil.rmtree(root / "pkg"), {"a.py", ".gitignore"}),
    ],
)
def test_nothing_that_a_command_leaves_behind_stops_a_snapshot(harm: Callable[[Path], None], files: set[str]) -> None:
    with Workspace(FILES) as space:
        harm(space.root)
        assert names(space) == files
        with Workspace(FILES) as clean:
            clean.apply(space.diff())
            assert clean.snapshot() == space.snapshot()


def test_a_folder_that_was_replaced_by_a_link_is_not_read() -> None:
    with Workspace(FILES) as space:
        outside = space.root.parent / "work2"
        space.root.rename(outside)
        space.root.symlink_to(outside)
        with pytest.raises(WorkspaceError, match="replaced by a link"):
            space.snapshot()


def test_snapshots_are_kept_and_compared() -> None:
    with Workspace(FILES) as space:
        (space.root / "a.py").write_text("x = 2\n")
        (space.root / "n").symlink_to("a.py")
        middle = space.snapshot()
        (space.root / "a.py").unlink()
        (space.root / "cache.log").write_text("kept")
        late = space.snapshot()
        assert "deleted file" in space.diff(middle)
        assert "+x = 2" in space.diff(until=middle)
        assert space.diff(late, late) == ""
    for closed in (space.snapshot, space.diff):
        with pytest.raises(WorkspaceError, match="closed"):
            closed()


def test_a_large_new_file_is_left_out() -> None:
    with Workspace(FILES) as space:
        with open(space.root / "core", "wb") as file:
            file.truncate(101_000_000)
        assert space.snapshot() == space.base


DEEP = "import os\nfor _ in range(1500):\n    os.mkdir('d'); os.chdir('d')\nopen('bottom', 'w').write('x')"


@pytest.mark.slow
def test_folders_of_any_depth_are_bounded_in_time_and_make_room() -> None:
    with Workspace(FILES) as space:
        (space.root / "a.py").unlink()
        (space.root / "a.py").mkdir()  # in the way of a file of the start
        assert not space.run([sys.executable, "-c", "import os; os.chdir('a.py')\n" + DEEP]).code
        assert not space.run([sys.executable, "-c", DEEP]).code
        (space.root / ("long" * 50) / ("long" * 50)).mkdir(parents=True)
        assert FILES.keys() - names(space) == {"a.py"}
    assert not space.root.parent.exists()


def test_git_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_loop.workspace.files.PATIENCE", 0.5)
    with Workspace({"a.py": "x = 1\n"}) as space:
        (space.root / ".gitignore").write_text("/".join(["**/a"] * 20) + "/b\n")  # git tries exponentially many ways
        (space.root / ("a/" * 60)).mkdir(parents=True)
        with pytest.raises(WorkspaceError, match="git ls-files took more than"):
            space.snapshot()
