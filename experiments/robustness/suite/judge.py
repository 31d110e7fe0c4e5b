"""Whether what was seen is what must be true: the first fault found, in one line, or an empty text."""

from __future__ import annotations

import math
from typing import Any

from experiments.robustness.suite.case import RAISED, SECRET, CellCase, CellStep, Played, ReplyCase, Seen, Value

_SHOWN = 120


def step_fault(step: CellStep, seen: Seen, secret: str, as_text: bool = False, refusable: bool = False) -> str:
    """What is wrong with one cell; `as_text` where a session gives every answer as text, `refusable` where it does
    well to refuse the cell by a rule.
    """
    told = f"{seen.output}\n{seen.message}"
    if refusable and seen.refused:
        step = CellStep(step.code, RAISED, hides=step.hides)
    if seen.error not in step.error:
        said = _short(seen.message or seen.output[-_SHOWN:])
        return f"ended as {seen.error!r} and not as {' or '.join(sorted(step.error))!r}: {said}"
    if step.output is not None and seen.output.rstrip() != step.output.rstrip():
        return f"showed {_short(seen.output)} and not {_short(step.output)}"
    for text in step.shows:
        if text not in told:
            return f"did not show {_short(text)} but {_short(told)}"
    for text in step.hides:
        if (secret if text == SECRET else text) in told:
            return "showed the secret" if text == SECRET else f"showed {_short(text)}"
    if step.answer is not None and not same(_text(step.answer) if as_text else step.answer, seen.answer):
        return f"answered {_short(seen.answer)} and not {_short(step.answer)}"
    if len(seen.output) > step.characters:
        return f"showed {len(seen.output)} characters"
    return ""


def left_fault(case: CellCase, steps: list[Seen], alive: Seen, kept: Seen) -> str:
    """What is wrong with what is left: `alive` printed 6 * 7, and `kept` a variable of before the case."""
    if alive.error != "none" or not alive.output.rstrip().endswith("42"):
        return f"afterwards the session does not work: {_short(alive.message or alive.output)}"
    if case.keeps == "session" or (kept.error == "none" and kept.output.rstrip().endswith("41")):
        return ""
    if case.keeps == "variables":
        return f"a variable of an earlier cell is lost: {_short(kept.message)}"
    said = any("kept_before" in (*s.lost, s.message) or "kept_before" in s.message for s in (*steps, alive, kept))
    named = any("kept_before" in s.lost for s in (*steps, alive, kept))
    return "" if said or named else "a variable is lost, and nothing was said about it"


def played_fault(case: ReplyCase, played: Played, as_text: bool = False) -> str:
    """What is wrong with a run of a loop; `as_text` as above."""
    if played.error:
        return f"the run was left by {_short(played.error)}"
    if case.answer is not None and not same(_text(case.answer) if as_text else case.answer, played.answer):
        return f"answered {_short(played.answer)} and not {_short(case.answer)}"
    if case.stop is not None and played.stop not in case.stop:
        return f"stopped for {played.stop!r} and not for {' or '.join(sorted(case.stop))!r}"
    if case.steps is not None and played.steps != case.steps:
        return f"took {played.steps} replies and not {case.steps}"
    for text in case.shows:
        if text not in played.told:
            return f"did not tell the model {_short(text)}"
    for text in case.hides:
        if text in played.told:
            return f"told the model {_short(text)}"
    return ""


def same(one: Any, other: Any) -> bool:
    """Equal and of the same type at the top; NaN equals itself."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other) == 1:
        one, other = one[0], other[0]
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def _text(answer: Value) -> Value:
    return tuple(str(a) for a in answer[:1])  # pyright: ignore[reportReturnType]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]} ... {text[-_SHOWN // 2 :]}")
