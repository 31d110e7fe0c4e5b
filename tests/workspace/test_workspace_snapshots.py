"""Snapshots: equal for equal files, whatever the way there; nothing that a command does to the folder spoils them."""

from __future__ import annotations

import subprocess
import sys

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
        assert one.run("mkdir new; touch late.txt new/deep.txt").ok
        assert one.snapshot() != one.base
        for space in (one, other):
            (space.root / ".gitignore").write_text("*.log\n*.txt\n")
            assert space.run("mkdir -p new; touch late.txt new/deep.txt").ok
        assert one.snapshot() == other.snapshot()
        (one.root / ".gitignore").write_text("*.log\n")
        assert names(one) == {*FILES, "late.txt", "new/deep.txt"}
        (one.root / "a.py").unlink()
        (one.root / ".gitignore").write_text("*\n")
        (one.root / "a.py").write_text("x = 1\n")  # of the start: no rule hides it
        assert list(one.hashes_between(one.base, one.snapshot())) == [".gitignore"]


SOCKET = f"""{sys.executable} -c 'import socket; socket.socket(socket.AF_UNIX).bind("s")'"""
ALL = {*FILES}
#: What a command does to the folder, and the files that are there then.
HARMS: dict[str, tuple[str, set[str]]] = {
    "pipes and a socket": (f"mkfifo pipe; rm pkg/b.py; mkfifo pkg/b.py; {SOCKET}", {"a.py", "pkg/c.py", ".gitignore"}),
    "repositories": ("mkdir inner; echo n > inner/new.py; git init -q inner; git init -q pkg", ALL | {"inner/new.py"}),
    "a git of its own": ("rm .git; git init -q; git add -A", ALL),
    "unreadable files": ("echo n > new.py; chmod 0 pkg/b.py pkg", ALL | {"new.py"}),
    "links": (
        "rm -r pkg .gitignore; ln -s /etc pkg; ln -s loop loop; ln -s /etc/passwd .gitignore",
        {"a.py", "pkg", "loop", ".gitignore"},
    ),
    "odd names": ("mkdir 'pkg/.GIT '; touch 'git~1' 'pkg/.GIT /x'", ALL),
    "all gone": ('rm -r "$(pwd -P)"', set()),
    "a folder gone": ("rm -r pkg", {"a.py", ".gitignore"}),
}


@pytest.mark.parametrize(("harm", "files"), HARMS.values(), ids=HARMS)
def test_nothing_that_a_command_leaves_behind_stops_a_snapshot(harm: str, files: set[str]) -> None:
    with Workspace(FILES) as space:
        subprocess.run(f"set -e; {harm}", shell=True, cwd=space.root, check=True)
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


def test_snapshots_are_kept_and_compared_and_a_large_new_file_is_left_out() -> None:
    with Workspace(FILES) as space:
        with open(space.root / "core", "wb") as file:
            file.truncate(101_000_000)
        assert space.snapshot() == space.base
        (space.root / "a.py").write_text("x = 2\n")
        middle = space.snapshot()
        (space.root / "a.py").unlink()
        assert "deleted file" in space.diff(middle)
        assert "+x = 2" in space.diff(until=middle)


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
