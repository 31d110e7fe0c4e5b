"""From how a job ended to what the model and the host are told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from rlm_loop.actions import Given
from rlm_loop.repl.base import CellError, CellResult
from rlm_loop.repl.driver import Ended
from rlm_loop.repl.text import Piece
from rlm_loop.repl.worker import decode

_NAMES_SHOWN = 20


def cell_result(
    ended: Ended, lost: tuple[str, ...], limit: float, cap: int, earlier: tuple[str, tuple[str, ...]] = ("", ())
) -> CellResult:
    """The result of a cell.  `earlier` says how the REPL ended before this cell, if it did, and what was lost then."""
    report = ended.report
    text = ended.out
    if "echo" in report and not text.characters:
        text = _piece(report["echo"])
    error: CellError | None = None
    message = ""
    fault = report.get("error")
    if isinstance(fault, dict):
        fault = cast("dict[str, Any]", fault)
        error, message = "runtime", str(fault.get("message", ""))
        text = _below(text, _piece(fault.get("text")))
    if ended.how != "done" or ended.stopped:
        error = ended.stopped or "died"
        message = restarted(ended, limit, lost)
    if earlier[0]:
        lost = tuple(dict.fromkeys(earlier[1] + lost))
        note = f"[before this cell the REPL was restarted ({earlier[0]}); {_gone(earlier[1])}]\n"
        text = Piece(note).then(text)
    answer = given(report["answer"]) if isinstance(report.get("answer"), dict) else None
    output, truncated = text.clip(cap)
    return CellResult(
        output=output,
        error=error,
        message=message,
        answer=answer if error is None else None,
        pending=answer if error is not None else None,
        lost=lost,
        truncated=truncated,
        characters=text.characters,
        seconds=ended.seconds,
    )


def restarted(ended: Ended, limit: float, lost: tuple[str, ...]) -> str:
    """One line: why the job was stopped or died, and what became of the variables."""
    why = {
        "timeout": f"the cell was stopped after {limit:g} s, its time limit",
        "budget": "the cell was ended by the host",
        "interrupted": "the cell was interrupted by the user",
        "": f"the Python process died ({ended.cause})",
    }[ended.stopped]
    if ended.how == "done":
        return f"{why}; all variables are kept"
    if ended.how == "killed":
        why += " (it had to be killed)"
    elif ended.stopped:
        why += f" (and the process died: {ended.cause})"
    return f"{why}; the REPL was restarted, what this cell had set is lost" + (f", and {_listed(lost)}" if lost else "")


def given(report: Mapping[str, Any]) -> Given:
    """A value that the worker sent.  What cannot be read is shown as it came: workers are not trusted."""
    if "value" in report:
        try:
            return Given(decode(report["value"]), "object")
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, AttributeError):
            return Given(json.dumps(report["value"])[:1000], "repr")
    return Given(str(report.get("repr", "")), "repr")


def _gone(lost: tuple[str, ...]) -> str:
    return f"these names are lost: {_listed(lost)}" if lost else "no variables were lost"


def _listed(lost: tuple[str, ...]) -> str:
    more = f" and {len(lost) - _NAMES_SHOWN} more" if len(lost) > _NAMES_SHOWN else ""
    return ", ".join(lost[:_NAMES_SHOWN]) + more


def _piece(parts: Any) -> Piece:
    match parts:
        case [str(head), int(dropped), str(tail)] if dropped >= 0:
            return Piece(head, dropped, tail)
        case _:
            return Piece()


def _below(text: Piece, other: Piece) -> Piece:
    """The second text on a line of its own after the first."""
    gap = "" if not text.characters or (text.tail or text.head).endswith("\n") else "\n"
    return text.then(Piece(gap)).then(other)
