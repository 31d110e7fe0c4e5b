"""Turn how a job ended into the result of a cell and the text that the model reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rlm_loop.actions import Display, FinalAnswer
from rlm_loop.repl.base import CellCall, CellError, CellResult
from rlm_loop.repl.host.driver import Ended
from rlm_loop.repl.host.incoming import decode_within
from rlm_loop.repl.records import Rebuilt
from rlm_loop.repl.text import RECORD_CAP, Piece, clip_parts, shown
from rlm_loop.repl.worker import MOST_DISPLAYED, MOST_DISPLAYS, RICH

_NAMES_SHOWN = 20
_LEAST = 0.5  # seconds that reading an answer may take


@dataclass(frozen=True)
class RestartReport:
    """The effect of a restart on the variables, and the note about it in the next cell's result.

    `lost` names variables that are gone, `promised` those that will be rebuilt.  `note` is empty where the cell that
    led to the restart tells of it itself, or where there was none.
    """

    lost: tuple[str, ...] = ()
    promised: tuple[str, ...] = ()
    note: str = ""


NO_RESTART = RestartReport()  # made once, since nearly every cell ends so


def cell_result(
    ended: Ended,
    limit: float,
    cap: int,
    restart: RestartReport = NO_RESTART,
    earlier: RestartReport = NO_RESTART,
    calls: Sequence[CellCall] = (),
) -> CellResult:
    """The result of a cell that ended with `restart`, or with none; `earlier` is of a restart before it.

    `limit` is in seconds, `cap` in characters.
    """
    report = ended.report
    text = ended.out
    if "echo" in report and not text.characters:
        text = _piece(report["echo"])
    error: CellError | None = None
    message = ""
    fault = report.get("error")
    if isinstance(fault, dict):
        fault = cast("dict[str, Any]", fault)
        error, message = "runtime", shown(str(fault.get("message", "")))
        text = _below(text, _piece(fault.get("text")))
    if "restored" in report and (restored := _restored(report["restored"])):
        text = _below(text, Piece(f"[restored after this cell: {restored}. Use other names for your own values.]"))
    if ended.how != "done" or ended.stopped:
        error = ended.stopped or "died"
        message = restarted(ended, limit, restart)
    lost = restart.lost
    if earlier.note:
        lost = tuple(dict.fromkeys(earlier.lost + lost))
        text = Piece(f"[{earlier.note}]\n").then(text)
    answer = None
    if isinstance(report.get("answer"), dict):
        answer = given(report["answer"], report.get("size", 0), limit - ended.seconds)
    output, truncated = clip_parts(text.head, text.dropped, text.tail, cap)
    return CellResult(
        output=output,
        error=error,
        message=message,
        answer=answer if error is None else None,
        pending=answer if error is not None else None,
        lost=lost,
        truncated=truncated,
        characters=text.characters if truncated else len(output),
        seconds=ended.seconds,
        displays=displays_in(report) if "displays" in report else (),
        calls=tuple(calls),
        full=clip_parts(text.head, text.dropped, text.tail, max(cap, RECORD_CAP))[0] if truncated else "",
    )


def restarted(ended: Ended, limit: float, restart: RestartReport) -> str:
    """Return in one line why the job was stopped or died, and what became of the variables."""
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
    text = f"{why}; the REPL was restarted, what this cell had set is lost"
    if restart.lost:
        text += f", and {_listed(restart.lost)}"
    if restart.promised:
        text += (
            f"; {_listed(restart.promised)} will be rebuilt before the next cell, by running the earlier cells again"
        )
    return text


def restart_report(cause: str, expected: RestartReport, rebuilt: Rebuilt | None) -> RestartReport:
    """The report of a restart.  `cause` is empty where the result of the cell that led to it told of it.

    `expected` is what was said then; a rebuild that came out as it promised needs no further word.
    """
    if rebuilt is None:
        if not cause:
            return NO_RESTART
        gone = f"these names are lost: {_listed(expected.lost)}" if expected.lost else "no variables were lost"
        return RestartReport(expected.lost, note=f"before this cell the REPL was restarted ({cause}); {gone}")
    lost = rebuilt.lost if cause else tuple(n for n in rebuilt.lost if n not in expected.lost)
    if not cause and not lost and not rebuilt.notes and not rebuilt.doubtful:
        return NO_RESTART
    parts = [f"before this cell the REPL was restarted ({cause})" if cause else "after the restart of the REPL"]
    if rebuilt.names:
        parts.append(f"rebuilt from the journal: {_listed(rebuilt.names)}")
    parts.append(f"lost: {_listed(lost)}" if lost else "no variables were lost")
    if rebuilt.doubtful:
        parts.append(f"perhaps with another value than before: {_listed(rebuilt.doubtful)}")
    if rebuilt.notes:
        more = f" and {len(rebuilt.notes) - 3} more" if len(rebuilt.notes) > 3 else ""
        parts.append(", ".join(rebuilt.notes[:3]) + more)
    return RestartReport(lost, note="; ".join(parts))


def given(report: Mapping[str, Any], size: int = 0, seconds: float = 0.0) -> FinalAnswer:
    """Return a value out of a frame of `size` bytes.  What cannot be read, in so many seconds, is shown as it came."""
    if "value" in report:
        try:
            return FinalAnswer(decode_within(report["value"], size, max(seconds, _LEAST)), "object")
        except ValueError:
            return FinalAnswer(json.dumps(report["value"])[:1000], "repr")
    return FinalAnswer(str(report.get("repr", "")), "repr")


def displays_in(report: Mapping[str, Any]) -> tuple[Display, ...]:
    """Return the displays in a cell's report; what is not of their form, or too large, is left out."""
    displays: list[Display] = []
    listed, room = report.get("displays"), MOST_DISPLAYED
    for item in cast("list[Any]", listed)[:MOST_DISPLAYS] if isinstance(listed, list) else []:
        match item:
            case [str(kind), str(data)] if kind in RICH and len(data) <= room:
                room -= len(data)
                displays.append(Display(kind, data))
            case _:
                pass
    return tuple(displays)


def names_in_report(ended: Ended, before: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in the namespace after a job; it reports them where they changed."""
    names: Any = ended.report.get("names")
    return tuple(filter(_is_text, names)) if isinstance(names, list) else before  # pyright: ignore


_is_text = str.__instancecheck__


def names_changed(ended: Ended) -> dict[str, str]:
    """Return the names that a job bound anew or changed, with a summary of each value."""
    changed: Any = ended.report.get("changed")
    return dict(zip(changed, map(str, changed.values()))) if isinstance(changed, dict) else {}


def _listed(lost: tuple[str, ...]) -> str:
    more = f" and {len(lost) - _NAMES_SHOWN} more" if len(lost) > _NAMES_SHOWN else ""
    return ", ".join(lost[:_NAMES_SHOWN]) + more


def _restored(names: Any) -> str:
    """The reserved names that a cell had rebound, as a REPL reports them."""
    if not isinstance(names, list):
        return ""
    return _listed(tuple(n for n in cast("list[Any]", names) if isinstance(n, str) and n.isidentifier()))


def _piece(parts: Any) -> Piece:
    match parts:
        case [str(head), int(dropped), str(tail)] if dropped >= 0:
            return Piece(shown(head), dropped, shown(tail)) if dropped else Piece(shown(head + tail))
        case _:
            return Piece()


def _below(text: Piece, other: Piece) -> Piece:
    """The second text on a line of its own after the first."""
    gap = "" if not text.characters or (text.tail or text.head).endswith("\n") else "\n"
    return text.then(Piece(gap)).then(other)
