"""What a model is told of a data frame, and how one is shown to a strategy without a REPL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm_loop.repl import describe_context
from rlm_loop.repl.contexts.context import FRAME_ROOM, TOLD, inline_context
from rlm_loop.repl.contexts.frame import START
from tests.lazy import Lazy, needs

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = Lazy("pandas")

pytestmark = needs("pandas", extra="studies")


def orders(rows: int = 40) -> Any:
    columns = {
        "day": pd.to_datetime(["2024-03-01", "2024-03-02"] * (rows // 2)),
        "product": ["chair", "desk"] * (rows // 2),
        "units": range(rows),
        "status": pd.Series((["paid", "open", "void", None] * rows)[:rows], dtype=object),
        "gift": [True, False] * (rows // 2),
    }
    return pd.DataFrame(columns)


def test_what_is_told() -> None:
    told = "a DataFrame of shape (40, 5); columns: 'day' (datetime), 'product' ('chair', 'desk'), 'units' (int), "
    told += "'status' ('open', 'paid', 'void', None), 'gift' (bool)"
    rows = "2024-03-01,chair,0,paid,True\n2024-03-02,desk,1,open,False\n"
    assert describe_context(orders()) == f"{TOLD} {told}; the first 2 rows as CSV: {rows!r}{START}"


def test_of_many_columns_as_many_are_told_as_there_is_room_for() -> None:
    told = describe_context(pd.DataFrame({f"a column with number {n}": [1.5] for n in range(30)}))
    assert told.endswith(", ...")
    assert "; columns: 'a column with number 0', 'a column with number 1'" in told
    fewer = describe_context(pd.DataFrame({f"column {n}": ["text " * 9, "b"] for n in range(13)}))
    assert "'column 0' (str), 'column 1' (str)" in fewer


COLUMNS: list[tuple[list[Any], str]] = [
    (["a", "b", "a"], "'a', 'b'"),
    (["b", None], "'b', None"),
    ([3, 1, 2], "1, 2, 3"),
    ([1.5, float("nan")], "1.5, nan"),
    ([True, False], "bool"),
    ([[1], [2]], "object"),
    (["a", 1], "1, 'a'"),
    (["long " * 20, "b"], "str"),
    ([f"v{i}" for i in range(13)], "str"),
    ([0, 1, 2, 3, 4, 5, 6], "int"),
    ([], "object"),
]


@pytest.mark.parametrize(("values", "told"), COLUMNS, ids=[repr(v)[:20] for v, _ in COLUMNS])
def test_a_column_is_told_by_its_few_values_or_its_type(values: list[Any], told: str) -> None:
    frame = pd.DataFrame({"x": pd.Series(values, dtype=None if values and not isinstance(values[0], str) else object)})
    assert f"columns: 'x' ({told})" in describe_context(frame)


def test_names_are_quoted_and_an_index_is_named() -> None:
    """An unquoted `end datetime` was read as the name of a column, in all seven runs of one table."""
    frame = pd.DataFrame({"a b": [1.5], 3: [2.5], ("x", 1): [3.5]}, index=pd.Index(["k"], name="key"))
    told = "columns: 'a b' (1.5), 3 (2.5), ('x', 1) (3.5); index: 'key'; the first row as CSV: 'k,1.5,2.5,3.5\\n'"
    assert told in describe_context(frame)
    assert "columns: 'a' (1), 'a' (2)" in describe_context(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert describe_context(pd.DataFrame()).endswith("a DataFrame of shape (0, 0)")


cells = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.lists(st.integers()))
frames = st.integers(0, 6).flatmap(
    lambda n: st.lists(st.tuples(st.text(max_size=12), st.lists(cells, min_size=n, max_size=n)), max_size=12)
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(frames)
def test_any_frame_is_told_within_its_room(columns: list[tuple[str, list[Any]]]) -> None:
    frame = pd.DataFrame({i: pd.Series(values, dtype=object) for i, (_, values) in enumerate(columns)})
    frame.columns = pd.Index([name for name, _ in columns], dtype=object)
    told = describe_context(frame)
    assert ("\n" in told, len(told) <= FRAME_ROOM, "DataFrame of shape" in told) == (False, True, True)
    named = [repr(n) for n, _ in columns]
    if named and len(f"{told.partition(';')[0]}; columns: {named[0]}") <= FRAME_ROOM:
        assert f"; columns: {named[0]}" in told


def test_no_more_rows_are_written_than_can_be_shown() -> None:
    """12,000 rows of 100 columns took six seconds before the first request."""
    written = 0

    class Cell:
        def __str__(self) -> str:
            nonlocal written
            written += 1
            return "x"

    frame = pd.DataFrame([[Cell()] * 10] * 1_000)
    assert len(inline_context(frame, limit=400)) <= 400
    assert describe_context(frame)
    assert written <= 3 * 10 * 41


def test_an_index_that_says_something_is_shown() -> None:
    indexed = inline_context(orders(4).set_index("product"), limit=9_000)
    assert indexed.startswith("product,day,units,status,gift\nchair,2024-03-01,0,paid,True\n")
    assert inline_context(orders(4), limit=9_000).startswith(
        "day,product,units,status,gift\n2024-03-01,chair,0,paid,True\n"
    )
