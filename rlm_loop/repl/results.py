"""From how a job ended to what the model and the host are told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from rlm_loop.actions import FinalAnswer
from rlm_loop.repl.base import CellError, CellResult
from rlm_loop.repl.clip import RECORD_CAP
from rlm_loop.repl.host.driver import Ended
from rlm_loop.repl.host.incoming import decode
from rlm_loop.repl.in_process.displays import displays_in
from rlm_loop.repl.journal import Rebuilt
from rlm_loop.repl.text import Piece, shown

_NAMES_SHOWN = 20


@dataclass(frozen=True)
class Fate:
    """What becomes of the variables where the REPL was replaced: names that are lost, and names to be rebuilt."""

    lost: tuple[str, ...] = ()
    promised: tuple[str, ...] = ()


@dataclass(frozen=True)
class News:
    """What the next cell's result has to say of an earlier restart."""

    note: str = ""
    lost: tuple[str, ...] = ()


def cell_result(
    ended: Ended, fate: Fate, limit: float, cap: int, news: News | None = None, *, rich: bool = False
) -> CellResult:
    """The result of a cell.  Only a `rich` session displays things: what another one sent as such was forged."""
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
    if ended.how != "done" or ended.stopped:
        error = ended.stopped or "died"
        message = restarted(ended, limit, fate)
    lost = fate.lost
    if news is not None and news.note:
        lost = tuple(dict.fromkeys(news.lost + lost))
        text = Piece(f"[{news.note}]\n").then(text)
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
        displays=displays_in(report) if rich else (),
        full=text.clip(max(cap, RECORD_CAP))[0] if truncated else "",
    )


def restarted(ended: Ended, limit: float, fate: Fate) -> str:
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
    text = f"{why}; the REPL was restarted, what this cell had set is lost"
    if fate.lost:
        text += f", and {_listed(fate.lost)}"
    if fate.promised:
        text += f"; {_listed(fate.promised)} will be rebuilt before the next cell, by running the earlier cells again"
    return text


def restart_news(cause: str, fate: Fate, rebuilt: Rebuilt | None) -> News:
    """What is to be said after a restart.  `cause` is empty where the cell that led to it has told of it.

    `fate` is what was expected then; a rebuild that came out as it promised needs no further word.
    """
    if rebuilt is None:
        if not cause:
            return News()
        gone = f"these names are lost: {_listed(fate.lost)}" if fate.lost else "no variables were lost"
        return News(f"before this cell the REPL was restarted ({cause}); {gone}", fate.lost)
    lost = rebuilt.lost if cause else tuple(n for n in rebuilt.lost if n not in fate.lost)
    if not cause and not lost and not rebuilt.notes and not rebuilt.doubtful:
        return News()
    parts = [f"before this cell the REPL was restarted ({cause})" if cause else "after the restart of the REPL"]
    if rebuilt.names:
        parts.append(f"rebuilt from the journal: {_listed(rebuilt.names)}")
    parts.append(f"lost: {_listed(lost)}" if lost else "no variables were lost")
    if rebuilt.doubtful:
        parts.append(f"perhaps with another value than before: {_listed(rebuilt.doubtful)}")
    if rebuilt.notes:
        more = f" and {len(rebuilt.notes) - 3} more" if len(rebuilt.notes) > 3 else ""
        parts.append(", ".join(rebuilt.notes[:3]) + more)
    return News("; ".join(parts), lost)


def given(report: Mapping[str, Any]) -> FinalAnswer:
    """A value that the worker sent.  What cannot be read is shown as it came: workers are not trusted."""
    if "value" in report:
        try:
            return FinalAnswer(decode(report["value"]), "object")
        except ValueError:
            return FinalAnswer(json.dumps(report["value"])[:1000], "repr")
    return FinalAnswer(str(report.get("repr", "")), "repr")


def _listed(lost: tuple[str, ...]) -> str:
    more = f" and {len(lost) - _NAMES_SHOWN} more" if len(lost) > _NAMES_SHOWN else ""
    return ", ".join(lost[:_NAMES_SHOWN]) + more


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
