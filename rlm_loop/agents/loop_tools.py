"""The tools that belong to a loop of function calls itself: `python` is its REPL, `final_answer` ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rlm_loop.tools.function import Tool

OF_THE_LOOP = ("python", "final_answer")
#: Names that belong to the REPL protocol as well; no tool may take them.
_RESERVED = frozenset(("context", *OF_THE_LOOP))


def require_own_names(*groups: Iterable[Tool]) -> None:
    """Raises `ValueError` where two tools have one name, or one of the loop's; it names all of them."""
    names = [tool.name for group in groups for tool in group]
    if clashes := sorted({n for n in names if names.count(n) > 1 or n in _RESERVED}):
        raise ValueError(f"these tool names are taken or used twice: {', '.join(clashes)}; rename them")


_PYTHON_HELP = "Run Python code in a persistent REPL and get what it prints."


def python_tool(run: Callable[[str], str]) -> Tool:
    """The REPL as a tool; a cell has a time limit of its own."""
    return Tool("python", _PYTHON_HELP, run, timeout=float("inf"))


def _final_answer(answer: Any) -> Any:
    return answer


FINAL_ANSWER = [Tool("final_answer", "Give the answer and end the task.", _final_answer)]
