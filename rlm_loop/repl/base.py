"""The result of a cell, and the errors of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rlm_loop.actions import Display, FinalAnswer
from rlm_loop.errors import ShownBriefly

CellError = Literal["runtime", "timeout", "died", "budget", "interrupted"]


class ReplError(ShownBriefly, RuntimeError):
    """The REPL itself failed (it could not start, it is closed ...); never something that a cell did."""


class SetupFailed(ReplError):
    """The `setup` code of a session raised, ran out of time, or ended the process."""


class EvaluationFailed(ReplError):
    """The expression given to `Session.get` raised, ran out of time, or ended the process."""


@dataclass(slots=True)
class CellCall:
    """A call of a host tool by a cell.

    `asked` is the SHA-256 of the arguments.  `outcome` has a `value` (in the form that `worker.decode` reads), an
    `error` (class and text of what was raised), the `end` of the whole cell, or `left_out`, the length of a value that
    is too long to keep.  It is `None` where the cell was over before the tool.
    """

    name: str
    asked: str
    outcome: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class CellResult:
    """The result of a cell.

    - `output`: what the model may see: what the cell printed, else the value of its last expression; on error the
      traceback (user frames only).  Where `truncated` it is clipped head and tail to the session's cap; `full` has
      up to 262,144 characters of it for the record.
    - `error`: `None`, or `runtime` (it raised), `timeout`, `died` (the process ended; the REPL was restarted),
      `budget` and `interrupted` (a host tool, or Ctrl-C, ended the cell: `run` raises, and only `Session.last` has the
      result).  `message` is the one-line form; for all but `runtime` it says why the cell ended and what became of the
      variables.  `lost` names those that are gone.
    - `answer`: the value that this cell set `final_answer` to; `pending` the same where the cell then raised.
    - `seconds`: the cell's own time, without host tools.
    - `displays`: pictures, HTML and the like for the user; the model reads a line of text for each.
    - `effects`: files `added`, `changed` and `removed` in the working folder since the cell before; empty where
      nothing changed.
    - `calls`: the host tools that the cell called, in order.
    """

    output: str = ""
    error: CellError | None = None
    message: str = ""
    answer: FinalAnswer | None = None
    pending: FinalAnswer | None = None
    lost: tuple[str, ...] = ()
    truncated: bool = False
    seconds: float = 0.0
    displays: tuple[Display, ...] = ()
    full: str = ""
    effects: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    calls: tuple[CellCall, ...] = field(default=(), compare=False)
