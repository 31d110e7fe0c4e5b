"""Judging an answer: exact in the value, lenient in the spelling.

What counts as which value is said in `reading`.  A verdict never raises, whatever the answer is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, localcontext
from typing import Any, Literal, cast, get_args

from rlm_loop.outcome import Score
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.reading import read_date, read_list, read_number, read_text, read_truth

How = Literal["exact", "number", "text", "date", "list", "any_order", "truth", "contains", "regex"]
HOWS: tuple[How, ...] = get_args(How)


@dataclass(frozen=True)
class Match:
    """A scorer: resolved when the attempt's answer states `expected`.

    `how="exact"` picks by the type of `expected`: truth, number, date, list, else text.  `number` compares within
    `tolerance`, an absolute difference (`None`: 0 for an integer, one part in 10^9 for a float), elements of a list
    too.  `list` compares in order, `any_order` as a multiset.  `contains` looks for the text, not inside a longer word
    or number, case folded; `regex` searches with `re`.
    """

    expected: Any
    how: How = "exact"
    tolerance: float | None = None

    def __post_init__(self) -> None:
        """Refuse what could never be resolved: an expected value that does not fit, a bad pattern or tolerance."""
        if self.how not in HOWS:
            raise ValueError(f"how={self.how!r} is none of {', '.join(HOWS)}")
        if self.tolerance is not None and not (0 <= self.tolerance < float("inf")):
            raise ValueError(f"tolerance must be a number of at least 0, not {self.tolerance!r}")
        kinds: dict[str, Any] = {"list": (list, tuple), "any_order": (list, tuple), "truth": bool}
        fits = isinstance(self.expected, kinds.get(self.how, object))
        if self.how == "regex":
            try:
                re.compile(str(self.expected))
            except re.error as error:
                raise ValueError(f"expected {self.expected!r} is not a regular expression: {error}") from None
        elif not fits or not matches(self.expected, self.expected, self.how, self.tolerance):
            raise ValueError(f"expected {self.expected!r} cannot be compared as {self.how}")

    def __call__(self, attempt: Attempt) -> Score:
        evidence: dict[str, Any] = {"how": self.how, "expected": self.expected}
        if self.tolerance is not None:
            evidence["tolerance"] = self.tolerance
        try:
            answer = attempt.answer
            evidence["answered"] = attempt.answered
            evidence["answer"] = _shown(answer)
            if answer is None:
                return Score(False, 0.0, "no answer", evidence)
            right = matches(answer, self.expected, self.how, self.tolerance)
        except Exception as error:  # an answer can be any object, with any __eq__, __str__ or tolist
            return Score(False, 0.0, f"the answer cannot be compared: {type(error).__name__}", evidence)
        reason = "right" if right else f"expected {_shown(self.expected, 80)}, got {evidence['answer'][:80]}"
        return Score(right, float(right), " ".join(reason.split()), evidence)


def matches(answer: Any, expected: Any, how: How = "exact", tolerance: float | None = None) -> bool:
    """Say whether `answer` states `expected`; see `Match`.  An `expected` that does not fit `how` is a `ValueError`."""
    if how == "exact":
        how = kind_of(expected)
    if how == "number":
        return _same_number(read_number(answer), expected, tolerance)
    if how == "truth":
        return read_truth(answer) is expected
    if how == "date":
        return read_date(answer) == _known(read_date(expected), expected, how)
    if how in ("list", "any_order"):
        return _same_list(read_list(answer), list(expected), tolerance, ordered=how == "list")
    if how == "contains":
        return _contains(str(answer), str(expected))
    if how == "regex":
        return re.search(str(expected), str(answer)) is not None
    return read_text(answer) == _known(read_text(expected), expected, how)


def kind_of(expected: Any) -> How:
    """The way in which a value of this type is compared."""
    if isinstance(expected, bool):
        return "truth"
    if isinstance(expected, int | float | Decimal):
        return "number"
    if isinstance(expected, date):
        return "date"
    return "list" if isinstance(expected, list | tuple) else "text"


def _same_number(got: Decimal | None, expected: Any, tolerance: float | None) -> bool:
    want = _known(read_number(expected), expected, "number")
    if got is None:
        return False
    if tolerance is None:
        tolerance = 1e-9 * max(1.0, abs(expected)) if isinstance(expected, float) else 0
    if not tolerance or got == want:
        return got == want
    with localcontext() as context:
        context.prec = 60
        # 0.125 is within 0.005 of 0.12 and of 0.13
        return abs(got - want) <= Decimal(tolerance) * (1 + Decimal("1e-9"))


def _same_list(got: list[Any] | None, expected: Sequence[Any], tolerance: float | None, *, ordered: bool) -> bool:
    if got is None or len(got) != len(expected):
        return False
    if ordered:
        return all(_same_element(g, e, tolerance) for g, e in zip(got, expected, strict=True))
    left = list(got)
    for element in expected:
        index = next((i for i, g in enumerate(left) if _same_element(g, element, tolerance)), None)
        if index is None:
            return False
        del left[index]
    return True


def _same_element(got: Any, expected: Any, tolerance: float | None) -> bool:
    if kind_of(expected) == "number":  # inside a list no words: "about 3" or "row 3" is not an element 3
        return _same_number(read_number(got, prose=False), expected, tolerance)
    if isinstance(expected, list | tuple) and not isinstance(got, list | tuple):
        return False
    return matches(got, cast(Any, expected), tolerance=tolerance)


def _contains(answer: str, expected: str) -> bool:
    wanted = " ".join(expected.split()).casefold()
    before = r"(?<!\w)" if wanted[:1].isalnum() else ""
    after = r"(?!\w)(?![.,]\d)" if wanted[-1:].isalnum() else ""
    if wanted[:1].isdigit():
        before = r"(?<!\w)(?<!\d[.,])(?<![-+.])"
    return re.search(before + re.escape(wanted) + after, " ".join(answer.split()).casefold()) is not None


def _known(value: Any, expected: Any, how: str) -> Any:
    if value is None:
        raise ValueError(f"expected {expected!r} cannot be compared as {how}")
    return value


def _shown(value: Any, longest: int = 400) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
