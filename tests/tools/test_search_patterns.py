"""A query that no line holds is taken as a regular expression, in bounded time, and the result says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop.tools.code import CodeTools, search

TREE = {
    "a.py": "def load_a(): ...\ndef save_a(): ...\nx = 'a|b'\n",
    "pkg/b.py": "# coding: latin-1\ndef LOAD_b(): ...\r\n",
    "c.bin": "def load_c\0",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    return tmp_path


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (r"def (load|save)_\w", ["a.py:1: def load_a(): ...", "a.py:2: def save_a(): ..."]),
        (r"^DEF\s+load", ["a.py:1: def load_a(): ...", "pkg/b.py:2: def LOAD_b(): ..."]),
        (r"LOAD_b\(\): \.\.\.$", ["pkg/b.py:2: def LOAD_b(): ..."]),
    ],
)
def test_a_pattern_is_taken_where_no_line_holds_the_text(root: Path, query: str, shown: list[str]) -> None:
    assert search(root, query)[0].splitlines() == [
        f"no line holds {query!r}; as a regular expression it matches",
        *shown,
    ]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("a|b", "a.py:3: x = 'a|b'"),  # held as it stands, so no pattern
        ("b.py", "no line holds 'b.py'; read_file shows pkg/b.py"),
        ("nothing", "no line holds 'nothing' (plain text, one line)"),
        ("nothing[", "no line holds 'nothing[' (plain text, one line)"),  # no pattern either
        ("z*", "no line holds 'z*' (plain text, one line)"),  # would match every line
        ("zz.+top", "no line holds 'zz.+top' (as plain text of one line or as a regular expression)"),
    ],
)
def test_what_else_a_query_is(root: Path, query: str, said: str) -> None:
    assert search(root, query)[0] == said


@pytest.mark.slow
def test_a_pattern_that_never_ends_is_stopped(root: Path) -> None:
    (root / "b0.txt").write_text("a" * 64 + "\n")
    text = search(root, r"(a+)+[xy]$|def \w+_a", seconds=2)[0]
    assert text.endswith("(stopped after 2 s, not all was searched)")


def test_edits_know_what_a_pattern_showed(root: Path) -> None:
    tools = CodeTools(root)
    assert "a.py:2" in tools.search_code(r"save_\w+\(")
    assert "saved" in tools.apply_edit("a.py", 2, 2, "def saved(): ...")


def test_the_searched_folder_cannot_slip_in_code(root: Path) -> None:
    (root / "re.py").write_text("raise SystemExit\n")
    (root / "json.py").write_text("raise SystemExit\n")
    assert "a.py:1" in search(root, r"load_\w\(")[0]
