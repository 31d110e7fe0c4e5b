"""Run a session's cells again, with recorded host results, to get its variables back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rlm_loop.repl.host.calls import RecordedCalls
from rlm_loop.repl.host.driver import Driver, Ended
from rlm_loop.repl.journal import Cell, Rebuilt, Setting
from rlm_loop.repl.results import Fate, cell_result
from rlm_loop.repl.text import same_text

_LEAST = 5.0  # seconds that a cell may take when it runs again, more if it took long; a busy machine is slow


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
        session: int,
        given: frozenset[str],
    ) -> None:
        self._events, self._cap, self._clock, self._session = tuple(events), cap, clock, session
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
            elif not self._again(driver, event):
                return False
        return self._drop(driver, [n for n in self._names if n not in expected])

    def outcome(self, expected: tuple[str, ...]) -> tuple[Rebuilt, tuple[str, ...]]:
        """What came of it, and the names that there are now: exactly those of before that could be had again."""
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
            ended = self._do(driver, event.frame or {"t": "new_run"}, _LEAST)
            if ended.how != "done":
                self._ended.add(id(event))
                return False
            if "error" not in ended.report:
                return True
        self._notes.append(f"the host's value of {event.frame['name'] if event.frame else '?'} could not be set again")
        return True

    def _again(self, driver: Driver, cell: Cell) -> bool:
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
        result = cell_result(ended, Fate(), 0, self._cap)
        what = ""
        if calls.unknown or calls.missing:
            what = f"called {', '.join(dict.fromkeys(calls.unknown + calls.missing))} otherwise"
        elif result.error != cell.error:
            what = f"failed: {result.message}" if result.error else "did not fail"
        elif not same_text(cell.output, result.output):
            what = "printed something else"
        elif other := [n for n in changed if n in cell.changed and changed[n] != cell.changed[n]]:
            what = f"gave {', '.join(other)} another value"
            self._doubtful.update(other)
            self._notes.append(f"cell {cell.step} {what} when it was run again")
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
        job = driver.send(frame, driver.number())
        ended = driver.wait(job, limit, calls or driver.calls({}), session=self._session)
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
