"""Run recorded cells again with the recorded results of what they asked of the host, and say what was not as before.

`Rebuild` does so in the REPL of a session, after the one before was lost; `run_again` does so from a trace, in any
session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rlm_loop.actions import CallTool, FailureKind, Observation, RunCode
from rlm_loop.repl.base import CellCall, Session
from rlm_loop.repl.history import Setting
from rlm_loop.repl.host.driver import Driver, Ended
from rlm_loop.repl.host.incoming import decode
from rlm_loop.repl.records import CellRecord, PastCalls, Rebuilt, difference
from rlm_loop.repl.results import cell_result, names_changed, names_in_report
from rlm_loop.repl.text import dedented, same_text

_Tools = Mapping[str, Callable[..., Any]]
_NONE: _Tools = {}
_LEAST = 5.0  # seconds that a cell may take when it runs again, more if it took long; a busy machine is slow

#: A cell of a trace that ended so never ran.
_NOT_RUN: tuple[FailureKind | None, ...] = ("skipped", "invalid_arguments", "denied", "unknown_tool", "malformed")
#: One that ended so was stopped, and might go on again.
_STOPPED = ("timeout", "died", "interrupted", "budget")
_CELL = re.compile(r"(?<=<cell )\d+(?=>)")


class Rebuild:
    """A rebuilding, in as many attempts as it takes: a cell that ends the REPL is left out of the next attempt.

    `seconds` bounds the time of all cells together; one that would exceed it is not run, and what it set is lost.
    Where a cell is left out, the names that it had changed are removed: an earlier value would be wrong.  Not so
    those that were `given` by the host or the setup code, which come back as they were given.
    """

    def __init__(
        self,
        events: Sequence[CellRecord | Setting],
        seconds: float,
        cap: int,
        clock: Callable[[], float],
        given: frozenset[str],
        tools: Iterable[str],
    ) -> None:
        self._tools = tuple(tools)
        self._events, self._cap, self._clock, self._given = events, cap, clock, given
        self._left = seconds
        self._deadly: set[int] = set()
        self._names: tuple[str, ...] = ()
        self._doubtful: set[str] = set()
        self._notes: list[str] = []
        self.out: list[CellRecord] = []
        """Cells of which the effects are no part of the rebuilt namespace."""

    def attempt(self, driver: Driver, names: tuple[str, ...], expected: tuple[str, ...]) -> bool:
        """Run all; `names` are those of the fresh namespace, `expected` those that it should have in the end.

        Returns `False` where the REPL ended on the way; each such failure takes one step less in the next attempt.
        """
        self._names, self._doubtful, self._notes, self.out = names, set(), [], []
        for event in self._events:
            if isinstance(event, Setting):
                alive = self._set_again(driver, event)
            elif (reason := self._obstacle(event)) is None:
                alive = self._run(driver, event)
            else:
                if reason:
                    self._notes.append(f"cell {event.number} was not run again ({reason})")
                self.out.append(event)
                alive = self._drop(driver, event.changed)
            if not alive:
                return False
        return self._drop(driver, [n for n in self._names if n not in expected])

    def outcome(self, expected: tuple[str, ...]) -> tuple[Rebuilt, tuple[str, ...]]:
        """Return how the variables came back, and the names that exist now."""
        there = [n for n in expected if n in self._names]
        rebuilt = Rebuilt(
            tuple(n for n in there if n not in self._given),
            tuple(n for n in expected if n not in self._names),
            tuple(n for n in there if n in self._doubtful),
            tuple(self._notes),
        )
        return rebuilt, self._names

    def _obstacle(self, cell: CellRecord) -> str | None:
        """Return why a cell must not run again; an empty text where the model was told at the time."""
        if not cell.repeatable:
            return ""
        if id(cell) in self._deadly:
            return "it ended the process when it was"
        return f"it took {cell.seconds:.1f} s" if cell.seconds > self._left else None

    def _set_again(self, driver: Driver, event: Setting) -> bool:
        if id(event) not in self._deadly:
            ended = self._do(driver, event.frame, _LEAST)
            if ended.how != "done":
                self._deadly.add(id(event))
                return False
            if "error" not in ended.report:
                return True
        self._notes.append(f"the host's value of {event.name or '?'} could not be set again")
        return True

    def _run(self, driver: Driver, cell: CellRecord) -> bool:
        past = PastCalls(cell.calls)
        tools = {name: recorded(name, past) for name in self._tools}
        limit = min(self._left, _LEAST + 3 * cell.seconds)
        began = self._clock()
        ended = self._do(driver, {"t": "exec", "code": cell.code, "file": f"<cell {cell.number}>"}, limit, tools)
        self._left -= self._clock() - began
        if ended.how != "done":
            self._deadly.add(id(cell))
            return False
        changed = names_changed(ended)
        if ended.stopped:
            self._notes.append(f"cell {cell.number} went on for {limit:.1f} s when it was run again")
            self.out.append(cell)
            return self._drop(driver, {*cell.changed, *changed})
        result = cell_result(ended, limit, self._cap)
        asked = [*past.unknown, *past.missing]
        what = difference(asked, cell.error is not None, result, lambda: same_text(cell.output, result.output))
        other = [n for n in changed if n in cell.changed and changed[n] != cell.changed[n]]
        if what:
            self._doubtful.update(changed)
            self._notes.append(f"cell {cell.number} {what} when it was run again")
            if result.error is not None:  # what it did not get to keeps a value that is not the last one
                return self._drop(driver, [n for n in cell.changed if n not in changed])
        elif other:
            self._doubtful.update(other)
            self._notes.append(f"cell {cell.number} gave {', '.join(other)} another value when it was run again")
        else:
            self._doubtful -= set(changed)
        return True

    def _drop(self, driver: Driver, names: Iterable[str]) -> bool:
        gone = [n for n in names if n in self._names and n not in self._given]
        if gone and self._do(driver, {"t": "drop", "names": gone}, _LEAST).how != "done":
            # A `__del__` that ends the process: no cell is run again.
            self._deadly.update(id(e) for e in self._events if isinstance(e, CellRecord))
            return False
        return True

    def _do(
        self,
        driver: Driver,
        frame: Mapping[str, Any],
        limit: float,
        tools: _Tools = _NONE,
    ) -> Ended:
        ended, calls = driver.serve(frame, tools, limit)
        if isinstance(calls.ended, KeyboardInterrupt):
            raise calls.ended
        if ended.how == "done":
            self._names = names_in_report(ended, self._names)
        return ended


# -- from a trace


def cells_of(
    turn: int, actions: Iterable[object], seen: Iterable[Observation], calls: list[CellCall]
) -> list[CellRecord]:
    """Return the cells of a turn that ran, in order; they share the turn's host calls."""
    cells: list[CellRecord] = []
    for action, observation in zip(actions, seen, strict=True):
        code = _code(action)
        kind = None if observation.failure is None else observation.failure.kind
        if code is not None and kind not in _NOT_RUN:
            text = observation.text
            code = code if kind == "runtime" and _NOT_DEDENTED in text else dedented(code)
            error = kind if kind == "runtime" or kind in _STOPPED else None
            whole = not observation.truncated and kind in (None, "runtime")
            cells.append(CellRecord(code, calls, text, error, observation.seconds, {}, turn, whole))  # type: ignore[arg-type]
    return cells


#: What a cell came to that was indented as a whole, as long as calls were run as they were written.
_NOT_DEDENTED = "IndentationError: unexpected indent"


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


def run_again(session: Session, cells: Iterable[CellRecord], names: Iterable[str]) -> tuple[str, ...]:
    """Run the cells of a trace; host functions of these names give what they gave, and are not called.

    Returns what was not as before, a line each; a cell that was stopped is not run again.
    """
    notes: list[str] = []
    past, shared = PastCalls(()), None
    for cell in cells:
        if not cell.repeatable:
            notes.append(f"a cell of turn {cell.number} was stopped ({cell.error}), and is not run again")
            continue
        if cell.calls is not shared:
            past, shared = PastCalls(cell.calls), cell.calls
        past.unknown.clear()
        session.add_tools({name: recorded(name, past) for name in names})
        try:
            result = session.run(cell.code, timeout=max(60.0, 3 * cell.seconds))
        finally:
            session.give_back(names)
        same = not cell.whole or _same_but_numbers(cell.output, result.output)
        if what := difference(past.unknown, cell.error == "runtime", result, lambda same=same: same):
            notes.append(f"a cell of turn {cell.number} {what} when it was run again")
    return tuple(notes)


def _same_but_numbers(before: str, now: str) -> bool:
    """Return True if two outputs agree, apart from the numbers of cells."""
    old, new = (_CELL.sub("", text).strip() for text in (before, now))
    return old.startswith(new) or same_text(old, new)


def recorded(name: str, past: PastCalls, live: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A host function that gives what it gave; what is not on record the `live` one gives."""

    def play(*args: Any, **kwargs: Any) -> Any:
        if (call := past.take(name, args, kwargs)) is not None:
            return _result(call.outcome or {"error": "RuntimeError: it had not answered when its cell ended"})
        if live is not None:
            return live(*args, **kwargs)
        past.unknown.append(name)
        raise RuntimeError("this call is not on record, and is not made while the cell runs again")

    return play


def _result(outcome: Mapping[str, Any]) -> Any:
    if "value" in outcome:
        return decode(outcome["value"])
    if "left_out" in outcome:
        raise RuntimeError(f"the result of this call was too long to be recorded ({outcome['left_out']:,} characters)")
    name, _, text = str(outcome.get("error", outcome.get("end"))).partition(": ")
    raise type(name if name.isidentifier() else "RuntimeError", (Exception,), {})(text)
