"""Where code runs: a persistent Python namespace in a process of its own."""

from __future__ import annotations

from typing import Any

from rlm_loop.repl.base import CellError, CellResult, EvaluationFailed, ReplError, Session, SetupFailed
from rlm_loop.repl.session import PythonREPL, ReplTool

KINDS = ("auto", "subprocess")
"""The kinds of session that `open_repl` knows; `auto` takes the best one there is."""


def open_repl(kind: str = "auto", **options: Any) -> Session:
    """A session of a kind; `options` are those of `PythonREPL`.  Raises `ValueError` for a kind that is not there."""
    if kind not in KINDS:
        raise ValueError(f"no REPL of kind {kind!r}; there are: {', '.join(KINDS)}")
    return PythonREPL(**options)


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
