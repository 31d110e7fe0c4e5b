"""The table of promises points at tests that exist, and leaves out no line."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest
from semantics_table import PROMISES

TESTS = Path(__file__).parents[1]


@functools.cache
def _source(file: str) -> tuple[str, frozenset[str]]:
    text = (TESTS / file).read_text("utf-8")
    found = (n.name for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef))
    return text, frozenset(found)


@pytest.mark.parametrize("test", sorted({t for p in PROMISES for t in p.tests}))
def test_every_test_that_is_named_exists(test: str) -> None:
    file, _, rest = test.partition("::")
    function, _, case = rest.partition("[")
    text, functions = _source(file)
    assert function in functions
    assert not case or f'"{case.rstrip("]")}"' in text


def test_no_line_is_left_out() -> None:
    lines = {p.line for p in PROMISES}
    assert lines >= {str(n) for n in range(11, 22)} | {f"part {n}" for n in (1, 2, 3, 4, 5, 7)} | {"shows"}
    assert len({(p.line, p.says) for p in PROMISES}) == len(PROMISES)
    assert all(p.tests for p in PROMISES)


def test_what_a_mutant_changes_is_there_once() -> None:
    sources = [path.read_text("utf-8") for path in (TESTS.parent / "rlm_loop").rglob("*.py")]
    for entry in PROMISES:
        if entry.mutant is not None:
            assert sum(text.count(entry.mutant.old) for text in sources) == 1, entry.says
