"""Robustness cases as data, the results of running one, and the comparison of both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ANY = "none raised stopped died"
"""The ways in which a cell ends: well, with an exception, at its time limit, with its process."""

ORDINARY = ("output", "answers and values", "names over cells", "source text", "context from outside")
"""Themes of ordinary work.  A session that refuses such a cell by a rule fails the case; elsewhere it does well."""

#: In `hides`: the secret of the world that the case was run in.
SECRET = "\0secret"
_SHOWN = 120


@dataclass(frozen=True)
class Seen:
    """Result of one cell, in the same words for every kind of session.

    `output` is shown to a model, `message` told besides, `answer` a tuple of one (or empty), `lost` the names that the
    session says are gone, `refused` says that the error was a rule of the session.
    """

    output: str = ""
    error: str = "none"
    message: str = ""
    answer: tuple[Any, ...] = ()
    lost: tuple[str, ...] = ()
    seconds: float = 0.0
    refused: bool = False


@dataclass(frozen=True)
class Step:
    """One cell and its expected result; None is not compared.

    `error` lists the ways in which it may end, `output` is compared except for blanks at its end.
    """

    code: str
    error: str = "none"
    output: str | None = None
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    answer: tuple[Any, ...] | None = None
    characters = 70_000


@dataclass(frozen=True, kw_only=True)
class Case:
    """`needs` lists features (see `kinds.ALL`), `seconds` bounds the whole case."""

    name: str
    theme: str
    needs: str = ""
    seconds: float = 10.0


@dataclass(frozen=True, kw_only=True)
class CellCase(Case):
    """Cells for one session, in order.

    `given` makes variables that are set first.  `keeps`: "variables" (all live on), "told" (they live on, or the model
    is told which are lost) or "session" (it works).  `after` names a look at the world at the end (`World.fault`).
    `fresh` asks for a session of its own; `options` are for it.  `host_killed` kills the host in the last cell.
    """

    steps: tuple[Step, ...]
    keeps: str = "variables"
    given: Mapping[str, Any] = field(default_factory=dict)
    after: str = ""
    fresh: bool = False
    host_killed: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


def cells(name: str, theme: str, *steps: str | Step, **rest: Any) -> CellCase:
    """Return a case with these cells; a text is a cell that must end well."""
    own = tuple(Step(step) if isinstance(step, str) else step for step in steps)
    return CellCase(name=name, theme=theme, steps=own, **rest)


@dataclass(frozen=True)
class Scripted:
    """A scripted reply that is more than a text: how it ended, and calls of tools as `(name, arguments)`."""

    text: str = ""
    finish_reason: str = "stop"
    calls: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReplyCase(Case):
    """Scripted replies of a model, and the expected run.  Others get no case with `loop` or `settings`."""

    replies: tuple[str | Scripted, ...]
    answer: tuple[Any, ...] | None = None
    stop: str = ""
    steps: int | None = None
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    context: Any = None
    loop: str = "tool-loop"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        return [reply.text if isinstance(reply, Scripted) else reply for reply in self.replies]


@dataclass(frozen=True)
class Played:
    """Result of a run: answer, reason to stop, replies used, and all that the model was told after the first."""

    answer: tuple[Any, ...] = ()
    stop: str = ""
    steps: int = 0
    told: str = ""


@dataclass(frozen=True)
class Verdict:
    colour: Literal["green", "red", "n/a"]
    reason: str = ""


def not_applicable(case: Case, features: frozenset[str]) -> str:
    """Return why a case means nothing for these features (empty: it does)."""
    needs = {*case.needs.split(), *(["variables"] if isinstance(case, CellCase) and len(case.steps) > 1 else [])}
    missing = sorted(needs - features)
    return f"needs: {', '.join(missing)}" if missing else ""


def step_fault(step: Step, seen: Seen, secret: str, as_text: bool = False, refusable: bool = False) -> str:
    """Return the first fault of a cell.  `as_text`: answers come as text; `refusable`: a rule may refuse the cell."""
    told = f"{seen.output}\n{seen.message}"
    if refusable and seen.refused:
        step = Step(step.code, "raised", hides=step.hides)
    if seen.error not in step.error.split():
        return f"ended as {seen.error!r} and not as {step.error!r}: {_short(seen.message or seen.output[-_SHOWN:])}"
    if step.output is not None and seen.output.rstrip() != step.output.rstrip():
        return f"showed {_short(seen.output)} and not {_short(step.output)}"
    for text in step.shows:
        if text not in told:
            return f"did not show {_short(text)} but {_short(told)}"
    for text in step.hides:
        if (secret if text == SECRET else text) in told:
            return "showed the secret" if text == SECRET else f"showed {_short(text)}"
    if step.answer is not None and not _same(step.answer, seen.answer, as_text):
        return f"answered {_short(seen.answer)} and not {_short(step.answer)}"
    return f"showed {len(seen.output)} characters" if len(seen.output) > step.characters else ""


def left_fault(case: CellCase, steps: list[Seen], alive: Seen, kept: Seen) -> str:
    """Return the fault of what is left: `alive` printed 6 * 7, and `kept` a variable from before the case."""
    if alive.error != "none" or not alive.output.rstrip().endswith("42"):
        return f"afterwards the session does not work: {_short(alive.message or alive.output)}"
    if case.keeps == "session" or (kept.error == "none" and kept.output.rstrip().endswith("41")):
        return ""
    if case.keeps == "variables":
        return f"a variable of an earlier cell is lost: {_short(kept.message)}"
    told = any("kept_before" in s.lost or "kept_before" in s.message for s in (*steps, alive, kept))
    return "" if told else "a variable is lost, and nothing was said about it"


def played_fault(case: ReplyCase, played: Played, as_text: bool = False) -> str:
    """Return the first fault of a run."""
    if case.answer is not None and not _same(case.answer, played.answer, as_text):
        return f"answered {_short(played.answer)} and not {_short(case.answer)}"
    if case.stop and played.stop != case.stop:
        return f"stopped for {played.stop!r} and not for {case.stop!r}"
    if case.steps is not None and played.steps != case.steps:
        return f"took {played.steps} replies and not {case.steps}"
    untold = [f"did not tell the model {_short(text)}" for text in case.shows if text not in played.told]
    return next(iter(untold + [f"told the model {_short(text)}" for text in case.hides if text in played.told]), "")


def _same(wanted: tuple[Any, ...], given: tuple[Any, ...], as_text: bool) -> bool:
    """Compare answers by value and type; NaN equals itself."""
    if not wanted or not given:
        return wanted == given
    one, other = str(wanted[0]) if as_text else wanted[0], given[0]
    if type(one) is not type(other):
        return False
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def _short(value: Any) -> str:
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]} ... {text[-_SHOWN // 2 :]}")
