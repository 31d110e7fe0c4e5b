"""The journal of a session: every cell and every variable of the host, enough to rebuild the namespace."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm_loop.repl.base import CellError
from rlm_loop.repl.host.calls import HostCall
from rlm_loop.repl.host.incoming import decode

_MOST = 64 << 20  # characters of code, output and host results that are kept; beyond, the oldest cells are forgotten


@dataclass(slots=True)
class Cell:
    """One cell that ran.

    `step` counts from 1; `output` is what the model saw; `error` and `seconds` are as in `CellResult`.  `changed` has
    the names that were new or changed afterwards, each with a few words about its value: another object, or another
    size of a built-in container (a change inside an object that keeps its size is not noticed).  `calls` are the host
    tools that were called, in order, with what they gave.
    """

    step: int
    code: str
    output: str = ""
    error: CellError | None = None
    changed: Mapping[str, str] = field(default_factory=dict[str, str])
    calls: tuple[HostCall, ...] = ()
    seconds: float = 0.0
    gone: bool = False
    """Whether its effects are no part of the namespace any more."""

    @property
    def repeatable(self) -> bool:
        """Whether it ran to its own end.  One that was stopped or killed is never run again: it might go on again."""
        return self.error in (None, "runtime")

    def weight(self) -> int:
        made = sum([len(json.dumps([c.args, c.kwargs, c.outcome])) for c in self.calls]) if self.calls else 0
        return len(self.code) + len(self.output) + made + 64 * len(self.changed)


@dataclass(frozen=True, slots=True)
class Setting:
    """The host bound a variable, or, without a name, began a new run: the job that does it."""

    frame: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.frame.get("name", ""))


class _Beginning:
    """The namespace began anew: tools, variables, setup, and nothing of what was before."""


@dataclass(frozen=True)
class RebuildPlan:
    """How to get to a state: variables that are there before the setup code, then events in their order."""

    first: Mapping[str, Mapping[str, Any]]
    events: tuple[Cell | Setting, ...]


class Journal:
    """The events of a session."""

    def __init__(self) -> None:
        self._events: list[Cell | Setting | _Beginning] = []
        self._weight = 0
        self.forgotten = 0
        """Cells that are no longer kept, because the journal had grown too large."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(e for e in self._events if isinstance(e, Cell))

    def add(self, cell: Cell) -> None:
        self._events.append(cell)
        self._weight += cell.weight()
        while self._weight > _MOST and any(isinstance(e, Cell) for e in self._events[:-1]):
            oldest = next(i for i, e in enumerate(self._events) if isinstance(e, Cell))
            dropped = self._events.pop(oldest)
            assert isinstance(dropped, Cell)
            self._weight -= dropped.weight()
            self.forgotten += 1

    def set(self, frame: Mapping[str, Any]) -> None:
        """Note a variable of the host; an earlier value is kept only where a cell may have seen it."""
        for i in range(len(self._events) - 1, -1, -1):
            event = self._events[i]
            if not isinstance(event, Setting):
                break
            if event.name == frame["name"]:
                del self._events[i]
        self._events.append(Setting(frame))

    def new_run(self) -> None:
        new = Setting({"t": "new_run"})
        if self._events and self._events[-1] != new:
            self._events.append(new)

    def begin(self) -> None:
        """The namespace begins anew; cells of before are no part of it."""
        if any(isinstance(e, Cell) for e in self._events):
            self._events.append(_Beginning())

    def paths(self) -> set[str]:
        """Files that hold values of the host which may be needed again."""
        return {str(e.frame["path"]) for e in self._settings() if "path" in e.frame}

    def plan(self) -> RebuildPlan:
        """How to get to the state of now; cells that have no part in it are left out."""
        first: dict[str, Mapping[str, Any]] = {}
        events: list[Cell | Setting] = []
        for event in self._events:
            if isinstance(event, _Beginning):
                first.update({e.name: e.frame for e in events if isinstance(e, Setting) and e.name})
                events.clear()
            elif isinstance(event, Cell):
                if not event.gone:
                    events.append(event)
            elif events:
                events.append(event)
            elif event.name:  # before the first cell: before the setup code, too
                first[event.name] = event.frame
        return RebuildPlan(first, tuple(events))

    def trim_files(self, most: int) -> None:
        """Forget the oldest of the host's values that were replaced since, to keep files of `most` bytes at most."""
        latest = {e.name: e for e in self._settings()}
        for event in reversed(self._settings()):
            if "path" in event.frame and latest[event.name] is not event:
                most -= Path(event.frame["path"]).stat().st_size
                if most < 0:
                    self._events.remove(event)

    def _settings(self) -> list[Setting]:
        return [e for e in self._events if isinstance(e, Setting) and e.name]


@dataclass(frozen=True)
class Rebuilt:
    """How the variables came back.

    `names` were rebuilt by running `cells` cells again in `seconds`; `lost` are gone; `notes` say, one line each,
    what was not as before (a different output, other host calls): what is nondeterministic cannot be rebuilt for sure,
    and `doubtful` names the variables of such cells that are there, perhaps with another value.
    """

    names: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cells: int = 0
    seconds: float = 0.0


def arguments(call: HostCall) -> tuple[list[Any], dict[str, Any]]:
    """Decode the arguments of a host call; forms that cannot be read are returned as they came."""
    try:
        return [*decode(call.args)], {**decode(call.kwargs)}
    except (ValueError, TypeError):
        return [call.args], {}


def names_in(cells: Iterable[Cell]) -> dict[str, Cell]:
    """The last of the cells that changed each name."""
    return {name: cell for cell in cells for name in cell.changed}
