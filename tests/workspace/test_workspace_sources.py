"""Workspaces from repositories, in all the states users have them in; and never a trace left in these."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from files_on_disk import Tree, commit_all, everything, git, lay_out, on_disk

from rlm_loop.workspace import Workspace, WorkspaceError

FIRST: Tree = {
    b"a.py": ("file", b"x = 1\r\n"),
    b"run.sh": ("program", b"echo hi\n"),
    b"pkg/latin\xe9.txt": ("file", b"\xe9\n"),
    b"link": ("link", b"/etc"),
    b".gitattributes": ("file", b"* text=auto eol=lf ident\n*.py working-tree-encoding=UTF-16\n"),
    b".gitignore": ("file", b"junk\n"),
    b"data.bin": ("file", bytes(range(256)) * 40),
}
SECOND: Tree = {**FIRST, b"a.py": ("file", b"x = 2 # the fix\n"), b"late.py": ("file", b"late = True\n")}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits, and on top of them a change that is staged, one that is not, a new file and an ignored one."""
    root = tmp_path / "user"
    lay_out(root, FIRST)
    git(tmp_path, "init", "-q", str(root))
    for folder in ("info", "hooks"):
        (root / ".git" / folder).mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("* -text -ident -working-tree-encoding\n")
    commit_all(root, "first")
    git(root, "tag", "v1")
    lay_out(root, SECOND)
    commit_all(root, "second")
    for hook in ("post-checkout", "post-index-change", "pre-auto-gc"):
        (root / ".git" / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {tmp_path}/hook\n")
        (root / ".git" / "hooks" / hook).chmod(0o755)
    (root / "staged.py").write_text("s = 1\n")
    git(root, "add", "staged.py")
    (root / "a.py").write_text("x = 3  # at work\n")
    (root / "new.py").write_text("n = 1\n")
    (root / "junk").write_text("ignored")
    (root / "late.py").unlink()
    (tmp_path / "hook").unlink(missing_ok=True)  # the hooks of the user's own commands
    return root


MIRROR, PACK = "clone -q --mirror user mirror.git", "-C user gc -q"


@pytest.mark.parametrize(
    ("source", "commands"),
    [
        ("user", []),
        ("user", [PACK]),
        ("tree", ["-C user worktree add -q ../tree v1"]),
        ("mirror.git", [PACK, MIRROR]),
        ("shared", [PACK, "clone -q --shared user shared"]),
    ],
)
def test_a_commit_comes_out_byte_for_byte_and_the_copy_is_not_touched(
    repository: Path, source: str, commands: list[str]
) -> None:
    for command in commands:
        git(repository.parent, *command.split())
    before = everything(repository.parent)
    with Workspace(repository.parent / source, commit="v1") as space:
        assert on_disk(space.root) == FIRST
        assert space.commit == git(repository, "rev-parse", "v1")
        assert space.base == git(repository, "rev-parse", "v1^{tree}")
        (space.root / "a.py").write_text("x = 9\n")
        assert space.run("git add -A && git -c user.name=a -c user.email=b commit -qm x && git gc -q --prune=now").ok
        assert "+x = 9\n" in space.diff()
    assert everything(repository.parent) == before


def test_without_a_commit_files_are_taken_as_they_lie(repository: Path) -> None:
    before = everything(repository)
    with Workspace(repository) as space:
        lies = on_disk(repository)
        del lies[b"junk"]
        assert on_disk(space.root) == lies
        assert (space.root / "a.py").stat().st_mtime_ns == (repository / "a.py").stat().st_mtime_ns
        assert space.diff() == space.commit == ""
        (space.root / "new.py").unlink()
        assert "deleted file mode" in space.diff()
    assert everything(repository) == before
    assert not (repository.parent / "hook").exists()


def test_a_folder_that_is_no_repository_is_copied_whole_and_never_written_to(tmp_path: Path) -> None:
    lay_out(tmp_path, {**FIRST, b"junk": ("file", b"ignored"), b"inner/x.py": ("file", b"x\n")})
    commit_all(tmp_path / "inner")  # a repository in it, whose files are as others
    before = everything(tmp_path)
    with Workspace(tmp_path) as space:
        assert on_disk(space.root) == on_disk(tmp_path)
        assert not (space.root / "inner" / ".git").exists()
        assert space.run("./run.sh").output == "hi\n"
        space.apply_edit("a.py", 1, 1, "x = 2")
        assert "+x = 2\r\n" in space.diff()
    assert everything(tmp_path) == before


def test_a_shallow_clone_has_the_commits_it_has_and_a_bare_one_its_head_unless_its_objects_are_gone(
    repository: Path,
) -> None:
    bare, shallow = repository.parent / "mirror.git", repository.parent / "shallow"
    git(repository.parent, *MIRROR.split())
    git(repository.parent, "clone", "-q", "--depth=1", f"file://{repository}", str(shallow))
    first, head = git(repository, "rev-parse", "v1"), git(repository, "rev-parse", "HEAD")
    for source, commit in ((bare, None), (shallow, "HEAD")):
        with Workspace(source, commit=commit) as space:
            assert (on_disk(space.root), space.commit) == (SECOND, head)
    with pytest.raises(WorkspaceError, match=f"no commit '{first}'"):
        Workspace(shallow, commit=first)
    shutil.rmtree(bare / "objects")
    (bare / "objects").mkdir()
    with pytest.raises(WorkspaceError, match=r"mirror\.git"):
        Workspace(bare)


def test_a_workspace_outlives_its_source_and_knows_nothing_of_what_came_later(repository: Path) -> None:
    fix = git(repository, "rev-parse", "HEAD:a.py")
    with Workspace(repository, commit="v1") as space, Workspace(repository) as lying:
        shutil.rmtree(repository)
        (space.root / "a.py").write_text("x = 4\n")
        assert "+x = 4\n" in space.diff()
        assert on_disk(lying.root)[b"new.py"] == ("file", b"n = 1\n")
        assert space.run("git log --all --format=%s").output == "start\n"
        assert fix not in space.run("git cat-file --batch-all-objects --batch-check").output
        assert space.run("git status --porcelain").output.split() == ["M", "a.py"]
        assert lying.run("git status --porcelain").output == ""


def test_files_in_conflict_or_only_announced_are_taken_as_they_lie(repository: Path) -> None:
    git(repository, "stash", "-q", "--include-untracked")
    git(repository, "switch", "-q", "-c", "other", "v1")
    (repository / "a.py").write_text("x = 7\n")
    git(repository, "commit", "-qam", "third")
    with pytest.raises(AssertionError):
        git(repository, "merge", "-q", "main")
    (repository / "announced.py").write_text("y\n")
    git(repository, "add", "--intent-to-add", "announced.py")
    with Workspace(repository) as space:
        assert b"<<<<<<<" in (space.root / "a.py").read_bytes()
        assert (space.root / "announced.py").read_text() == "y\n"


@pytest.mark.slow
def test_submodules_are_left_empty_and_named(repository: Path) -> None:
    outer = repository.parent / "outer"
    lay_out(outer, {b"main.py": ("file", b"import sub\n"), b"lib/z.py": ("file", b"")})
    git(repository.parent, "init", "-q", str(outer))
    git(outer, "submodule", "--quiet", "add", str(repository), "lib/sub")
    commit = commit_all(outer)
    for given in (None, commit):
        with Workspace(outer, commit=given) as space:
            assert set(on_disk(space.root)) == {b"main.py", b"lib/z.py", b".gitmodules"}
            (space.root / "lib" / "sub").mkdir(exist_ok=True)
            (space.root / "lib" / "sub" / "x.py").write_text("lost?\n")
            (space.root / "main.py").write_text("import sub.x\n")
            assert list(space.hashes_between(space.base, space.snapshot())) == ["main.py"]
            git(outer, "apply", "--check", "-", stdin=space.diff().encode())


@pytest.mark.parametrize(
    ("make", "commit", "says"),
    [
        ("mkdir s", "main", "leave the commit out"),
        ("git init -q s", "HEAD", "s has no commit 'HEAD'"),
        ("git init -q --bare s", None, "s has no commit 'HEAD'"),
        ("git init -q s", "--all", "s has no commit '--all'"),
        ("mkdir -p s/.git", None, "s is not a repository that git can read"),
        ("mkdir s; echo gitdir: /nowhere > s/.git", None, "s is not a repository that git can read"),
        ("git init -q s; echo '[' >> s/.git/config", None, "s is not a repository that git can read: .*bad config"),
        ("git init -q s; echo x > s/.git/index", None, "index file"),
        ("mkfifo s", None, "s is not a folder"),
        ("true", None, "s is not a folder"),
        ("mkdir s; touch s/x; chmod 000 s/x", None, None if os.geteuid() == 0 else "Permission denied"),
    ],
)
def test_sources_that_are_none(tmp_path: Path, make: str, commit: str | None, says: str | None) -> None:
    assert os.system(f"cd {tmp_path} && {{ {make}; }} >/dev/null 2>&1") == 0
    if says is None:
        pytest.skip("root may read all files")
    with pytest.raises(WorkspaceError, match=says) as caught:
        Workspace(tmp_path / "s", commit=commit)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.slow
def test_a_full_disk_is_said_in_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    """A limit on the size of files stands for it: what the system says of both is an error of the same kind."""
    lay_out(tmp_path / "source", {b"big": ("file", os.urandom(3_000_000))})
    (tmp_path / "temporary").mkdir()
    commit_all(tmp_path / "source")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000,) * 2)\n"
        "from rlm_loop.workspace import Workspace, WorkspaceError\n"
        "for commit in (None, 'HEAD'):\n"
        "    try: Workspace(sys.argv[1], commit=commit)\n"
        "    except WorkspaceError as error: print(str(error).count('\\n'), error)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(tmp_path / "source")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert [line[:2] for line in done.stdout.splitlines()] == ["0 ", "0 "], done.stdout
    assert os.listdir(tmp_path / "temporary") == []
