"""Line numbers that are out of date are noticed, and a model whose numbers are right never hears of it."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_loop.tools import ToolError
from rlm_loop.tools.code import CodeTools

WORDS = [
    *("apples", "pears", "plums", "grapes", "melons", "cherries", "quinces", "lemons", "oranges", "figs", "dates"),
    *("olives", "walnuts", "almonds", "peaches", "apricots", "bananas", "berries", "currants", "mangoes"),
]
TEXT = "".join(f"take {n} {word}\n" for n, word in enumerate(WORDS, 1))

Does = Callable[[CodeTools], object]


def read(first: int = 1, last: int = 0) -> Does:
    return lambda tools: tools.read_file("f.txt", first, last)


def edit(first: int, last: int, text: str) -> Does:
    return lambda tools: tools.apply_edit("f.txt", first, last, text)


def rewritten(old: str, new: str) -> Does:
    return lambda tools: (tools.root / "f.txt").write_text(TEXT.replace(old, new))


GROW = edit(2, 2, "take 2 red pears\ntake 3 green pears\ntake 4 blue pears")  # what comes below moves by 2


@pytest.mark.parametrize(
    ("before", "call", "says"),
    [
        # right numbers: nothing is said
        pytest.param([], edit(10, 10, "take 11 figs"), "", id="never read"),
        pytest.param([read()], edit(10, 10, "take 11 figs"), "", id="as read"),
        pytest.param([read(), GROW, read(9, 12)], edit(12, 12, "take 11 figs"), "", id="read again"),
        pytest.param([read(), edit(15, 15, "")], edit(10, 10, ""), "", id="from the bottom up"),
        pytest.param([read(), GROW], edit(3, 4, "take 9 nuts"), "", id="what it wrote itself"),
        pytest.param([read(), GROW], edit(6, 5, "take 9 nuts"), "", id="inserted below what the edit showed"),
        pytest.param([read(), edit(2, 2, "take 9 nuts")], edit(10, 10, "take 11 figs"), "", id="nothing moved"),
        pytest.param([read(), rewritten("figs", "wigs")], edit(3, 3, "take 4 plums"), "", id="changed elsewhere"),
        pytest.param([read(1, 5), GROW], edit(12, 12, "nuts"), "", id="these lines were never read"),
        # other lines stand there now: refused once
        pytest.param([read(), GROW], edit(10, 10, "take 11 figs"), "line 10 is", id="moved by an edit"),
        pytest.param([read(), GROW], edit(10, 11, ""), "lines 10 to 11 are", id="two lines moved by an edit"),
        pytest.param([read(), GROW], edit(11, 10, "take 9 nuts"), "line 11 is", id="inserted"),
        pytest.param(
            [read(), rewritten("take 1 ", "first\ntake 1 ")],
            edit(10, 10, "take 11 figs"),
            "line 10 is",
            id="moved by something else",
        ),
        pytest.param(
            [lambda t: t.search_code("figs"), GROW], edit(10, 10, "nuts"), "line 10 is", id="the number was a search's"
        ),
    ],
)
def test_edits_by_numbers_of_before(tmp_path: Path, before: list[Does], call: Does, says: str) -> None:
    (tmp_path / "f.txt").write_text(TEXT)
    tools = CodeTools(tmp_path)
    for step in before:
        step(tools)
    was = (tmp_path / "f.txt").read_text()
    if says:
        with pytest.raises(ToolError) as refused:
            call(tools)
        changed = "not as you read, f.txt has changed since: read it again"
        assert refused.value.message == f"not changed: {says} {changed}; the same call again is taken as meant"
        assert (tmp_path / "f.txt").read_text() == was
    call(tools)  # the same call again is meant
    assert (tmp_path / "f.txt").read_text() != was


_lines = st.lists(st.sampled_from([*WORDS, "", "    pass", "    return None"]), min_size=1, max_size=12)


@settings(max_examples=80, deadline=None)
@given(st.data(), _lines)
def test_who_edits_by_the_numbers_shown_last_pays_nothing(data: st.DataObject, start: list[str]) -> None:
    """The view of a model that trusts a number only as long as nothing has moved the line away from it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "f.txt"
        file.write_text("\n".join(start) + "\n")
        tools = CodeTools(Path(folder))
        unique = itertools.count()
        view: dict[int, str] = {}
        for _ in range(data.draw(st.integers(1, 8))):
            lines = file.read_text().split("\n")[:-1]
            right = [n for n, line in view.items() if n <= len(lines) and lines[n - 1] == line]
            if not right or data.draw(st.booleans()):
                first = data.draw(st.integers(1, max(1, len(lines))))
                shown = tools.read_file("f.txt", first, data.draw(st.integers(first, first + 5)))
            else:
                first = last = data.draw(st.sampled_from(right))
                while last + 1 in right and data.draw(st.booleans()):
                    last += 1
                new = data.draw(st.lists(st.sampled_from(WORDS), max_size=3))
                new = [f"{word} {next(unique)}" for word in new]
                if len(lines) - (last - first + 1) + len(new) == 0:
                    continue
                shown = tools.apply_edit("f.txt", first, last, "\n".join(new))
            for row in shown.splitlines():
                number, _, line = row.partition(": ")
                if number.isdigit():
                    view[int(number)] = line
