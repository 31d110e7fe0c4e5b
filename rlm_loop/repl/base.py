"""The base class of REPL sessions, and what their cells lead to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from rlm_loop.actions import Display, FinalAnswer

DESCRIPTION = (
    "Run Python code in a persistent session. Variables stay between calls. Returns what the code printed, "
    "or the value of its last expression."
)

CellError = Literal["runtime", "timeout", "died", "budget", "interrupted"]


class ReplError(RuntimeError):
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


class Session(ABC):
    """A persistent Python namespace in which cells run; it is a tool, and ends with a `with` block."""

    name = "python"
    description = DESCRIPTION
    isolation: str = ""
    """The kind of isolation between the cells and this machine; empty while it is not known."""
    last: CellResult | None = None
    """The result of the latest cell, also where `run` raised."""

    @abstractmethod
    def run(self, code: str, *, timeout: float | None = None, grace: float | None = None) -> CellResult:
        """Run one cell; what the cell does is in the result.

        `timeout` is in seconds of the cell's own time, `grace` how long it has to stop after that, at most.
        Raises what a host tool raised to end the run (a `BudgetSpent`, or anything but an `Exception`),
        `KeyboardInterrupt` after Ctrl-C (the cell is stopped, the session stays usable), and `ReplError`.
        """

    @abstractmethod
    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        """Bind a variable (any size: large values cross through a file).

        A `reserved` one is restored after a cell that rebound it, and can be given back.
        """

    @abstractmethod
    def get(self, expression: str, *, timeout: float | None = None) -> Any:
        """Evaluate an expression and return its value (JSON types; anything else as its `repr`); `timeout` as in
        `run`.  Raises `EvaluationFailed`."""

    @abstractmethod
    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """Make host functions callable from cells, over variables and tools of the same names.

        What one raises arrives in the cell as a `RuntimeError`, except that a `BudgetSpent` or anything but an
        `Exception` ends the cell and is raised by `run`.
        """

    @abstractmethod
    def give_back(self, names: Iterable[str]) -> None:
        """Take the latest host functions and reserved variables of these names away: what they were put over returns.

        Other names are passed over.
        """

    @abstractmethod
    def new_run(self) -> None:
        """Forget an answer left by an earlier run; variables stay."""

    @abstractmethod
    def close(self) -> None:
        """End the session.  May be called again."""

    def as_tool(self) -> ReplTool:
        """This session as a tool: `name`, `description`, and `run(input_data)` which returns text."""
        return ReplTool(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class ReplTool:
    """The REPL as one tool of a function-calling loop."""

    session: Session
    name: str = "python"
    description: str = DESCRIPTION

    def run(self, input_data: str) -> str:
        """Run a cell; what it showed, and the reason where it was stopped."""
        result = self.session.run(input_data)
        stopped = result.error not in (None, "runtime")
        return "\n".join(filter(None, [result.output, result.message if stopped else ""]))
