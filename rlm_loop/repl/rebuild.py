"""Run recorded cells again with the recorded results of what they asked of the host, and say what was not as before.

`Rebuild` does so from the journal of a session, after its REPL was lost or to go back to a cell; `run_again` does so
from a trace, in any session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.actions import CallTool, FailureKind, Observation, RunCode
from rlm_loop.repl.base import CellResult, Session
from rlm_loop.repl.cell_calls import MOST, CellCall
from rlm_loop.repl.host.calls import CellCalls, HostCall
from rlm_loop.repl.host.driver import Driver, Ended
from rlm_loop.repl.host.incoming import decode
from rlm_loop.repl.journal import Cell, Rebuilt, Setting
from rlm_loop.repl.results import cell_result
from rlm_loop.repl.text import dedented, same_text
from rlm_loop.repl.worker import form_of

_LEAST = 5.0  # seconds that a cell may take when it runs again, more if it took long; a busy machine is slow

#: A cell of a trace that ended so never ran.
_NOT_RUN: tuple[FailureKind | None, ...] = ("skipped", "invalid_arguments", "denied", "unknown_tool", "malformed")
#: One that ended so was stopped, and might go on again.
_STOPPED: tuple[FailureKind | None, ...] = ("timeout", "died", "interrupted", "budget")
_CELL = re.compile(r"(?<=<cell )\d+(?=>)")


# -- what both compare, and how both answer


def difference(asked: Iterable[str], failed: bool, result: CellResult, same_output: Callable[[], bool]) -> str:
    """Compare a cell with its record; returns the first difference in a few words, or an empty string.

    `asked` names the host tools that were called otherwise; `failed` says whether the cell failed before.
    """
    if names := ", ".join(dict.fromkeys(asked)):
        return f"called {names} otherwise"
    if failed != (result.error is not None):
        return f"failed: {result.message}" if result.error else "did not fail"
    return "" if same_output() else "printed something else"


class PastCalls:
    """Host calls on record; each answers one call that is equal to it."""

    def __init__(self, calls: list[HostCall] | list[CellCall]) -> None:
        self._left = calls
        self.unknown: list[str] = []
        """Names of tools that were called otherwise than in the record."""

    @property
    def missing(self) -> list[str]:
        """Names of tools that were called according to the record, and now were not."""
        return [call.name for call in self._left]

    def take(self, name: Any, args: Any, kwargs: Any) -> HostCall | CellCall | None:
        """The recorded call of a tool with these arguments (in the forms that cross), no longer on record after."""
        for place, call in enumerate(self._left):
            if call.name == name and call.asks(args, kwargs):
                return self._left.pop(place)
        return None


class RecordedCalls(CellCalls):
    """The calls of a cell that is run again in a worker: they are answered from the record, and no tool runs twice.

    What is not in the record is refused, except with `live`, where it is made.
    """

    def __init__(self, calls: CellCalls, recorded: Iterable[HostCall], live: bool = False) -> None:
        super().__init__(calls.worker, calls.generation, calls.tools, calls.clock)
        self.past, self._live = PastCalls([*recorded]), live

    def start(self, frame: Mapping[str, Any], session: int) -> None:
        name = frame.get("name")
        call = self.past.take(name, frame.get("args"), frame.get("kwargs"))
        if call is not None:
            if call.outcome is not None:  # else it had not answered when the cell ended, and will not now
                self.reply(frame.get("id"), dict(call.outcome))
        elif self._live:
            super().start(frame, session)
        else:
            self.past.unknown.append(str(name))
            refusal = "this call was not made when the cell ran first, and is not made while it runs again"
            self.reply(frame.get("id"), {"error": f"RuntimeError: {refusal}"})


# -- from a journal


class Rebuild:
    """One rebuilding, in as many attempts as it takes: a cell that ends the REPL is left out of the next attempt.

    `seconds` bounds the time of all cells together; one that would exceed it is not run, and what it set is lost.
    Where a cell is left out, the names that it had changed are removed: an earlier value would be wrong.  Not so
    those that were `given` by the host or the setup code, which come back as they were given.
    """

    def __init__(
        self,
        events: Iterable[Cell | Setting],
        seconds: float,
        cap: int,
        clock: Callable[[], float],
        given: frozenset[str],
    ) -> None:
        self._events, self._cap, self._clock = tuple(events), cap, clock
        self._given = given
        self._left, self._began = seconds, clock()
        self._ended: set[int] = set()
        self._held: set[str] = set()
        self._names: tuple[str, ...] = ()
        self._doubtful: set[str] = set()
        self._notes: list[str] = []
        self._ran = 0
        self.out: list[Cell] = []
        """Cells of which the effects are no part of the rebuilt namespace."""

    def attempt(self, driver: Driver, names: tuple[str, ...], expected: tuple[str, ...]) -> bool:
        """Run all; `names` are those of the fresh namespace, `expected` those that it should have in the end.

        `False` where the REPL ended on the way; each such failure takes one step less in the next attempt.
        """
        self._names, self._doubtful, self._notes, self._ran, self.out = names, set(), [], 0, []
        for event in self._events:
            if isinstance(event, Setting):
                if not self._set_again(driver, event):
                    return False
            elif reason := self._obstacle(event):
                if reason != "stopped":
                    self._notes.append(f"cell {event.step} was not run again ({reason})")
                self.out.append(event)
                if not self._drop(driver, event.changed):
                    return False
            elif not self._run(driver, event):
                return False
        return self._drop(driver, [n for n in self._names if n not in expected])

    def outcome(self, expected: tuple[str, ...]) -> tuple[Rebuilt, tuple[str, ...]]:
        """How the variables came back, and the names that exist now: those of before that were rebuilt."""
        here = set(self._names)
        rebuilt = Rebuilt(
            tuple(n for n in expected if n in here and n not in self._given),
            tuple(n for n in expected if n not in here),
            tuple(n for n in expected if n in here and n in self._doubtful | self._held),
            tuple(self._notes),
            self._ran,
            self._clock() - self._began,
        )
        return rebuilt, self._names

    def _obstacle(self, cell: Cell) -> str:
        """Why a cell must not run again; "stopped" where the model was told at the time."""
        if not cell.repeatable:
            return "stopped"
        if id(cell) in self._ended:
            return "it ended the process when it was"
        if cell.seconds > self._left:
            return f"it took {cell.seconds:.1f} s"
        return ""

    def _set_again(self, driver: Driver, event: Setting) -> bool:
        if id(event) not in self._ended:
            ended = self._do(driver, event.frame, _LEAST)
            if ended.how != "done":
                self._ended.add(id(event))
                return False
            if "error" not in ended.report:
                return True
        self._notes.append(f"the host's value of {event.name or '?'} could not be set again")
        return True

    def _run(self, driver: Driver, cell: Cell) -> bool:
        calls = RecordedCalls(driver.calls({}), cell.calls)
        limit = min(self._left, _LEAST + 3 * cell.seconds)
        began = self._clock()
        ended = self._do(driver, {"t": "exec", "code": cell.code, "file": f"<cell {cell.step}>"}, limit, calls)
        self._left -= self._clock() - began
        if ended.how != "done":
            self._ended.add(id(cell))
            return False
        changed = names_changed(ended)
        if ended.stopped:
            self._notes.append(f"cell {cell.step} went on for {limit:.1f} s when it was run again")
            self.out.append(cell)
            return self._drop(driver, {*cell.changed, *changed})
        self._ran += 1
        return self._compare(driver, cell, ended, changed, calls)

    def _compare(
        self, driver: Driver, cell: Cell, ended: Ended, changed: Mapping[str, str], calls: RecordedCalls
    ) -> bool:
        result = cell_result(ended, 0, self._cap)
        asked = [*calls.past.unknown, *calls.past.missing]
        what = difference(asked, cell.error is not None, result, lambda: same_text(cell.output, result.output))
        other = [n for n in changed if n in cell.changed and changed[n] != cell.changed[n]]
        if not what and other:
            self._doubtful.update(other)
            self._notes.append(f"cell {cell.step} gave {', '.join(other)} another value when it was run again")
            return True
        if not what:
            self._doubtful -= set(changed)
            return True
        self._notes.append(f"cell {cell.step} {what} when it was run again")
        self._doubtful.update(changed)
        if result.error is not None:  # what it did not get to keeps a value that is not the last one
            return self._drop(driver, [n for n in cell.changed if n not in changed])
        return True

    def _drop(self, driver: Driver, names: Iterable[str]) -> bool:
        gone = [n for n in names if n in self._names and n not in self._given and n not in self._held]
        if gone and self._do(driver, {"t": "drop", "names": gone}, _LEAST).how != "done":
            self._held |= set(gone)  # a `__del__` that ends the process: leave them next time
            return False
        return True

    def _do(self, driver: Driver, frame: Mapping[str, Any], limit: float, calls: RecordedCalls | None = None) -> Ended:
        ended = driver.wait(driver.send(frame), limit, calls or driver.calls({}))
        if ended.how == "done":
            self._names = names_in_report(ended, self._names)
        return ended


def names_in_report(ended: Ended, before: tuple[str, ...]) -> tuple[str, ...]:
    """The names in the namespace after a job; it reports them where they changed."""
    names = ended.report.get("names")
    if not isinstance(names, list):
        return before
    return tuple(n for n in names if isinstance(n, str))  # pyright: ignore[reportUnknownVariableType]


def names_changed(ended: Ended) -> dict[str, str]:
    """The names that a job bound anew or changed, with a summary of each value."""
    changed: Any = ended.report.get("changed")
    if not isinstance(changed, dict):
        return {}
    return {str(k): str(v) for k, v in changed.items()}


# -- from a trace


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
            as_written = kind == "runtime" and _NOT_DEDENTED in observation.text
            found.append(PastCell(turn, code if as_written else dedented(code), observation, calls))
    return found


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


def run_again(session: Session, cells: Iterable[PastCell], names: Iterable[str]) -> tuple[str, ...]:
    """Run the cells; host functions of these names give what they gave, and are not called.

    Returns what was not as before, a line each; a cell that was stopped is not run again.
    """
    notes: list[str] = []
    for cell in cells:
        seen = cell.seen
        kind = None if seen.failure is None else seen.failure.kind
        if kind in _STOPPED:
            notes.append(f"a cell of turn {cell.turn} was stopped ({kind}), and is not run again")
            continue
        past = PastCalls(cell.calls)
        session.add_tools({name: _recorded(name, past) for name in names})
        try:
            result = session.run(cell.code, timeout=max(60.0, 3 * seen.seconds))
        finally:
            session.remove_tools(names)
        whole = not seen.truncated and kind in (None, "runtime")
        what = difference(
            past.unknown,
            kind == "runtime",
            result,
            lambda seen=seen, now=result.output, whole=whole: not whole or _same_but_numbers(seen.text, now),
        )
        if what:
            notes.append(f"a cell of turn {cell.turn} {what} when it was run again")
    return tuple(notes)


def _same_but_numbers(before: str, now: str) -> bool:
    """Whether two outputs agree, apart from the numbers of cells."""
    old, new = (_CELL.sub("", text).strip() for text in (before, now))
    return old.startswith(new) or same_text(old, new)


def _recorded(name: str, past: PastCalls) -> Callable[..., Any]:
    """A host function that gives what it gave."""

    def play(*args: Any, **kwargs: Any) -> Any:
        forms = [form_of(a, MOST) for a in args], {key: form_of(value, MOST) for key, value in kwargs.items()}
        if (call := past.take(name, *forms)) is not None:
            return _again(call.outcome or {"error": "RuntimeError: it had not answered when its cell ended"})
        past.unknown.append(name)
        raise RuntimeError("this call is not on record, and is not made while the cell runs again")

    return play


def _again(outcome: Mapping[str, Any]) -> Any:
    if "value" in outcome:
        return decode(outcome["value"])
    if "left_out" in outcome:
        raise RuntimeError(f"the result of this call was too long to be recorded ({outcome['left_out']:,} characters)")
    name, _, text = str(outcome.get("error", outcome.get("end"))).partition(": ")
    raise type(name if name.isidentifier() else "RuntimeError", (Exception,), {})(text)
