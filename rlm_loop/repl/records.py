"""Cells on record, with what they asked of the host: a trace stores them, a restart and a fork run them again.

A cell that runs again is given the recorded results of its host calls, and what was not as before is told.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from rlm_loop.actions import CallTool, FailureKind, Observation, RunCode
from rlm_loop.models.wire import arguments_object
from rlm_loop.repl.base import CellCall, CellError, CellResult
from rlm_loop.repl.host.frames import decode
from rlm_loop.repl.text import RECORD_CAP, dedented
from rlm_loop.repl.worker import form_of


@dataclass(slots=True)
class CellRecord:
    """A cell that ran, with what it takes to run it again and to compare.

    `output` is what the model saw; `error` and `seconds` are as in `CellResult`.  `changed` has the names that were
    new or bound anew afterwards, or grew or shrank.  `number` counts the session's cells from 1, or is the turn of a
    trace.
    """

    code: str
    calls: Sequence[CellCall] = ()
    output: str = ""
    error: CellError | None = None
    seconds: float = 0.0
    changed: tuple[str, ...] = ()
    number: int = 0
    whole: bool = True
    """False where `output` is only a part of what the cell printed."""
    rerun: bool = False
    """True once it was run again, after a restart."""

    @property
    def repeatable(self) -> bool:
        """True if it ran to its own end.  One that was stopped or killed is never run again: it might go on again."""
        return self.error in (None, "runtime")


def asked_with(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a host tool's arguments."""
    form = [[form_of(a, RECORD_CAP) for a in args], {k: form_of(v, RECORD_CAP) for k, v in sorted(kwargs.items())}]
    return hashlib.sha256(json.dumps(form, separators=(",", ":"), default=repr).encode()).hexdigest()


def kept(form: Any) -> Mapping[str, Any]:
    """Return the outcome of a call that gave this form: the `value`, or the length of one too long to keep."""
    length = len(json.dumps(form))
    return {"value": form} if length <= RECORD_CAP else {"left_out": length}


#: A cell of a trace that ended so never ran.
_NOT_RUN: tuple[FailureKind | None, ...] = ("skipped", "invalid_arguments", "denied", "unknown_tool", "malformed")


def cells_of(
    turn: int, actions: Iterable[object], seen: Iterable[Observation], calls: list[CellCall]
) -> list[CellRecord]:
    """Return the cells of a turn that ran, in order; they share the turn's host calls."""
    cells: list[CellRecord] = []
    for action, observation in zip(actions, seen, strict=True):
        if isinstance(action, CallTool) and action.name == "python":
            code = arguments_object(action.arguments).get("code")
        else:
            code = action.code if isinstance(action, RunCode) else None
        kind = None if observation.failure is None else observation.failure.kind
        if isinstance(code, str) and kind not in _NOT_RUN:
            error = kind if kind in get_args(CellError) else None
            whole = not observation.truncated and kind in (None, "runtime")
            ran = CellRecord(dedented(code), calls, observation.text, error, observation.seconds, (), turn, whole)  # type: ignore[arg-type]
            cells.append(ran)
    return cells


def difference(asked: Iterable[str], cell: CellRecord, result: CellResult, same_output: bool) -> str:
    """Compare a cell with its record; return the first difference in a few words, or an empty string.

    `asked` names the host tools that were called otherwise.
    """
    if names := ", ".join(dict.fromkeys(asked)):
        return f"called {names} otherwise"
    if (cell.error is None) != (result.error is None):
        return f"failed: {result.message}" if result.error else "did not fail"
    return "" if same_output else "printed something else"


def recorded_tools(
    calls: Iterable[CellCall], names: Iterable[str], unknown: list[str]
) -> dict[str, Callable[..., Any]]:
    """Return host functions of these names that give what they gave: each call on record answers one equal to it.

    Any other call is refused, and its name put into `unknown`.
    """
    left = defaultdict[tuple[str, str], deque[CellCall]](deque)
    for call in calls:
        left[call.name, call.asked].append(call)

    def play(name: str, /, *args: Any, **kwargs: Any) -> Any:
        with suppress(IndexError):
            call = left[name, asked_with(args, kwargs)].popleft()
            return _result(call.outcome or {"error": "RuntimeError: it had not answered when its cell ended"})
        unknown.append(name)
        raise RuntimeError("this call is not on record, and is not made while the cell runs again")

    return {name: partial(play, name) for name in names}


def _result(outcome: Mapping[str, Any]) -> Any:
    if "value" in outcome:
        return decode(outcome["value"])
    if "left_out" in outcome:
        raise RuntimeError(f"the result of this call was too long to be recorded ({outcome['left_out']:,} characters)")
    name, _, text = str(outcome.get("error", outcome.get("end"))).partition(": ")
    raise type(name if name.isidentifier() else "RuntimeError", (Exception,), {})(text)
