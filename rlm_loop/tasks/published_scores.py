"""How OOLONG and RULER score an answer, after their own evaluation scripts.

OOLONG (Bertsch et al. 2025): exact is 1; a number that is off by d is 0.75 ** d; of several the share that was named.
RULER (Hsieh et al. 2024): the share of the references that stand in the answer, in any case; for question answering
one of them is enough.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.reading import read_date

_PHRASES = ("more common", "less common", "same frequency")
_DATE = re.compile(r"datetime\.date\((\d+), *(\d+), *(\d+)\)")


def oolong(answer: str, kind: str, place: str = "") -> Callable[[Any], float]:
    """The rule for a row: `answer` as published, `kind` its `answer_type` (empty for OOLONG real)."""
    if not kind.startswith("ANSWER_TYPE"):
        return lambda given: _real(answer, given)
    if found := _DATE.search(answer):
        year, month, day = map(int, found.groups())
        return lambda given: _dated(f"{year:04d}-{month:02d}-{day:02d}", given)
    try:
        value: Any = ast.literal_eval(answer)
        gold = str(value[0] if isinstance(value, list | tuple) else value)
    except (ValueError, SyntaxError, IndexError):
        raise SuiteFileError(f"{place}: column 'answer' is no Python list: {answer[:80]!r}") from None
    return lambda given: _synth(gold, kind, given)


def _synth(gold: str, kind: str, given: Any) -> float:
    said = _stated(given)
    if said.casefold() == gold.strip().casefold():
        return 1.0
    phrase = next((p for p in _PHRASES if p in said.casefold()), None)
    if phrase is not None and phrase in gold.casefold():
        return 1.0
    return _near(gold, said) if kind == "ANSWER_TYPE.NUMERIC" else 0.0


def _dated(gold: str, given: Any) -> float:
    said = given if not isinstance(given, str) else _stated(given)
    return float(read_date(said) == read_date(gold))


def _real(gold: str, given: Any) -> float:
    text = ", ".join(map(str, given)) if isinstance(given, list | tuple | set) else str(given)
    boxed = re.findall(r"\\boxed\{([^{}]*)\}", text)
    said = (boxed[-1] if boxed else text).strip()
    if re.fullmatch(r"-?\d+", gold.strip()):
        return _near(gold, said)
    wanted = {part.strip().casefold() for part in gold.split(",") if part.strip()}
    if len(wanted) == 1:
        return float(said.casefold() == gold.strip().casefold())
    return len(wanted & {part.strip().casefold() for part in said.split(",")}) / max(1, len(wanted))


def _near(gold: str, said: str) -> float:
    try:
        return 0.75 ** abs(int(gold) - int(said.replace(",", "")))
    except ValueError:
        return 0.0


def _stated(given: Any) -> str:
    """What stands after the last colon (`Label: spam`), without marks of emphasis and brackets."""
    if isinstance(given, list | tuple) and len(given) == 1:
        given = given[0]
    return str(given).rpartition(":")[2].strip().strip("*[]'\". ")


def ruler(references: Sequence[str], *, part: bool) -> Callable[[Any], float]:
    """All references wanted, or with `part` one of them."""

    def rule(given: Any) -> float:
        text = str(given).casefold()
        found = [reference.casefold() in text for reference in references]
        if not found:
            return 0.0
        return float(any(found)) if part else sum(found) / len(found)

    return rule


def ruler_question(text: str) -> str:
    """The question of a RULER input: its last line that is not the beginning of the answer."""
    lines = [line.strip() for line in text.strip().split("\n") if line.strip()]
    asked = [line for line in lines if not line.startswith("Answer:")] or lines
    question = asked[-1] if asked else text.strip()
    return question.partition(" Answer:")[0]
