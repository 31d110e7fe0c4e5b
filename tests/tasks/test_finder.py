"""Mutations: one small change, everything else byte for byte, the same for the same seed."""

from __future__ import annotations

import ast
import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.bug_search.finder import mutations
from rlm_loop.tasks.mutation import Mutation, apply

SOURCE = '''import math


def helper(x):
    return x < 1


def f(values, limit=3):
    """Not 1 < 2 here."""
    naïve = "é"; total = 0  # a < b
    for i in range(len(values)):
        if not values or (values[i]) <= limit and i is not None:
            total += values[i] ** 2 - 1
        elif values[1:limit]:
            break
        while helper(i):
            naïve = naïve.upper() + "" + f"{i + 1}"
    return total == -1 or (
        total
        > 7
    )
'''


def _pairs(seed: int = 0) -> set[tuple[str, str, str]]:
    return {(m.before, m.after, m.kind) for m in mutations(SOURCE, "f", seed)}


@pytest.mark.parametrize(
    "wanted",
    [
        ("<=", "<", "compare"),
        ("is not", "is", "compare"),
        ("and", "or", "boolean"),
        ("or", "and", "boolean"),
        ("**", "*", "arithmetic"),
        ("+=", "-=", "arithmetic"),
        ("2", "3", "constant"),
        ("2", "1", "constant"),
        ("0", "1", "constant"),
        ("not values", "values", "negation"),
        ("helper(i)", "not helper(i)", "negation"),
        ("len(values)", "len(values) - 1", "range"),
        ("limit", "limit + 1", "slice"),
        ("-1", "1", "sign"),
        ("break", "continue", "flow"),
        ("naïve.upper", "naïve.lower", "name"),
        ('""', '" "', "blank"),
    ],
)
def test_kinds_of_slips(wanted: tuple[str, str, str]) -> None:
    assert wanted in _pairs()


def test_only_the_body_of_the_function_is_touched() -> None:
    lines = {m.line for m in mutations(SOURCE, "f", 0)}
    assert min(lines) == 10
    assert "i + 1" not in {m.before for m in mutations(SOURCE, "f", 0)}
    assert mutations(SOURCE, "nothing", 0) == []


@pytest.mark.slow
@given(st.integers())
def test_every_mutant_differs_in_one_stretch_of_one_line_and_compiles(seed: int) -> None:
    found = mutations(SOURCE, "f", seed)
    assert found == mutations(SOURCE, "f", seed)
    assert set(found) == set(mutations(SOURCE, "f", 0))
    base = ast.dump(ast.parse(SOURCE))
    for mutation in found[:5]:
        mutant = apply(SOURCE, mutation)
        changed = [d for d in difflib.ndiff(SOURCE.split("\n"), mutant.split("\n")) if d[0] in "+-"]
        assert len(changed) == 2
        assert ast.dump(ast.parse(mutant)) != base
        back = Mutation(mutation.line, mutation.column, mutation.after, mutation.before, mutation.kind)
        assert apply(mutant, back) == SOURCE


def test_the_seed_decides_the_order_and_kinds_take_turns() -> None:
    orders = {tuple(mutations(SOURCE, "f", seed)) for seed in range(5)}
    assert len(orders) == 5
    kinds = [m.kind for m in mutations(SOURCE, "f", 1)]
    assert len(set(kinds[: len(set(kinds))])) == len(set(kinds))


@pytest.mark.parametrize(
    "wrong", [Mutation(99, 0, "a", "b", "x"), Mutation(1, 0, "nope", "b", "x"), Mutation(0, 0, "a", "b", "x")]
)
def test_a_mutation_that_does_not_fit_is_refused(wrong: Mutation) -> None:
    with pytest.raises(ValueError, match="has no"):
        apply(SOURCE, wrong)
