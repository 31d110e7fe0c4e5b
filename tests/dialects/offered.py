"""Tools that the replies of these tests call."""

from __future__ import annotations

from typing import Any

from rlm_loop.tools import as_tool


def python(code: str) -> str:
    """Run code."""
    return code


def search(q: str) -> str:
    """Search."""
    return q


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def run(code: str = "", a: int = 0) -> str:
    """Run."""
    return code


def final_answer(answer: Any) -> Any:
    """Give the answer."""
    return answer


TOOLS = {function.__name__: as_tool(function) for function in (python, search, add, run, final_answer)}
ONE = '{"name": "search", "arguments": {"q": "a"}}'
OTHER = '{"name": "fly", "arguments": {"q": "a"}}'
F = "```"
