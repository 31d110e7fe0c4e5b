"""Replacements for built-ins through which cells in this process would reach its user or end it."""

from __future__ import annotations

from typing import Any


def leave(code: Any = None) -> None:
    """`exit`: the cell ends, not the process."""
    raise SystemExit(code)


def no_input(_prompt: object = "", /) -> str:
    """`input`: nobody is asked."""
    raise EOFError("EOF when reading a line")


def no_debugger(*_args: Any, **_kwargs: Any) -> None:
    """`breakpoint`."""
    raise RuntimeError("breakpoint() does not work here: nobody can type into this REPL")


STAND_INS = {"exit": leave, "quit": leave, "input": no_input, "breakpoint": no_debugger}
