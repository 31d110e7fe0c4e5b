"""Every change of files becomes a patch that `git apply` takes, and gives the same files again.

Snapshots are equal for equal files, whatever the way there; nothing that a command does to the folder spoils them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from files_on_disk import Tree, commit_all, git, lay_out, on_disk
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rlm_loop.workspace import Workspace, WorkspaceError

_plain = [b"a", b"b c", b"-x", b":(top)", b"*", b"[a]", b"\\"]
_odd = [b"q\"uo'te", "ü".encode(), b"\xff\xe9", b"t\tab", b"new\nline"]
_part = st.sampled_from([*_plain, *_odd])
_name = st.lists(_part, min_size=1, max_size=3).map(b"/".join)
_texts = [b"", b"x", b"x\n", b"x\r\ny\r\n", b"x\r\ny", b"\r", b"\0\xff\n", b"\xe9t\xe9\n", b"a" * 9000 + b"\0\n"]
_tricky = ["ü\n".encode(), b"-- \n", b"diff --git a/x b/x\n", b"\n\n", b"+\n-\n"]
_content = st.one_of(
    st.sampled_from([*_texts, *_tricky]),
    st.binary(max_size=12),
    st.lists(st.sampled_from([b"one\n", b"two\n", b"three\r\n", b" \n", b"\xff\n", b"end"]), max_size=12).map(b"".join),
)
_file = st.one_of(
    st.tuples(st.sampled_from(["file", "program"]), _content),
    st.tuples(st.just("link"), st.sampled_from([b"a", b"../b c", b"/etc", b"\xff", b"no\nwhere"])),
)


@st.composite
def _trees(draw: st.DrawFn) -> dict[bytes, tuple[str, bytes]]:
    """Names with their files; of a file and a folder of one name, the file."""
    drawn = draw(st.dictionaries(_name, _file, max_size=6))
    return {name: file for name, file in drawn.items() if not any(name.startswith(other + b"/") for other in drawn)}


@st.composite
def _edited(draw: st.DrawFn) -> tuple[dict[bytes, tuple[str, bytes]], dict[bytes, tuple[str, bytes]]]:
    """A tree, and what became of it: files kept, removed, renamed, changed in content or kind, and new ones."""
    before, after = draw(_trees()), draw(_trees())
    kept = {name: file for name, file in before.items() if draw(st.booleans())}
    moved = {draw(_name): file for file in before.values() if draw(st.integers(0, 3)) == 0}
    joined = {**kept, **moved, **after}
    return before, {n: f for n, f in joined.items() if not any(n.startswith(other + b"/") for other in joined)}


@pytest.mark.slow
@settings(max_examples=20)
@given(_edited())
@example(({b"a": ("file", b"x\n")}, {b"a/b": ("file", b"x\n")}))
@example(({b"a/b": ("link", b"/etc")}, {b"a": ("link", b"a")}))
@example(({b"a": ("link", b"/etc")}, {b"a/b": ("file", b"x"), b"e f/a": ("file", b"\xff\n")}))
@example(({b"*": ("file", b"\xff\n"), b"a": ("file", b"x\n")}, {b"*": ("file", b"\xfe\n"), b"a": ("file", b"y\n")}))
def test_any_change_is_a_patch_that_rebuilds_it(trees: tuple[Tree, Tree]) -> None:
    before, after = trees
    assume(not any(name.split(b"/")[-1] == to for name, (kind, to) in before.items() if kind == "link"))  # git fails
    folder = Path(tempfile.mkdtemp())
    try:
        clean, source = folder / "clean", folder / "source"
        lay_out(source, before)
        lay_out(clean, before)
        commit_all(clean)
        with Workspace(source) as space:
            assert on_disk(space.root) == before
            lay_out(space.root, after)
            patch = space.diff()
            assert bool(patch) == (before != after)
            if patch:
                git(clean, "apply", "-", stdin=patch.encode())
            assert on_disk(clean) == after
            with Workspace(source) as fork:
                assert on_disk(fork.root) == before
                fork.apply(patch)
                assert on_disk(fork.root) == after
                assert fork.snapshot() == space.snapshot()
    finally:
        shutil.rmtree(folder)


def test_text_stays_readable_beside_text_in_another_encoding() -> None:
    with Workspace({"a.py": "x = 1\n", "l[a]tin.txt": b"\xe9\n"}) as space:
        (space.root / "a.py").write_text("x = 2\n")
        (space.root / "l[a]tin.txt").write_bytes(b"\xe8\n")
        patch = space.diff()
        assert "-x = 1\n+x = 2\n" in patch
        assert patch.count("GIT binary patch") == 1


def test_attributes_and_rules_of_a_repository_do_not_reach_the_patch(tmp_path: Path) -> None:
    rules = "* text=auto eol=crlf ident\n*.py -diff filter=f whitespace=trailing-space\n"
    lay_out(tmp_path, {b".gitattributes": ("file", rules.encode()), b"a.py": ("file", b"x = 1 \n# $Id$\n")})
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "filter.f.smudge", "touch smudged; cat")
    git(tmp_path, "config", "filter.f.clean", "touch cleaned; tr a-z A-Z")
    git(tmp_path, "config", "core.fsmonitor", "touch monitored; false")
    git(tmp_path, "config", "core.autocrlf", "true")
    with Workspace(tmp_path) as space:
        assert (space.root / "a.py").read_bytes() == b"x = 1 \n# $Id$\n"
        (space.root / "a.py").write_bytes(b"x = 2 \r\n# $Id$\n")
        assert "-x = 1 \n+x = 2 \r\n # $Id$\n" in space.diff()
    assert {path.name for path in tmp_path.iterdir()} == {".git", ".gitattributes", "a.py"}


TAKEN = """
    src/a.py src/latest.py src/build/a.py src/conftest.py src/test_more.py tests/test_a.py dist/kept.txt dist/new.txt
"""
LEFT_OUT = """
    src/__pycache__/a.pyc a.egg-info/PKG-INFO build/lib/a.py .coverage node_modules/x/y.js out/log.txt notes.txt
"""


def test_a_patch_leaves_out_droppings_and_what_is_ignored() -> None:
    start = {"src/a.py": "x\n", "tests/test_a.py": "x\n", "dist/kept.txt": "old", ".gitignore": "/out/\nnotes.*\n"}
    with Workspace(start) as space:
        for name in (TAKEN + LEFT_OUT).split():
            (space.root / name).parent.mkdir(parents=True, exist_ok=True)
            (space.root / name).write_text("new\n")
        assert {*space.hashes_between(space.base, space.snapshot())} == {*TAKEN.split()}


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-y = 1\n+y = 2\n", "a.py: patch does not apply"),
        ("--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x\n+y\n", "b.py: does not exist"),
        ("here is the patch", "No valid patches|unrecognized input"),
        ("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n", "corrupt|without"),
        ("--- /dev/null\n+++ b/../out.txt\n@@ -0,0 +1 @@\n+x\n", "invalid path|outside"),
        ("--- /dev/null\n+++ b/.git/config\n@@ -0,0 +1 @@\n+x\n", "invalid path|already exists"),
        ("--- /dev/null\n+++ b/link/out.txt\n@@ -0,0 +1 @@\n+x\n", "beyond a symbolic link"),
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(tmp_path: Path, patch: str, says: str) -> None:
    good = "--- a/first.py\n+++ b/first.py\n@@ -1 +1 @@\n-x\n+y\n"
    with Workspace({"a.py": "x = 1\n", "first.py": "x\n"}) as space:
        (space.root / "link").symlink_to(tmp_path)
        before = on_disk(space.root)
        for whole in (patch, good + patch) if patch.startswith("---") else (patch,):
            with pytest.raises(WorkspaceError, match=says) as caught:
                space.apply(whole)
            assert "\n" not in str(caught.value)
        assert on_disk(space.root) == before
        assert os.listdir(tmp_path) == []
        assert not (space.root.parent / "out.txt").exists()


def test_a_patch_that_lost_its_last_newline_is_taken() -> None:
    with Workspace({"a": "x\n"}) as space:
        space.apply("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y")
        assert (space.root / "a").read_text() == "y\n"


# -- snapshots

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
        assert one.run("git rev-parse HEAD").output == other.run("git rev-parse HEAD").output
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
        (space.root / "spaced ü\n.txt").write_text("odd name")
        assert "deleted file" in space.diff(middle)
        assert "+x = 2" in space.diff(until=middle)
        assert sorted(space.hashes_between(space.base, middle)) == ["a.py"]
        assert sorted(space.hashes_between(middle, space.snapshot())) == ["a.py", "spaced ü\n.txt"]


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
