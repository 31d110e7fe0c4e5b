"""Cells of a recorded run, run again in a new session with the recorded results of what they asked of the host."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.actions import CallTool, FailureKind, Observation, RunCode
from rlm_loop.repl.base import Session
from rlm_loop.repl.cell_calls import CellCall, asked
from rlm_loop.repl.host.incoming import decode
from rlm_loop.repl.text import same_text

#: A cell that ended so never ran.
_NOT_RUN: tuple[FailureKind | None, ...] = ("skipped", "invalid_arguments", "denied", "unknown_tool", "malformed")
#: One that ended so was stopped, and might go on again.
_STOPPED: tuple[FailureKind | None, ...] = ("timeout", "died", "interrupted", "budget")
_CELL = re.compile(r"(?<=<cell )\d+(?=>)")

Fallback = Callable[[str, Sequence[Any], Mapping[str, Any]], Any]


@dataclass
class PastCell:
    """A cell as it ran in a turn: its code, what came of it, and the host calls of that turn."""

    turn: int
    code: str
    seen: Observation
    calls: list[CellCall] = field(default_factory=list[CellCall])


def cells_of(
    turn: int, actions: Iterable[object], seen: Iterable[Observation], calls: list[CellCall]
) -> list[PastCell]:
    """The cells of a turn that ran, in order; they share the turn's host calls."""
    found: list[PastCell] = []
    for action, observation in zip(actions, seen, strict=True):
        code = _code(action)
        kind = None if observation.failure is None else observation.failure.kind
        if code is not None and kind not in _NOT_RUN:
            found.append(PastCell(turn, code, observation, calls))
    return found


def _code(action: object) -> str | None:
    if isinstance(action, RunCode):
        return action.code
    if isinstance(action, CallTool) and action.name == "python":
        try:
            code = json.loads(action.arguments or "{}", strict=False).get("code")
        except (ValueError, AttributeError):
            return None
        return code if isinstance(code, str) else None
    return None


def run_again(
    session: Session, cells: Iterable[PastCell], names: Iterable[str], fallback: Callable[[PastCell], Fallback | None]
) -> tuple[str, ...]:
    """Run the cells; host functions of these names give what they gave, and are not called.

    `fallback` answers calls of a cell that are not on record.  Returns what was not as before, a line each; a cell that
    was stopped is not run again.
    """
    notes: list[str] = []
    for cell in cells:
        kind = None if cell.seen.failure is None else cell.seen.failure.kind
        if kind in _STOPPED:
            notes.append(f"a cell of turn {cell.turn} was stopped ({kind}), and is not run again")
            continue
        played = Played(cell.calls, fallback(cell))
        session.add_tools({name: played.function(name) for name in names})
        result = session.run(cell.code, timeout=max(60.0, 3 * cell.seen.seconds))
        failed = result.error is not None
        was = kind == "runtime"
        where = f"a cell of turn {cell.turn}"
        if played.unknown:
            notes.append(f"{where} called {', '.join(dict.fromkeys(played.unknown))} otherwise when it was run again")
        elif failed != was:
            said = f"failed: {result.message}" if failed else "did not fail"
            notes.append(f"{where} {said} when it was run again")
        elif not cell.seen.truncated and kind in (None, "runtime") and not _same(cell.seen.text, result.output):
            notes.append(f"{where} printed something else when it was run again")
    return tuple(notes)


def _same(before: str, now: str) -> bool:
    old, new = (_CELL.sub("", text).strip() for text in (before, now))
    return old.startswith(new) or same_text(old, new)


class Played:
    """Host functions that give what they gave; one call on record answers one call."""

    def __init__(self, calls: list[CellCall], fallback: Fallback | None = None) -> None:
        self._calls, self._fallback = calls, fallback
        self.unknown: list[str] = []

    def function(self, name: str) -> Callable[..., Any]:
        def play(*args: Any, **kwargs: Any) -> Any:
            return self._play(name, args, kwargs)

        return play

    def _play(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        wanted = asked(args, kwargs)
        for place, call in enumerate(self._calls):
            if call.name == name and call.asked == wanted:
                del self._calls[place]
                return _again(call.outcome or {"error": "RuntimeError: it had not answered when its cell ended"})
        if self._fallback is not None:
            try:
                return self._fallback(name, args, kwargs)
            except LookupError:
                pass
        self.unknown.append(name)
        raise RuntimeError("this call is not on record, and is not made while the cell runs again")


def _again(outcome: Mapping[str, Any]) -> Any:
    if "value" in outcome:
        return decode(outcome["value"])
    if "left_out" in outcome:
        raise RuntimeError(f"the result of this call was too long to be recorded ({outcome['left_out']:,} characters)")
    name, _, text = str(outcome.get("error", outcome.get("end"))).partition(": ")
    raise type(name if name.isidentifier() else "RuntimeError", (Exception,), {})(text)


def text_key(text: str) -> str:
    """The SHA-256 by which traces name a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
