"""Which answers count as which value, and that no answer can break a scorer."""

from __future__ import annotations

import itertools
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.tasks import Attempt, Match, matches

DAY = date(2024, 3, 5)
#: An expected value, and answers that state it.
RIGHT: list[tuple[Any, list[Any]]] = [
    (42, [42, 42.0, "42", "42.0", "+42", " 42 \n", "42.", "'42'", "`42`", "**42**", "$42", "42 €", "$42$",
          "\\boxed{42}", "(42)", [42], "[42]", "The answer is 42.", "There are 42 rows.", "n = 42", "Answer: 42",
          "final_answer = 42", "I count 3 and 39.\nSo the answer is 42", "The primes that are not even sum to 42.",
          "np.int64(42)", "array([42])"]),
    (1234, ["1,234", "1_234"]), (1234567.5, ["1,234,567.5"]), (-7, ["-7", "\u22127"]), (1000, ["1e3"]), (12, ["12%"]),
    (-42, ["x=-42"]), (2.5, ["numpy.float64(2.5)", "Decimal('2.5')", "Fraction(5, 2)", Fraction(5, 2), Decimal("2.5")]),
    (0.3, [0.1 + 0.2, "0.3"]), (10**30, [10**30, str(10**30)]),
    ("paris", ["Paris"]), ("Paris", [" 'Paris' ", "Paris.", "the answer is Paris", ["Paris"], "np.str_('Paris')"]),
    ("101101", [101101]), ("new york", ["New  York"]), ("[1, 2]", ["[1, 2]"]),
    ([1, 2], [[1, 2], (1, 2), "1, 2", "1,2", "1 2", "[1, 2]", "1 and 2", "[1,\n 2]", "1\n2", "array([1, 2])",
              "np.array([1.0, 2.0])", "[np.int64(1), np.int64(2)]"]),
    (["a", "b"], ["- a\n- b", "1. a\n2. b", "['a', 'b']"]), (["a", "b", "c"], ["a, b, and c"]),
    ([1234, 5], ["1,234, 5"]), (["a"], ["a"]), ([], [[], "[]"]),
    (DAY, ["2024-03-05", DAY, datetime(2024, 3, 5), "2024-03-05 00:00:00", "2024/3/5", "March 5, 2024",
           "5th of March 2024", "datetime.date(2024, 3, 5)", "The date is 2024-03-05.",
           "Timestamp('2024-03-05 00:00:00')"]),
    (True, [True, "yes"]), (False, ["False", "No."]), ("np.True_", ["np.True_"]),
]  # fmt: skip

#: An expected value, and answers that do not state it.
WRONG: list[tuple[Any, list[Any]]] = [
    (42, ["41 or 42", "42 or 41", "42 or so", "41, 42", "about 42", "at least 42", "more than 42", "not 42",
          "It isn't 42", "42 is wrong", "maybe 42", "42?", "42+", "~42", "42nd", "v42", "0x2a", "4 2", "42/1",
          "6*7 = 42", "40-42", "2042-01-01", "[41, 42]", [42, 42], {"n": 42}, "{'n': 42}", "421", float("nan"), "nan",
          float("inf"), "", None, "forty-two", 42.4, b"42", 42j, "KeyError: 42", "Answer: 42\nAnswer: 41",
          "np.int64(41)", "max(41, 42)"]),
    (1234, ["12,34"]), (1, [True, "True"]), (0, [False]), (-42, ["answer-42"]), (12, ["0.12"]),
    (10**30, [10**30 + 1, str(10**30 + 1)]),
    ("Paris", ["Paris or Rome", "not Paris", ["Paris", "Rome"], "Pari"]), ("3", [3.0]), ("true story", [True]),
    ([1, 2], [[2, 1], [1], "1, 2, 3", "1, about 2", [True, 2], 12]), (["a", "b"], ["a b", "a\nc"]), (["a"], [{"a": 1}]),
    (DAY, ["03/05/2024", "2024-03-05 or 2024-03-06", "2024-13-05", "2024-03-05 11:30", datetime(2024, 3, 5, 1),
           "5 Foo 2024"]),
    (True, [1, "yes and no", "Yesterday"]), (False, [0, None]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "expected", "right"),
    [(a, expected, table is RIGHT) for table in (RIGHT, WRONG) for expected, answers in table for a in answers],
    ids=repr,
)
def test_states_the_value(answer: Any, expected: Any, right: bool) -> None:
    assert matches(answer, expected) is right


def test_tolerance_is_an_absolute_difference() -> None:
    answers = ("0.125", 0.12, 0.115, "0.1251", "0.1149", "0.1%", "12")
    assert [a for a in answers if matches(a, 0.12, tolerance=0.005)] == ["0.125", 0.12, 0.115]


@pytest.mark.parametrize(
    ("answer", "expected", "how", "right"),
    [
        ("it is Paris, I think", "paris", "contains", True),
        ("Parisian", "paris", "contains", False),
        ("the count is 142", "42", "contains", False),
        ("1.42 and -42 and 42.5", "42", "contains", False),
        ("a (b)", "(b)", "contains", True),
        ("id AB-17", r"[A-Z]{2}-\d+$", "regex", True),
        ("id ab-17", r"[A-Z]{2}-\d+$", "regex", False),
        ("b, a, a", ["a", "a", "b"], "any_order", True),
        ("b, a", ["a", "a", "b"], "any_order", False),
        ({2, 1}, [1, 2], "any_order", True),
    ],
)
def test_other_ways(answer: Any, expected: Any, how: Any, right: bool) -> None:
    assert matches(answer, expected, how) is right


@pytest.mark.parametrize(
    ("expected", "how", "tolerance", "says"),
    [
        (float("nan"), "exact", None, "cannot be compared"),
        ("2024", "date", None, "cannot be compared as date"),
        ("a", "list", None, "cannot be compared as list"),
        ("yes", "truth", None, "cannot be compared as truth"),
        (1, "number", float("nan"), "tolerance"),
        (1, "fuzzy", None, "none of exact, number"),
    ],
)
def test_what_could_never_match_is_refused(expected: Any, how: Any, tolerance: float | None, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Match(expected, how, tolerance)


def test_evidence_holds_what_was_compared() -> None:
    score = Match(42)(Attempt(answer="41 or 42", answered=True))
    assert score.evidence == {"how": "exact", "expected": 42, "answer": "41 or 42", "answered": True}
    assert "expected 42, got 41 or 42" in score.reason
    assert Match(42)(Attempt()).reason == "no answer"


class Hostile:
    """Raises wherever it is touched."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    __hash__ = None  # type: ignore[assignment]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.datetimes()
    | st.decimals() | st.fractions() | st.complex_numbers() | st.from_regex(r"[\w.]*[(\[{][-\d., \w'\"()]*[)\]}]"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2) | st.tuples(inner),
    max_leaves=5,
)  # fmt: skip
EXPECTED = (42, 2.5, "text", DAY, [1, "a"], True)


@given(anything)
def test_a_scorer_never_raises(answer: Any) -> None:
    for expected in EXPECTED:
        assert Match(expected)(Attempt(answer=answer)).resolved in (True, False)


HOSTILE = {
    "raises": Hostile,
    "holds one that raises": lambda: [Hostile()],
    "deep": lambda: "[" * 5000,
    "deeper": lambda: "(" * 19_000,
    "many digits": lambda: "9" * 19_000,
    "huge": lambda: "1e999999999",
    "small": lambda: "-1e999999",
    "class": lambda: object,
    "endless": lambda: itertools.count(),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_hostile_answers_are_wrong(make: Any) -> None:
    answer = make()
    for expected in EXPECTED:
        assert not Match(expected)(Attempt(answer=answer)).resolved
    assert not Match(0.5, tolerance=0.1)(Attempt(answer=answer)).resolved


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_states_itself_in_every_spelling(n: float) -> None:
    for answer in (n, repr(n), f"The answer is {n}.", f"np.float64({n!r})", [n], f"There are {n} rows", f"**{n}**"):
        assert matches(answer, n)


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
def test_another_number_never_matches(a: int, b: int) -> None:
    assert matches(f"{a:,}", b) is (a == b)
    assert not matches(f"{a} or {b}", b)
    assert not matches([a, b], b)


@given(st.text())
def test_a_text_states_itself(text: str) -> None:
    assert matches(text, text)
    assert matches(f"  {text}\n", text)


@given(st.lists(st.integers() | st.text("abcxyz", min_size=1)))
def test_a_list_states_itself_and_only_in_order(items: list[Any]) -> None:
    assert matches(items, items)
    assert matches(repr(items), items)
    if items:
        assert matches(", ".join(map(str, items)), items)
        assert matches(items[::-1], items) is (items == items[::-1])
        assert matches(items[::-1], items, "any_order")


@given(st.dates(min_value=date(1000, 1, 1)))
def test_a_date_states_itself(day: date) -> None:
    spellings = repr(day), day.isoformat(), day.strftime("%B %d, %Y"), day.strftime("%d %b %Y")
    for answer in (day, datetime(day.year, day.month, day.day), *spellings):
        assert matches(answer, day)
