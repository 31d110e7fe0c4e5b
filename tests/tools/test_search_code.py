"""Searching: with ripgrep and without it the same, in bounded time and memory."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlm_loop.tools.code import MAX_BYTES, MAX_HITS, files, ripgrep, search
from rlm_loop.tools.code.paths import in_order
from rlm_loop.tools.code.searching import Found, Hit, find
from rlm_loop.tools.function import ToolError

RG = ripgrep.installed()
needs_ripgrep = pytest.mark.skipif(RG is None, reason="ripgrep is not installed: apt-get install ripgrep")
WAYS = [pytest.param(None, id="Python"), pytest.param(RG, id="ripgrep", marks=needs_ripgrep)]

Tree = dict[str, bytes]


def fill(root: Path, tree: Tree) -> None:
    for name, data in tree.items():
        target = root / name
        if any(p.is_file() for p in target.parents) or target.is_dir():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


_name = st.sampled_from(
    [
        "a.py",
        "b.txt",
        ".hidden",
        "ü.md",
        "sp ace",
        "-x",
        "pkg",
        ".git",
        "__pycache__",
        ".pytest_cache",
        "m.egg-info",
        ".gitignore",
    ]
)
_piece = st.sampled_from(
    [
        *(b"needle", b"NEEDLE", b"Needle", b" ", b"\n", b"\r\n", b"\0", b"\x1a", b"\xff\xfe", b"\xe9", b"x" * 70_000),
        *(b"-e", b"*", b"n.edle[", b"\\", b"# coding: latin-1\n", "é".encode(), "É".encode(), "K\u017f".encode()),
    ]
)
_tree = st.dictionaries(
    st.lists(_name, min_size=1, max_size=3).map("/".join), st.lists(_piece, max_size=8).map(b"".join), max_size=6
)
_query = st.sampled_from(
    ["needle", "Needle", "nEEdle", "-e", "*", ".", "[", "\\", "é", "É", "ks", "needle ", "needle\r", "zz"]
)


@needs_ripgrep
@settings(max_examples=60, deadline=None)
@given(_tree, _query)
@example({f"d{n}/f.py": b"needle\n" * n for n in range(9)}, "needle")  # more hits than are shown
@example({"late.py": b"needle\n" + b"x\n" * 100_000 + b"\0"}, "needle")  # not text, as the very last byte says
@example({".gitignore": b"*\n", "a/.ignore": b"*\n", "a/b.py": b"needle"}, "needle")  # nothing is left to ignore files
@example({"u.txt": b"\xff\xfeneedle", "v.txt": "\ufeffneedle".encode()}, "needle")  # marks of encodings
@example({"a.py": b"# coding: utf-7\nx = '+AG4-eedle needle'\n"}, "needle")
def test_ripgrep_and_python_find_the_same(tree: Tree, query: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), tree)
        (Path(folder) / "away").symlink_to("/etc")
        os.mkfifo(Path(folder) / "pipe")
        found = find(Path(folder), query, program=RG)
        assert found == find(Path(folder), query, program=None)
        assert found.complete


@pytest.mark.parametrize("program", WAYS)
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("spam", "a.py:1: spam = 1\nsub/b.py:2: print(spam)"),
        ("SPAM", "a.py:1: spam = 1\nsub/b.py:2: print(spam)"),  # no line holds it so: other cases count
        ("Print(", "sub/b.py:2: print(spam)"),
        ("größe", "sub/c.md:1: Größe"),
        ("Größe", "sub/c.md:1: Größe"),
        ("ÉTÉ", "sub/latin.txt:1: été"),
        ("s.am", "no line holds 's.am' (plain text, one line)"),
        ("spam = 1\nimport", "no line holds 'spam = 1\\nimport' (plain text, one line)"),
        ("--files", "no line holds '--files' (plain text, one line)"),
        ("q" * 300, f"no line holds '{'q' * 200}...' (plain text, one line)"),
        ("ignored", ".env:1: ignored by nobody"),
        ("sub/b.py", "no line holds 'sub/b.py'; read_file shows sub/b.py"),
        ("b.py:2", "no line holds 'b.py:2'; read_file shows sub/b.py"),
        ("sub/b.py::test_a[x-1]", "no line holds 'sub/b.py::test_a[x-1]'; read_file shows sub/b.py"),
        ("`a.py`", "no line holds '`a.py`'; read_file shows a.py"),
        ("/b.py", "no line holds '/b.py' (plain text, one line)"),
        ("SOURCES.txt", "no line holds 'SOURCES.txt' (plain text, one line)"),
    ],
)
def test_what_is_found(tmp_path: Path, program: str | None, query: str, text: str) -> None:
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
        "big.txt": b"spam " * (MAX_BYTES // 5 + 1),
    }
    fill(tmp_path, tree)
    assert find(tmp_path, query, program=program).text == text


@pytest.mark.parametrize("program", WAYS)
@pytest.mark.parametrize(("lines", "more"), [(19, 0), (20, 0), (21, 1), (5000, 4980)])
def test_at_most_20_lines_and_how_many_more(tmp_path: Path, program: str | None, lines: int, more: int) -> None:
    fill(tmp_path, {"b.txt": b"needle\n" * (lines - 3), "a/c.txt": b"needle\n\nneedle needle\n", "a.txt": b"a needle"})
    shown = find(tmp_path, "needle", program=program).text.splitlines()
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
    assert search(tmp_path, "needle") == f"a.js:1: {shown}"


def program_that(tmp_path: Path, does: str) -> str:
    path = tmp_path / "bin" / "rg"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("does", "hits", "complete"),
    [
        ("exit 2", 1, True),  # it knows an option not: Python searches
        ("kill -9 $$", 1, True),
        ("exec sleep 600", 0, False),
        (r"while :; do printf 'gone.py\0001\n'; done", 0, False),  # a file that is gone when it is read
    ],
)
def test_a_ripgrep_that_fails_hangs_or_floods(tmp_path: Path, does: str, hits: int, complete: bool) -> None:
    root = tmp_path / "root"
    fill(root, {"a.py": b"needle"})
    found = find(root, "needle", program=program_that(tmp_path, does), seconds=0.5)
    assert (len(found.hits), found.complete) == (hits, complete)
    if not complete:
        assert "stopped after 0.5 s, not all was searched" in found.text


def test_a_flood_of_rows_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "_MAX_OUTPUT", 1_000_000)
    flood = program_that(tmp_path, "exec yes")
    counted = ripgrep.count(flood, tmp_path, "needle", fold=False, seconds=60)
    assert counted is not None
    assert not counted.complete


def test_a_search_without_ripgrep_ends_in_time_too(tmp_path: Path) -> None:
    fill(tmp_path, {"a.py": b"needle"})
    found = find(tmp_path, "needle", program=None, seconds=0)
    assert found.text == "no line holds 'needle' (stopped after 0 s, not all was searched)"


def test_hits_of_a_search_that_was_stopped_say_so() -> None:
    assert Found("x", (Hit("a", 1, "x"),), 7, False).text == "a:1: x\n... more than 6 more (stopped after 20 s)"


@pytest.mark.parametrize("says", ["ripgrep 12.1.1", "rg of another kind", ""])
def test_only_a_ripgrep_that_is_new_enough_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    program = program_that(tmp_path, f"echo '{says}'")
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", f"{Path(program).parent}:/usr/bin:/bin")
    assert ripgrep.installed() != program
    (tmp_path / "second").mkdir()
    newer = program_that(tmp_path / "second", "echo 'ripgrep 13.0.0'")
    monkeypatch.setenv("PATH", f"relative:{Path(newer).parent}:/usr/bin:/bin")
    monkeypatch.setattr("sys.executable", str(tmp_path / "second" / "bin" / "python"))
    assert ripgrep.installed() == newer


def test_an_empty_query_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="empty"):
        search(tmp_path, " \n")


@pytest.mark.parametrize("program", WAYS)
def test_the_users_own_settings_have_no_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None
) -> None:
    config = tmp_path / "config"
    config.write_text("--max-count=1\n--ignore-case\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    fill(tmp_path / "root", {"a.py": b"needle\nneedle\nNEEDLE\n"})
    assert find(tmp_path / "root", "needle", program=program).total == 2


def test_files_come_in_one_order_however_deep(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys(["b/z.py", "b/a/x.py", "c.py", "a.py", "b.py", "é/ü.py", "b/.git/x", "b-/y"], b""))
    names = list(files(tmp_path))
    assert names == ["a.py", "b.py", "c.py", "b/z.py", "b/a/x.py", "b-/y", "é/ü.py"]
    assert list(in_order(sorted(names))) == names
    top = tmp_path / "deep"
    top.mkdir()
    for _ in range(1100):  # deeper than Python's stack
        top = top / "d"
        top.mkdir()
    (top / "last.py").write_text("needle")
    assert any(name.endswith("last.py") for name in files(tmp_path))
    subprocess.run(["rm", "-rf", str(tmp_path / "deep")], check=True)
