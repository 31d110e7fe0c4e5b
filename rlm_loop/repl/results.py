"""Turn how a job ended into the result of a cell and the text that the model reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rlm_loop.actions import Display, FinalAnswer
from rlm_loop.repl.base import CellCall, CellError, CellResult
from rlm_loop.repl.host.child import Ended
from rlm_loop.repl.host.frames import decode_within
from rlm_loop.repl.text import RECORD_CAP, clip, clip_again, shown
from rlm_loop.repl.worker import MOST_DISPLAYED, MOST_DISPLAYS, RICH

_LEAST = 0.5  # seconds that reading an answer may take


@dataclass(frozen=True)
class Loss:
    """A REPL that ended, with the public `names` in it: `lost` are gone, and `promised` will be rebuilt.

    `cause` says how it ended where no cell's result told of it; `note`, after the restart, what the next one tells.
    """

    names: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    promised: tuple[str, ...] = ()
    cause: str = ""
    note: str = ""


NO_LOSS = Loss()  # made once, since nearly every cell ends so


def cell_result(
    ended: Ended,
    limit: float,
    cap: int,
    loss: Loss = NO_LOSS,
    restart: Loss = NO_LOSS,
    calls: Sequence[CellCall] = (),
) -> CellResult:
    """The result of a cell that ended with `loss`, or with none; `restart` was before it.

    `limit` is in seconds, `cap` in characters.
    """
    report = ended.report
    text = ended.out
    if "echo" in report and not text:
        text = shown(str(report["echo"]))
    error: CellError | None = None
    message = ""
    fault = report.get("error")
    if isinstance(fault, dict):
        fault = cast("dict[str, Any]", fault)
        error, message = "runtime", shown(str(fault.get("message", "")))
        text = _below(text, shown(str(fault.get("text", ""))))
    if "restored" in report and (restored := enumerated(names_in(report, "restored"))):
        text = _below(text, f"[restored after this cell: {restored}. Use other names for your own values.]")
    if ended.how != "done" or ended.stopped:
        error = ended.stopped or "died"
        message = restarted(ended, limit, loss)
    if restart.note:
        text = f"[{restart.note}]\n{text}"
    answer = None
    if isinstance(report.get("answer"), dict):
        answer = given(report["answer"], report.get("size", 0), limit - ended.seconds)
    shorten = clip_again if len(text) > 2 * RECORD_CAP else clip  # a mark in a shorter one is the cell's own
    output, truncated = shorten(text, cap)
    return CellResult(
        output=output,
        error=error,
        message=message,
        answer=answer if error is None else None,
        pending=answer if error is not None else None,
        lost=tuple(dict.fromkeys(restart.lost + loss.lost)),
        truncated=truncated,
        seconds=ended.seconds,
        displays=displays_in(report) if "displays" in report else (),
        calls=tuple(calls),
        full=shorten(text, max(cap, RECORD_CAP))[0] if truncated else "",
    )


def restarted(ended: Ended, limit: float, loss: Loss) -> str:
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
    if loss.lost:
        text += f", and {enumerated(loss.lost)}"
    if loss.promised:
        text += (
            f"; {enumerated(loss.promised)} will be rebuilt before the next cell, by running the earlier cells again"
        )
    return text


def restart_after(loss: Loss, names: set[str], notes: Sequence[str]) -> Loss:
    """Return what the next cell tells of a restart, after which there are these names, with the `notes` on how.

    A rebuild that came out as promised needs no further word.
    """
    lost = tuple(n for n in loss.names if n not in names and (loss.cause or n not in loss.lost))
    came = tuple(n for n in loss.lost + loss.promised if n in names)
    if not (loss.cause or lost or notes):
        return NO_LOSS
    parts = [
        f"before this cell the REPL was restarted ({loss.cause})" if loss.cause else "after the restart of the REPL",
        f"rebuilt from the journal: {enumerated(came)}" if came else "",
        f"lost: {enumerated(lost)}" if lost else "no variables were lost",
        *notes[:3],
    ]
    return Loss(lost=lost, note="; ".join(filter(None, parts)))


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


def names_in(report: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the names that a report lists under a key."""
    names = report.get(key)
    return tuple(map(str, cast("list[Any]", names))) if isinstance(names, list) else ()


def enumerated(names: Sequence[str], most: int = 20) -> str:
    """Return the first of these names in one line, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _below(text: str, other: str) -> str:
    """The second text on a line of its own after the first."""
    return text + ("" if not text or text.endswith("\n") else "\n") + other
