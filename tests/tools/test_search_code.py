"""Searching: what is found, and what is shown of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rlm_loop.tools import ToolError
from rlm_loop.tools.code import MAX_BYTES, MAX_HITS, CodeTools, files


def fill(root: Path, tree: dict[str, bytes]) -> None:
    for name, data in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("spam", "a.py:1: spam = 1\nsub/b.py:2: print(spam)"),
        ("SPAM", "a.py:1: spam = 1\nsub/b.py:2: print(spam)"),  # no line holds it so: other cases count
        ("Print(", "sub/b.py:2: print(spam)"),
        ("größe", "sub/c.md:1: Größe"),
        ("s.am", "no line holds 's.am' (plain text, one line)"),
        ("spam = 1\nimport", "no line holds 'spam = 1\\nimport' (plain text, one line)"),
        ("--files", "no line holds '--files' (plain text, one line)"),
        ("q" * 300, f"no line holds '{'q' * 200}...' (plain text, one line)"),
        ("ignored", ".env:1: ignored by nobody"),
        ("# coding: utf-7", "utf7.py:1: # coding: utf-7"),  # no character set that is read
        ("late", "no line holds 'late' (plain text, one line)"),  # a NUL is its very last byte
        ("sub/b.py", "no line holds 'sub/b.py'; read_file shows sub/b.py"),
        ("b.py:2", "no line holds 'b.py:2'; read_file shows sub/b.py"),
        ("sub/b.py::test_a[x-1]", "no line holds 'sub/b.py::test_a[x-1]'; read_file shows sub/b.py"),
        ("`a.py`", "no line holds '`a.py`'; read_file shows a.py"),
        ("/b.py", "no line holds '/b.py' (plain text, one line)"),
        ("SOURCES.txt", "no line holds 'SOURCES.txt' (plain text, one line)"),
    ],
)
def test_what_is_found(tmp_path: Path, query: str, text: str) -> None:
    tree = {
        "a.py": b"spam = 1\nimport os\n",
        "sub/b.py": b"import a\n  print(spam)  \r\n",
        "sub/c.md": "Größe".encode(),
        "sub/latin.txt": b"\xe9t\xe9",
        ".env": b"ignored by nobody",
        ".gitignore": b".env\n",
        "__pycache__/a.pyc": b"spam",
        "src/m.egg-info/SOURCES.txt": b"spam",
        "sub/.git/config": b"spam",
        "data.bin": b"spam\0",
        "utf7.py": b"# coding: utf-7\n",
        "late.py": b"late\n" + b"x\n" * 100_000 + b"\0",
        "away/.ignore": b"*\n",
        "big.txt": b"spam " * (MAX_BYTES // 5 + 1),
    }
    fill(tmp_path, tree)
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "out").symlink_to("sub")
    assert CodeTools(tmp_path).search_code(query) == text


@pytest.mark.parametrize(("lines", "more"), [(19, 0), (20, 0), (21, 1), (5000, 4980)])
def test_at_most_20_lines_and_how_many_more(tmp_path: Path, lines: int, more: int) -> None:
    fill(tmp_path, {"b.txt": b"needle\n" * (lines - 3), "a/c.txt": b"needle\n\nneedle needle\n", "a.txt": b"a needle"})
    shown = CodeTools(tmp_path).search_code("needle").splitlines()
    assert shown[0] == "a.txt:1: a needle"
    assert shown[1] == "b.txt:1: needle"
    assert len(shown) == min(lines, MAX_HITS) + (more > 0)
    assert (shown[-1] == f"... {more} more") is (more > 0)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("x" * 10 + "needle" + "y" * 400, "x" * 10 + "needle" + "y" * 184 + "..."),
        ("x" * 1000 + "needle" + "y" * 400, "..." + "x" * 50 + "needle" + "y" * 144 + "..."),
        ("x" * 1000 + "needle", "..." + "x" * 50 + "needle"),
        ("  needle" + " " * 400, "needle"),
    ],
)
def test_of_a_long_line_the_part_with_the_text_is_shown(tmp_path: Path, line: str, shown: str) -> None:
    (tmp_path / "a.js").write_text(line)
    assert CodeTools(tmp_path).search_code("needle") == f"a.js:1: {shown}"


def test_an_empty_query_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="empty"):
        CodeTools(tmp_path).search_code(" \n")


def test_files_come_in_one_order_however_deep(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys(["b/z.py", "b/a/x.py", "c.py", "a.py", "b.py", "é/ü.py", "b/.git/x", "b-/y"], b""))
    names = list(files(tmp_path))
    assert names == ["a.py", "b.py", "c.py", "b/z.py", "b/a/x.py", "b-/y", "é/ü.py"]
    top = tmp_path / "deep"
    top.mkdir()
    for _ in range(1100):  # deeper than Python's stack
        top = top / "d"
        top.mkdir()
    (top / "last.py").write_text("needle")
    assert any(name.endswith("last.py") for name in files(tmp_path))
    subprocess.run(["rm", "-rf", str(tmp_path / "deep")], check=True)
