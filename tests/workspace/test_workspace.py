"""The checkout and its tools: semantics 32, and edits that spoil nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm_loop.tools import ToolError
from rlm_loop.tools.code import CodeTools
from rlm_loop.workspace import Workspace, WorkspaceError
from tests.repl.processes import gone

CODE = "def f(x):\n    return x + 1\n\n\ndef g(x):\n    return f(x) * 2\n"
LATIN, MARKED = b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", b"\xef\xbb\xbfx = 1\n"
FILES: dict[str, str | bytes] = {"a.py": CODE, "pkg/b.txt": "one\r\ntwo\r\nthree", "data.bin": bytes(range(256))}
FILES |= {"latin.py": LATIN, "marked.py": MARKED}


@pytest.fixture
def space() -> Iterator[Workspace]:
    with Workspace(FILES) as opened:
        yield opened


def test_closed_means_removed() -> None:
    with Workspace(FILES) as space:
        assert (space.root / "pkg" / "b.txt").read_bytes() == b"one\r\ntwo\r\nthree"
    assert not space.root.parent.exists()
    space.close()
    for closed in (space.snapshot, space.diff):
        with pytest.raises(WorkspaceError, match="closed"):
            closed()


def test_read_is_limited_to_the_file_and_200_lines(space: Workspace) -> None:
    read = [space.read_file("pkg/b.txt", *lines) for lines in ((), (0, 1), (2, 99))]
    assert read == ["1: one\n2: two\n3: three", "1: one", "2: two\n3: three"]
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
        ("a.py", 2, 2, "    return x\n", CODE.replace(" + 1", "").encode(), "1: def f(x):\n2:     return x\n3: \n4: "),
        ("new/c.py", 1, 0, "x = 1\n", b"x = 1\n", "1: x = 1"),
        ("latin.py", 3, 2, "y = 1", LATIN + b"y = 1\n", "1: # -*- coding: latin-1 -*-\n2: x = '\udce9'\n3: y = 1"),
        ("marked.py", 2, 1, "y = 2", MARKED + b"y = 2\n", "1: \ufeffx = 1\n2: y = 2"),
    ],
)
def test_edit(space: Workspace, path: str, start: int, end: int, text: str, after: bytes, shown: str) -> None:
    assert space.apply_edit(path, start, end, text) == shown
    assert (space.root / path).read_bytes() == after


def test_a_file_that_did_not_compile_may_be_mended_in_steps(space: Workspace) -> None:
    (space.root / "broken.py").write_text("def f(:\ndef g(:\n")
    assert space.apply_edit("broken.py", 1, 1, "def f(): pass").startswith("1: def f(): pass")
    assert space.apply_edit("broken.py", 2, 2, "def g(): pass").endswith("2: def g(): pass")


_line = st.text(st.sampled_from("ab \té\x0c\u2028"), max_size=4)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_run_keeps_partial_output_and_kills_the_group(space: Workspace) -> None:
    done = space.run(["python", "-c", "import a; print(a.f(1)); raise SystemExit(4)"])
    assert (done.code, done.output, done.timed_out) == (4, "2\n", False)
    late = space.run("echo early; (sleep 600; echo x > late.txt) & echo $! > pid; wait", timeout=0.5)
    assert (late.timed_out, late.ok, late.output) == (True, False, "early\n")
    assert not (space.root / "late.txt").exists()  # it was not waited for
    assert gone(int((space.root / "pid").read_text()), 4)


def test_commands_see_no_secrets_and_long_output_loses_its_middle(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    assert "hunter2" not in space.run("env").output
    output = space.run(["python", "-c", "print('a' * 100000 + 'end')"]).output
    assert (len(output) < 70_000, output[-4:]) == (True, "end\n")
    assert "characters left out" in output


def test_clear_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolError, match="outside"):
        Workspace({"../x": "y"})
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(WorkspaceError, match="install it"):
        Workspace({})
