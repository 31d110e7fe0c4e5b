"""Reading an answer: what value does it state?  Every reader returns `None` where nothing is stated clearly.

An answer may be a Python object, the `repr` of one (`np.int64(42)`, `datetime.date(2024, 3, 5)`), or prose.
Prose is read only where it can mean one thing: "There are 42 rows." states 42, "41 or 42" states nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, cast

LONGEST = 20_000  # characters of a text that are looked at: beyond it, an answer is not an answer but a dump

_NUMBER = r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)?(?:(?<=\d)\.\d*|\.\d+)?(?:(?<=[\d.])[eE][+-]?\d+)?"
_WHOLE = re.compile(rf"[$€£]?\s*({_NUMBER})\s*(?:%|[$€£])?\.?")
_INSIDE = re.compile(rf"(?<![\w.,+-])[$€£]?({_NUMBER})(?![\w])")
_DOUBT = re.compile(
    r"\b(?:unsure|sure|guess|maybe|perhaps|possibly|probably|either|approx\w*|traceback|\w+error)\b|[?~≈<>≤≥±]"
)
_HEDGE_BEFORE = re.compile(
    r"(?:\b(?:not|no|or|about|around|roughly|nearly|almost|over|under|above|below|between|than|least|most)|\w+n't)\s*$"
)
_HEDGE_AFTER = re.compile(r"^\s*[+*/^]|\b(?:or|not|least|most|wrong)\b|\w+n't\b")
_STATED = re.compile(
    r"(?:so,?\s+|therefore,?\s+)?(?:the\s+)?(?:final[\s_]+)?(?:answer|result)(?:\s+is|\s*[:=])[\s:]*(.+)", re.I
)
_ISO_DATE = re.compile(r"(?<![\d-])(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[ T]00:00(?::00(?:\.0+)?)?)?(?![\d-])")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH_FIRST = re.compile(r"([a-z]+)\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})")
_DAY_FIRST = re.compile(r"(\d{1,2})(?:st|nd|rd|th)? (?:of )?([a-z]+)\.?,? (\d{4})")
_WRAPPERS = (("**", "**"), ("__", "__"), ("`", "`"), ('"', '"'), ("'", "'"), ("“", "”"), ("\\(", "\\)"), ("$", "$"))


def read_number(answer: Any, *, prose: bool = True) -> Decimal | None:
    """The number that an answer states, exactly.

    A `bool` is no number and NaN and the infinities are none either.  Thousands separators, a currency sign, a
    per cent sign ("12%" is 12) and a full stop are allowed.  With `prose`, words may surround the number if it is
    the only one in the text and nothing hedges it ("about 42", "at least 42", "42 or so", "not 42", "maybe" ...).
    """
    answer = unwrap(answer)
    if isinstance(answer, bool) or answer is None:
        return None
    if isinstance(answer, str):
        return _number_in(tidy(answer), prose)
    if isinstance(answer, Decimal):
        value = answer
    elif isinstance(answer, Rational):
        value = Decimal(int(answer.numerator))
        value = value if answer.denominator == 1 else value / Decimal(int(answer.denominator))
    elif isinstance(answer, Real):
        value = Decimal(float(answer))
    else:
        return None
    return value if value.is_finite() else None


def _number_in(text: str, prose: bool) -> Decimal | None:
    whole = _WHOLE.fullmatch(text)
    if whole:
        return _decimal(whole[1])
    found = [m for m in _INSIDE.finditer(text) if re.search(r"\d", m[1])] if prose else []
    return _decimal(found[0][1]) if len(found) == 1 and _alone(text, found[0]) else None


def _alone(text: str, found: re.Match[str]) -> bool:
    """Say whether the words around contain no other digit and do not hedge."""
    before, after = text[: found.start()].casefold(), text[found.end() :].casefold()
    if re.search(r"\d", before + after) or _DOUBT.search(before + after):
        return False
    return not _HEDGE_BEFORE.search(before) and not _HEDGE_AFTER.search(after)


def _decimal(digits: str) -> Decimal | None:
    try:
        return Decimal(digits.replace(",", "").replace("_", ""))
    except InvalidOperation:
        return None


def read_truth(answer: Any) -> bool | None:
    """True or false, from a bool or from "yes", "no", "true", "false"."""
    answer = unwrap(answer)
    if isinstance(answer, bool):
        return answer
    return {"true": True, "yes": True, "false": False, "no": False}.get(read_text(answer) or "")


def read_text(answer: Any) -> str | None:
    """A text in the form in which texts are compared: no quotes or emphasis, one space, no full stop, case folded."""
    value = unwrap(answer)
    if isinstance(value, int | date) and not isinstance(value, bool | str):
        answer = str(value) if not isinstance(answer, str) else answer
    elif isinstance(value, str):
        answer = value
    return " ".join(tidy(answer).split()).removesuffix(".").casefold() if isinstance(answer, str) else None


def read_date(answer: Any) -> date | None:
    """The one day that an answer states: year first with - or /, or with the month's name.  "03/05/2024" is unclear."""
    answer = unwrap(answer)
    if isinstance(answer, datetime):
        return answer.date() if (answer.hour, answer.minute, answer.second) == (0, 0, 0) else None
    if isinstance(answer, date):
        return answer
    if not isinstance(answer, str):
        return None
    text = " ".join(tidy(answer).split())
    found = list(_ISO_DATE.finditer(text))
    if len(found) == 1 and _alone(text, found[0]):
        return _day(*found[0].groups())
    plain = text.casefold().removesuffix(".")
    if named := _MONTH_FIRST.fullmatch(plain):
        return _day(named[3], _month(named[1]), named[2])
    if named := _DAY_FIRST.fullmatch(plain):
        return _day(named[3], _month(named[2]), named[1])
    return None


def _month(name: str) -> int:
    return next((i for i, month in enumerate(_MONTHS, 1) if name in (month, month[:3])), 0)


def _day(year: Any, month: Any, day: Any) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def read_list(answer: Any) -> list[Any] | None:
    """The elements of a list, tuple, set, or of a text that lists them ("a, b and c", one a line, "[1, 2]")."""
    answer = literal(answer)
    if isinstance(answer, set | frozenset):
        return sorted(cast("set[Any]", answer), key=repr)
    if isinstance(answer, list | tuple):
        return list(cast("Sequence[Any]", answer))
    if hasattr(answer, "tolist"):  # an array or a column; imported by whoever made it
        value = answer.tolist()
        return cast("list[Any]", value) if isinstance(value, list) else [value]
    if not isinstance(answer, str):
        return None if answer is None else [answer]
    text = tidy(answer).removesuffix(".").strip()
    if len(text) > 1 and text[0] + text[-1] in ("[]", "()", "{}"):
        text = text[1:-1]
    if "\n" in text:
        parts = [re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", line) for line in text.splitlines()]
    elif ";" in text:
        parts = text.split(";")
    elif "," in text:
        parts = re.split(r",\s+(?:and\s+)?|\s+and\s+" if re.search(r",\s", text) else r",", text)
    else:
        parts = re.split(r"\s+and\s+", text)
    if len(parts) == 1 and re.fullmatch(r"[-+.\d\s]+", text):
        parts = text.split()
    return [p.strip() for p in parts if p.strip()]


def unwrap(answer: Any) -> Any:
    """The object that a `repr` stands for, and the only element of a list or an array with one element."""
    answer = literal(answer)
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    if isinstance(answer, list | tuple) and len(cast("Sequence[Any]", answer)) == 1:
        answer = literal(cast("Sequence[Any]", answer)[0])
    return answer


def tidy(text: str) -> str:
    """The text without what only decorates it; of "... The answer is X" or "Answer: X" on the last line, X."""
    text = text[:LONGEST].replace("\u2212", "-").replace("\u00a0", " ").strip()
    lines = text.splitlines()
    stated = _STATED.fullmatch(lines[-1].replace("**", "").strip()) if lines else None
    text = stated[1].strip() if stated else text
    boxed = re.fullmatch(r"\$*\\boxed\{([^{}]*)\}\$*\.?", text)
    text = boxed[1].strip() if boxed else text
    for opening, closing in _WRAPPERS * 2:
        inner = text[len(opening) : -len(closing)]
        if len(text) > len(opening + closing) and text == opening + inner + closing and opening not in inner:
            text = inner.strip()
    return text


def literal(answer: Any) -> Any:
    """The value whose `repr` a text is (a container, a NumPy scalar, a date, a fraction); else the answer itself."""
    if not isinstance(answer, str) or len(answer) > LONGEST or not re.match(r"\s*(?:[\w.]+\(|[\[({])", answer):
        return answer
    try:
        return _value(ast.parse(answer.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError, AttributeError):
        return answer


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(e) for e in node.elts]
    if isinstance(node, ast.Set):
        return {_value(e) for e in node.elts}
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    name = ast.unparse(node.func).rpartition(".")[2]
    values = [_value(a) for a in node.args]
    if re.fullmatch(r"u?int\d*|float\d*|str_?|bool_?|array|Timestamp|set|frozenset", name):
        if not values:
            return []
        return list(values[0]) if name in ("array", "set", "frozenset") else values[0]
    makers: dict[str, Any] = {"date": date, "datetime": datetime, "Decimal": Decimal, "Fraction": Fraction}
    if name in makers:
        return makers[name](*values)
    raise ValueError(name)
