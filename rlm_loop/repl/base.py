"""What a REPL session is, whatever runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from rlm_loop.actions import Display, FinalAnswer

CellError = Literal["runtime", "timeout", "died", "budget", "interrupted"]


class ReplError(RuntimeError):
    """The REPL itself failed (it could not start, it is closed ...); never something that a cell did."""


class SetupFailed(ReplError):
    """The `setup` code of a session raised, ran out of time, or ended the process."""


class EvaluationFailed(ReplError):
    """The expression given to `Session.get` raised, ran out of time, or ended the process."""


@dataclass(frozen=True)
class CellResult:
    """What running one cell led to.

    `output` is what the model may see: stdout and stderr in the order written, then the value of a last
    expression where nothing was printed; on error the traceback (user frames only) follows.  It is clipped
    head and tail to the session's cap; `truncated` says so and `characters` how many there were.  `full` is then
    the text for the record, up to a cap of its own (262,144 characters; clipped in the same way beyond).
    `error` is `None`, or the kind: `runtime` (it raised), `timeout`, `died` (the process ended; the REPL was
    restarted), `budget` and `interrupted` (a host tool, or Ctrl-C, ended the cell: `run` raises, and only
    `PythonREPL.last` has the result).  `message` is the one-line form; for all but `runtime` it says more than
    the output: why the cell ended, and what became of the variables.  `lost` names variables that are gone.
    `answer` is what `final_answer` was set to by this cell, `pending` the same where the cell then raised.
    `seconds` is the cell's own time: time spent in host tools is not included.
    `displays` are rich outputs (pictures, HTML), of sessions that have them.
    `effects` are the files `added`, `changed` and `removed` in the working folder since the cell before, of sessions
    that have one; empty where nothing changed.
    """

    output: str = ""
    error: CellError | None = None
    message: str = ""
    answer: FinalAnswer | None = None
    pending: FinalAnswer | None = None
    lost: tuple[str, ...] = ()
    truncated: bool = False
    characters: int = 0
    seconds: float = 0.0
    displays: tuple[Display, ...] = ()
    full: str = ""
    effects: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)


@runtime_checkable
class Session(Protocol):
    """A persistent Python namespace in which cells run.  Closing is idempotent."""

    def run(self, code: str, *, timeout: float | None = None, grace: float | None = None) -> CellResult:
        """Run one cell; never raises for what the cell does.

        `timeout` is in seconds of the cell's own time, `grace` how long it has to stop after that, at most.
        """
        ...

    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        """Bind a variable (any size: large values cross through a file); a `reserved` one is restored after a cell
        that rebound it."""
        ...

    def get(self, expression: str, *, timeout: float | None = None) -> Any:
        """Evaluate an expression and return its value (JSON types; anything else as its `repr`); `timeout` as in
        `run`."""
        ...

    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """Make host functions callable from cells by name."""
        ...

    def new_run(self) -> None:
        """Forget an answer left by an earlier run; variables stay."""
        ...

    def close(self) -> None: ...
