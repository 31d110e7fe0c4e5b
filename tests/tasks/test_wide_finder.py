"""More kinds of slips: each is found, changes one stretch of one line, and compiles."""

from __future__ import annotations

import ast
import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.bug_search.finder import functions, mutations
from experiments.bug_search.wide_finder import WideFinder
from rlm_loop.tasks.mutation import apply

SOURCE = '''import math


class Box:
    def put(self, item: "thing", place, *, strict=False, depth=2):
        """Put "it" in."""
        found: "int" = self.look(item, place)
        if not found and strict and place in self:
            raise KeyError(f"no {item}")
        elif item == "old":
            self.items.clear()
            place = self.shift(place, by=3, back=True)
        if strict:
            self.count += 1
        try:
            depth = depth + 1
            total = math.floor(depth)
        except ValueError:
            return place, item
        return item if strict else "none"


async def later(x):
    return isinstance(x, int)
'''


def _pairs(function: str = "Box.put") -> set[tuple[str, str, str]]:
    return {(m.before, m.after, m.kind) for m in mutations(SOURCE, function, 0, finder=WideFinder)}


@pytest.mark.parametrize(
    "wanted",
    [
        ("item, place", "place, item", "swapped arguments"),
        ("place, item", "item, place", "swapped items"),
        ("not found and strict and place in self", "strict and place in self", "missing condition"),
        ("not found and strict and place in self", "not found and strict", "missing condition"),
        ('raise KeyError(f"no {item}")', "pass", "missing statement"),
        ("self.items.clear()", "", "missing statement"),
        ("self.count += 1", "pass", "missing statement"),
        ("depth = depth + 1", "", "missing statement"),
        ("KeyError", "IndexError", "exception"),
        ("ValueError", "TypeError", "exception"),
        ("elif", "if", "branch"),
        ("+=", "=", "accumulation"),
        ("self.shift(place, by=3, back=True)", "self.shift(place, by=3)", "missing argument"),
        ("strict", "depth", "wrong variable"),
        ('"old"', '"OLD"', "string"),
        ('"old"', '"ol"', "string"),
        ("2", "3", "default value"),
        ("False", "True", "default value"),
        ('item if strict else "none"', '"none" if strict else item', "swapped branches"),
        ("not found", "found", "negation"),
    ],
)
def test_kinds_of_slips(wanted: tuple[str, str, str]) -> None:
    assert wanted in _pairs()


def test_what_does_nothing_or_fails_at_once_is_left_alone() -> None:
    found = _pairs()
    assert not {'"thing"', '"int"', '"it"'} & {before for before, _, _ in found}  # annotations, docstring
    assert ("total = math.floor(depth)", "", "missing statement") not in found  # bound nowhere before
    assert _pairs("later") == set()  # the order of arguments of isinstance is never mixed up


def test_methods_have_dotted_names() -> None:
    assert [name for name, _ in functions(ast.parse(SOURCE))] == ["Box.put", "later"]
    assert mutations(SOURCE, "put", 0, finder=WideFinder) == []


@pytest.mark.slow
@given(st.integers())
def test_every_mutant_compiles_and_differs_in_one_line(seed: int) -> None:
    found = mutations(SOURCE, "Box.put", seed, finder=WideFinder)
    assert set(found) >= set(mutations(SOURCE, "Box.put", seed))
    for mutation in found[:10]:
        mutant = apply(SOURCE, mutation)
        changed = [d for d in difflib.ndiff(SOURCE.split("\n"), mutant.split("\n")) if d[0] in "+-"]
        assert len(changed) == (2 if mutation.after else 1)
        assert ast.dump(ast.parse(mutant)) != ast.dump(ast.parse(SOURCE))
