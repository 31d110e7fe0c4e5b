"""Every refusal of the tools for code: its cause, its kind and its text; and what an edit keeps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.tools import ToolError, ToolGateway
from rlm_loop.tools.code import MAX_BYTES, CodeTools
from rlm_loop.tools.code.paths import write_bytes


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "pkg", root / "other", outside):
        folder.mkdir(parents=True)
    (outside / "secret.txt").write_text("secret")
    (root / "a.py").write_text("def f(x):\n    return x\n")
    (root / "pkg" / "mod.py").write_text("x = 1\n")
    (root / "other" / "mod.py").write_text("x = 1\n")
    (root / "latin.py").write_bytes(b"# coding: latin-1\nx = '\xe9'\n")
    (root / "data.bin").write_bytes(b"\0\1")
    (root / "big.txt").write_bytes(b"x" * (MAX_BYTES + 1))
    (root / "link.py").symlink_to(outside / "secret.txt")
    (root / "out").symlink_to(outside)
    (root / "dangling").symlink_to(outside / "nothing")
    os.mkfifo(root / "pipe")
    yield root
    assert (outside / "secret.txt").read_text() == "secret"
    assert sorted(os.listdir(outside)) == ["secret.txt"]


def call(tool: str, path: str, start: int = 1, end: int = 1, text: str = "x") -> tuple[str, dict[str, Any]]:
    place = {"path": path, "start_line": start, "end_line": end}
    return tool, place if tool == R else place | {"replacement": text}


R, E = "read_file", "apply_edit"
BOTH = [R, E]
ABSOLUTE = ("/etc/passwd", "~/x", "C:\\x")
OUTSIDE = ("pkg/../../x", "pkg\\..\\..\\x", "../root/a.py", ".git", "./.git/config", "pkg/.GIT/hooks/x")
NO_LINES = ((3, 9), (0, 1), (-5, -6))
#: tools, path and lines and text, kind, message
REFUSED: list[tuple[list[str], tuple[Any, ...], str, str]] = [
    (BOTH, ("nope.py",), "invalid_arguments", "no file 'nope.py'; there is a.py"),
    (BOTH, ("src/mod.py",), "invalid_arguments", "no file 'src/mod.py'; there is other/mod.py, pkg/mod.py"),
    (BOTH, ("pkg",), "invalid_arguments", "no file 'pkg'; there is "),
    (BOTH, ("pipe",), "invalid_arguments", "no file 'pipe'; there is "),
    (BOTH, ("a.py/x",), "invalid_arguments", "no file 'a.py/x'; there is a.py"),
    (BOTH, ("",), "invalid_arguments", "'' is not a file of the repository"),
    (BOTH, ("./.",), "invalid_arguments", "'./.' is not a file of the repository"),
    (BOTH, ("x" * 300, 1, 0), "runtime", f"{'x' * 300} cannot be read: "),
    *[(BOTH, (path,), "denied", f"{path!r} is not relative: give the path") for path in ABSOLUTE],
    *[(BOTH, (path,), "denied", f"{path!r} is outside of the repository") for path in OUTSIDE],
    *[(BOTH, (path,), "denied", f"{path!r} goes through a symbolic link") for path in ("link.py", "out/secret.txt")],
    *[([E], (path, 1, 0), "denied", f"{path!r} goes through a symbolic link") for path in ("out/new.txt", "dangling")],
    (BOTH, ("data.bin",), "invalid_arguments", "data.bin is not text"),
    (BOTH, ("big.txt",), "invalid_arguments", "big.txt is too large: 5000001 bytes, at most 5000000"),
    ([R], ("a.py", 3, 9), "invalid_arguments", "a.py has 2 lines, no lines 3 to 9"),
    ([R], ("a.py", 2, 1), "invalid_arguments", "a.py has 2 lines, no lines 2 to 1"),
    *[([E], ("a.py", *at), "invalid_arguments", f"a.py has 2 lines, lines {at[0]} to {at[1]}") for at in NO_LINES],
    ([E], ("a.py/x", 1, 0), "invalid_arguments", "no file 'a.py/x'; there is a.py"),
    ([E], ("a.py", 2, 2, "    return x\n"), "runtime", "not changed: lines 2 to 2 of a.py are already so"),
    ([E], ("a.py", 2, 2, "return x"), "runtime", "not changed, it would not compile: line 2: expected an indented "),
    ([E], ("a.py", 2, 2, "    return (x"), "runtime", "not changed, it would not compile: line 2: '(' was never"),
    ([E], ("a.py", 1, 1, "return 3"), "runtime", "not changed, it would not compile: line 2: unexpected indent"),
    ([E], ("new.py", 1, 0, "def"), "runtime", "not changed, it would not compile: line 1: invalid syntax: def"),
]
CASES = [(call(tool, *given), kind, says) for tools, given, kind, says in REFUSED for tool in tools]


@pytest.mark.parametrize(("asked", "kind", "says"), CASES, ids=[f"{c[0][0]} {c[2][:40]!a}" for c in CASES])
def test_refusals(root: Path, asked: tuple[str, dict[str, Any]], kind: str, says: str) -> None:
    before = tree(root)
    result = ToolGateway(CodeTools(root).tools()).call(*asked)
    assert (result.error, result.text[: len(says)]) == (kind, says)
    assert (len(result.text) < 500, "\n" in result.text) == (True, False)
    assert tree(root) == before


def tree(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() and not path.is_symlink() else b"" for path in root.rglob("*")}


def test_a_link_made_between_reading_and_writing_leads_nowhere(root: Path) -> None:
    for path in ("out/secret.txt", "out/new/file"):
        with pytest.raises(ToolError):
            write_bytes(root, path, b"x")
    write_bytes(root, "link.py", b"x")  # the link itself is replaced, not what it leads to
    assert not (root / "link.py").is_symlink()


def test_a_written_file_keeps_its_mode_and_other_names_their_contents(root: Path, tmp_path: Path) -> None:
    (root / "a.py").chmod(0o750)
    os.link(root / "a.py", tmp_path / "same.py")
    CodeTools(root).apply_edit("a.py", 2, 2, "    return -x")
    assert (root / "a.py").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "same.py").read_text() == "def f(x):\n    return x\n"
    assert not [name for name in os.listdir(root) if name.endswith(".edit")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_what_may_not_be_read_or_written(root: Path) -> None:
    (root / "a.py").chmod(0)
    (root / "pkg").chmod(0o555)
    tools = CodeTools(root)
    with pytest.raises(ToolError, match=r"^runtime: a.py cannot be read: Permission denied$"):
        tools.read_file("a.py")
    with pytest.raises(ToolError, match=r"^runtime: pkg/mod.py cannot be written: Permission denied$"):
        tools.apply_edit("pkg/mod.py", 1, 1, "x = 2")
    (root / "pkg").chmod(0o755)


@pytest.mark.parametrize("named", ["latin-1", "shift_jis", "punycode", "unicode_escape", "rot13"])
def test_a_coding_line_is_passed_over_and_bytes_survive(tmp_path: Path, named: str) -> None:
    data = f"# coding: {named}\n".encode() + b"x = '\xe9'\ny = 0\n"
    (tmp_path / "a.py").write_bytes(data)
    tools = CodeTools(tmp_path)
    tools.apply_edit("a.py", 3, 3, "y = 2")
    assert (tmp_path / "a.py").read_bytes() == data.replace(b"y = 0", b"y = 2")


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match=r"root must be a folder, got '.*nowhere'"):
        CodeTools(f"{tmp_path}/nowhere")
