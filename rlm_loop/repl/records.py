"""Cells on record, with what they asked of the host: a trace stores them, a restart and a fork run them again."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.repl.base import CellCall, CellError, CellResult
from rlm_loop.repl.worker import form_of

MOST = 262_144
"""Characters that are kept of a result, or of an argument that has no exact form."""


@dataclass(slots=True)
class CellRecord:
    """A cell that ran, with what it takes to run it again and to compare.

    `output` is what the model saw; `error` and `seconds` are as in `CellResult`.  `changed` has the names that were
    new or changed afterwards, each with a few words about its value (a change inside an object that keeps its size
    is not noticed).  `number` counts the session's cells from 1, or is the turn of a trace.
    """

    code: str
    calls: Sequence[CellCall] = ()
    output: str = ""
    error: CellError | None = None
    seconds: float = 0.0
    changed: Mapping[str, str] = field(default_factory=dict[str, str])
    number: int = 0
    whole: bool = True
    """False where `output` is only a part of what the cell printed."""
    rerun: bool = False
    """True once it was run again, after a restart."""

    @property
    def repeatable(self) -> bool:
        """True if it ran to its own end.  One that was stopped or killed is never run again: it might go on again."""
        return self.error in (None, "runtime")

    def weight(self) -> int:
        """Count about how many characters the record takes."""
        asked = sum([len(json.dumps(c.outcome)) + 100 for c in self.calls]) if self.calls else 0
        return len(self.code) + len(self.output) + asked + 64 * len(self.changed)


@dataclass(frozen=True)
class Rebuilt:
    """The variables that came back after a restart, and those that did not.

    `names` were rebuilt by running cells again; `lost` are gone; `notes` say, one line each, what was not as before (a
    different output, other host calls), and `doubtful` names the variables of such cells, perhaps with another value.
    """

    names: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class PastCalls:
    """Host calls on record; each answers one call that is equal to it."""

    def __init__(self, calls: Sequence[CellCall]) -> None:
        self._left, self._lock = list(calls), threading.Lock()
        self.unknown: list[str] = []
        """Names of tools that were called otherwise than in the record."""

    @property
    def missing(self) -> list[str]:
        """Names of tools that were called according to the record, and now were not."""
        return [call.name for call in self._left]

    def take(self, name: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> CellCall | None:
        """Return the recorded call of a tool with these arguments, no longer on record after."""
        if any(call.name == name for call in self._left):
            asked = asked_with(args, kwargs)
            with self._lock:
                for place, call in enumerate(self._left):
                    if call.name == name and call.asked == asked:
                        return self._left.pop(place)
        return None


def difference(asked: Iterable[str], failed: bool, result: CellResult, same_output: Callable[[], bool]) -> str:
    """Compare a cell with its record; return the first difference in a few words, or an empty string.

    `asked` names the host tools that were called otherwise; `failed` says whether the cell failed before.
    """
    if names := ", ".join(dict.fromkeys(asked)):
        return f"called {names} otherwise"
    if failed != (result.error is not None):
        return f"failed: {result.message}" if result.error else "did not fail"
    return "" if same_output() else "printed something else"


def asked_with(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a host tool's arguments."""
    form = [[form_of(a, MOST) for a in args], {k: form_of(v, MOST) for k, v in sorted(kwargs.items())}]
    return hashlib.sha256(json.dumps(form, separators=(",", ":"), default=repr).encode()).hexdigest()


def kept(form: Any) -> Mapping[str, Any]:
    """Return the outcome of a call that gave this form: the `value`, or the length of one too long to keep."""
    length = len(json.dumps(form))
    return {"value": form} if length <= MOST else {"left_out": length}
