"""Where code runs: a persistent Python namespace in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlm_loop.repl.base import CellError, CellResult, EvaluationFailed, ReplError, Session, SetupFailed

if TYPE_CHECKING:
    from rlm_loop.repl.session import PythonREPL, ReplTool

KINDS = ("auto", "subprocess")
"""The kinds of session that `open_repl` knows; `auto` takes the best one there is."""


def open_repl(kind: str = "auto", **options: Any) -> Session:
    """A session of a kind; `options` are those of `PythonREPL`.  Raises `ValueError` for a kind that is not there."""
    if kind not in KINDS:
        raise ValueError(f"no REPL of kind {kind!r}; there are: {', '.join(KINDS)}")
    from rlm_loop.repl.session import PythonREPL

    return PythonREPL(**options)


def __getattr__(name: str) -> Any:
    """Sessions are imported when first asked for: `import rlm_loop` starts no process and needs none of it."""
    if name in ("PythonREPL", "ReplTool"):
        from rlm_loop.repl import session

        return getattr(session, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "KINDS",
    "CellError",
    "CellResult",
    "EvaluationFailed",
    "PythonREPL",
    "ReplError",
    "ReplTool",
    "Session",
    "SetupFailed",
    "open_repl",
]
