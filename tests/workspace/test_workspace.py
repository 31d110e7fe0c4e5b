"""The checkout and its tools: semantics 32, and edits that spoil nothing."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm_loop.tools import ToolError
from rlm_loop.tools.code import CodeTools
from rlm_loop.workspace import Workspace, WorkspaceError

FILES: dict[str, str | bytes] = {
    "a.py": "def f(x):\n    return x + 1\n\n\ndef g(x):\n    return f(x) * 2\n",
    "pkg/b.txt": "one\r\ntwo\r\nthree",
    "data.bin": bytes(range(256)),
}


@pytest.fixture
def space() -> Iterator[Workspace]:
    with Workspace(FILES) as opened:
        yield opened


def test_closed_means_removed() -> None:
    with Workspace(FILES) as space:
        root = space.root
        assert (root / "pkg" / "b.txt").read_bytes() == b"one\r\ntwo\r\nthree"
    assert not root.parent.exists()
    space.close()
    with pytest.raises(WorkspaceError, match="closed"):
        space.diff()


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ((), "1: one\n2: two\n3: three"),
        ((2,), "2: two\n3: three"),
        ((0, 1), "1: one"),
        ((2, 99), "2: two\n3: three"),
    ],
)
def test_read(space: Workspace, lines: tuple[int, ...], shown: str) -> None:
    assert space.read_file("pkg/b.txt", *lines) == shown


def test_read_is_limited_to_200_lines(space: Workspace) -> None:
    (space.root / "long.txt").write_text("x\n" * 500)
    (space.root / "empty.txt").write_text("")
    assert space.read_file("long.txt", 11).splitlines()[-2:] == ["210: x", "... 290 more lines"]
    assert space.read_file("empty.txt") == "(empty file)"


@pytest.mark.parametrize(
    ("path", "start", "end", "text", "after", "shown"),
    [
        ("pkg/b.txt", 2, 2, "zwei", b"one\r\nzwei\r\nthree", "1: one\n2: zwei\n3: three"),
        ("pkg/b.txt", 3, 3, "drei\n", b"one\r\ntwo\r\ndrei", "1: one\n2: two\n3: drei"),
        ("pkg/b.txt", 4, 3, "four\nfive", b"one\r\ntwo\r\nthree\r\nfour\r\nfive", "2: two\n3: three\n4: four\n5: five"),
        ("pkg/b.txt", 1, 0, "zero\r\n", b"zero\r\none\r\ntwo\r\nthree", "1: zero\n2: one\n3: two"),
        ("pkg/b.txt", 3, 3, "", b"one\r\ntwo", "1: one\n2: two"),
        ("pkg/b.txt", 1, 3, "", b"", "(empty file)"),
        ("a.py", 2, 2, "    return x\n", b"def f(x):\n    return x\n", "1: def f(x):\n2:     return x\n3: \n4: "),
        ("new/c.py", 1, 0, "x = 1\n", b"x = 1\n", "1: x = 1"),
    ],
)
def test_edit(space: Workspace, path: str, start: int, end: int, text: str, after: bytes, shown: str) -> None:
    assert space.apply_edit(path, start, end, text) == shown
    assert (space.root / path).read_bytes().startswith(after)
    if path != "a.py":
        assert (space.root / path).read_bytes() == after


def test_a_file_that_did_not_compile_may_be_mended_in_steps(space: Workspace) -> None:
    (space.root / "broken.py").write_text("def f(:\ndef g(:\n")
    assert space.apply_edit("broken.py", 1, 1, "def f(): pass").startswith("1: def f(): pass")
    assert space.apply_edit("broken.py", 2, 2, "def g(): pass").endswith("2: def g(): pass")


def test_encodings_survive(space: Workspace) -> None:
    latin = b"# -*- coding: latin-1 -*-\nx = '\xe9'\ny = 1\n"
    marked = b"\xef\xbb\xbfx = 1\n"
    (space.root / "latin.py").write_bytes(latin)
    (space.root / "marked.py").write_bytes(marked)
    space.apply_edit("latin.py", 3, 3, "y = 'ü'")
    space.apply_edit("marked.py", 2, 1, "y = 2")
    assert (space.root / "latin.py").read_bytes() == latin[:-6] + b"y = '\xfc'\n"
    assert (space.root / "marked.py").read_bytes() == marked + b"y = 2\n"


_line = st.text(st.sampled_from("ab \té\x0c\u2028"), max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.lists(_line, min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_an_edit_changes_the_lines_it_names_and_no_others(
    tmp_path: Path, data: st.DataObject, lines: list[str], newline: str, final: bool
) -> None:
    if not final and not lines[-1]:
        lines[-1] = "x"
    content = newline.join(lines) + (newline if final else "")
    (tmp_path / "f.txt").write_bytes(content.encode())
    start = data.draw(st.integers(1, len(lines) + 1))
    end = data.draw(st.integers(start - 1, len(lines)))
    new = data.draw(st.lists(_line.filter(bool), min_size=1, max_size=3))
    wanted = lines[: start - 1] + new + lines[end:]
    if newline == "\n" or len(lines) > 1 or final:  # one line without an ending shows no style
        expected = newline.join(wanted) + (newline if final else "")
        if expected != content:
            CodeTools(tmp_path).apply_edit("f.txt", start, end, "\n".join(new))
        assert (tmp_path / "f.txt").read_bytes() == expected.encode()


def test_the_diff_rebuilds_the_change_and_snapshots_tell_it(space: Workspace) -> None:
    start = space.snapshot()
    assert start == space.base
    assert space.diff() == ""
    space.apply_edit("a.py", 2, 2, "    return x - 1")
    middle = space.snapshot()
    (space.root / "data.bin").write_bytes(b"\0\xff" * 9)
    (space.root / "latin.txt").write_bytes(b"\xe9t\xe9\r\nno newline")
    (space.root / "spaced ü\n.txt").write_text("odd name")
    (space.root / "pkg" / "b.txt").unlink()
    (space.root / "__pycache__").mkdir()
    (space.root / "__pycache__" / "a.pyc").write_bytes(b"x")
    changed = ["a.py", "data.bin", "latin.txt", "pkg/b.txt", "spaced ü\n.txt"]
    assert sorted(space.hashes_between(start, space.snapshot())) == changed
    assert sorted(space.hashes_between(middle, space.snapshot())) == changed[1:]
    patch = space.diff()
    patch.encode()
    with Workspace(FILES) as other:
        other.apply(patch)
        assert other.snapshot() == space.snapshot()
        with pytest.raises(WorkspaceError, match=r"does not apply|already exists"):
            other.apply(patch)


def test_the_diff_does_not_depend_on_what_a_model_does_with_git(space: Workspace) -> None:
    space.apply_edit("a.py", 2, 2, "    return x - 1")
    patch = space.diff()
    assert space.run("git add -A && git -c user.name=a -c user.email=b commit -qm x && git status --short").ok
    assert space.diff() == patch
    (space.root / ".git").unlink()
    assert space.diff() == patch


def test_run_keeps_partial_output_and_kills_the_group(space: Workspace) -> None:
    done = space.run(["python", "-c", "import a; print(a.f(1)); raise SystemExit(4)"])
    assert (done.code, done.output, done.timed_out) == (4, "2\n", False)
    late = space.run("echo early; (sleep 600; echo x > late.txt) & echo $! > pid; wait", timeout=0.5)
    assert late.timed_out
    assert not late.ok
    assert late.output == "early\n"
    assert not (space.root / "late.txt").exists()  # it was not waited for
    pid = int((space.root / "pid").read_text())
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]:
            break
        time.sleep(0.02)
    else:
        pytest.fail("a background process outlived its command")


def test_commands_see_no_secrets_and_long_output_loses_its_middle(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    assert "hunter2" not in space.run("env").output
    output = space.run(["python", "-c", "print('a' * 100000 + 'end')"]).output
    assert len(output) < 70_000
    assert output.endswith("end\n")
    assert "bytes left out" in output


def _git(*arguments: str, cwd: Path) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    who = ["-c", "user.name=a", "-c", "user.email=b"]
    subprocess.run(["git", *who, *arguments], cwd=cwd, env=environment, check=True, capture_output=True)


@pytest.mark.parametrize("repository", [True, False])
def test_a_folder_is_copied_and_never_written_to(tmp_path: Path, repository: bool) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "m.py").write_bytes(b"x = 1\r\n")
    (tmp_path / "run.sh").write_text("echo hi\n")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "away").symlink_to("/etc")
    (tmp_path / ".gitignore").write_text("junk\n")
    (tmp_path / ".gitattributes").write_text("* text=auto eol=lf\n")
    (tmp_path / "junk").write_text("ignored")
    if repository:
        _git("init", "-q", cwd=tmp_path)
        (tmp_path / ".git" / "hooks").mkdir(exist_ok=True)
        (tmp_path / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / ".git" / "hooks" / "pre-commit").chmod(0o755)
        _git("add", "sub", cwd=tmp_path)
    with Workspace(tmp_path) as space:
        assert (space.root / "junk").exists() is not repository
        assert space.run("./run.sh").output == "hi\n"
        assert (space.root / "away").is_symlink()
        space.apply_edit("sub/m.py", 1, 1, "x = 2")
        assert (space.root / "sub" / "m.py").read_bytes() == b"x = 2\r\n"
        assert "+x = 2\r\n" in space.diff()
    assert (tmp_path / "sub" / "m.py").read_bytes() == b"x = 1\r\n"


def test_clear_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkspaceError, match="not a folder"):
        Workspace(tmp_path / "nowhere")
    with pytest.raises(ToolError, match="outside"):
        Workspace({"../x": "y"})
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(WorkspaceError, match="install it"):
        Workspace({})


def test_equal_files_make_equal_commits() -> None:
    with Workspace(FILES) as one, Workspace(FILES) as two:
        assert one.run("git rev-parse HEAD").output == two.run("git rev-parse HEAD").output
        assert one.base == two.base
