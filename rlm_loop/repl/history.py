"""The record of a session: its cells and the host's variables, in order, enough to make the namespace again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop.repl.records import CellRecord
from rlm_loop.repl.results import RestartReport

_MOST = 64 << 20  # characters of code, output and host results that are kept; beyond, the oldest cells are forgotten


@dataclass(frozen=True, slots=True)
class Setting:
    """The host bound a variable, or, without a name, began a new run: the job that does it."""

    frame: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.frame.get("name", ""))


class History:
    """Cells and settings since the namespace began."""

    def __init__(self) -> None:
        self._events: list[CellRecord | Setting] = []
        self._weight = 0

    @property
    def cells(self) -> tuple[CellRecord, ...]:
        """The cells that have a part in the namespace, oldest first."""
        return tuple(e for e in self._events if isinstance(e, CellRecord))

    def add(self, cell: CellRecord) -> None:
        """Note a cell; the oldest are forgotten where all together grow too large."""
        self._events.append(cell)
        self._weight += cell.weight()
        while self._weight > _MOST and len(cells := self.cells) > 1:
            self.remove(cells[:1])

    def remove(self, cells: Iterable[CellRecord]) -> None:
        """Forget cells, of which nothing is in the namespace any more."""
        gone = {id(c): c for c in cells}
        self._weight -= sum(c.weight() for c in gone.values())
        self._events = [e for e in self._events if id(e) not in gone]

    def remove_rerun(self) -> None:
        """Forget the cells that were run again already."""
        self.remove([c for c in self.cells if c.rerun])

    def bind(self, frame: Mapping[str, Any]) -> None:
        """Note a variable of the host; an earlier value is kept only where a cell may have seen it."""
        if not frame.get("reserved"):
            self._forget(frame["name"], reserved=False)
        self._events.append(Setting(frame))

    def give_back(self, frame: Mapping[str, Any]) -> None:
        """Note that a reserved variable was taken away."""
        if not self._forget(frame["name"], reserved=True):
            self._events.append(Setting(frame))

    def _forget(self, name: str, *, reserved: bool) -> bool:
        """Forget the latest value of a variable where no cell can have seen it; return whether one was forgotten."""
        for place in reversed(range(len(self._events))):
            event = self._events[place]
            if not isinstance(event, Setting):
                break
            if event.name == name and event.frame.get("reserved", False) == reserved and event.frame["t"] == "set":
                del self._events[place]
                if "path" in event.frame:
                    Path(event.frame["path"]).unlink(missing_ok=True)
                return True
        return False

    def new_run(self) -> None:
        """Note that an earlier answer is forgotten."""
        new = Setting({"t": "new_run"})
        if self._events and self._events[-1] != new:
            self._events.append(new)

    def begin(self) -> None:
        """Forget all cells: the namespace begins anew, with the latest values of the host."""
        frames = [e.frame for e in self._events if isinstance(e, Setting) and e.name]
        self._events, self._weight = [], 0
        for frame in frames:
            if frame["t"] == "give_back":
                self.give_back(frame)
            else:
                self.bind(frame)

    def plan(self) -> tuple[list[Mapping[str, Any]], tuple[CellRecord | Setting, ...]]:
        """Return what the host binds before the setup code, and all that comes after it."""
        first: list[Mapping[str, Any]] = []
        for place, event in enumerate(self._events):
            if isinstance(event, CellRecord):
                return first, tuple(self._events[place:])
            if event.name:
                first.append(event.frame)
        return first, ()

    def foreseen(self, names: Iterable[str]) -> RestartReport:
        """Return which of these names would be lost, and which rebuilt, if the REPL ended now."""
        last = {name: cell for cell in self.cells for name in cell.changed}
        promised = tuple(n for n in names if n in last and last[n].repeatable)
        return RestartReport(tuple(n for n in names if n not in promised), promised)
