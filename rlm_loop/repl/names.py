"""Names that a session gives to its REPL: variables and tools."""

from __future__ import annotations

import builtins
import inspect
import keyword
from collections.abc import Callable, Mapping
from typing import Any


def check_names(names: Mapping[str, Any] | list[str], taken: Mapping[str, Any] | None = None) -> None:
    """Refuse, all at once, names that Python, the REPL or the user's variables already use."""
    bad: list[str] = []
    clash: list[str] = []
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__") or name == "final_answer":
            bad.append(repr(name))
        if taken is not None and (name in taken or name in _BUILTINS):
            clash.append(repr(name))
    problems = {"not usable as names in the REPL": bad, "tool names in use by a variable or a built-in": clash}
    if bad or clash:
        listed = [f"{what}: {', '.join(which)}" for what, which in problems.items() if which]
        raise ValueError(f"{'; '.join(listed)}; choose other names")


_BUILTINS = frozenset(dir(builtins))


def tools_frame(tools: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """The job that gives the REPL its tools: their names, and what `help(tool)` shows there."""
    return {"t": "tools", "tools": {name: about_tool(name, tool) for name, tool in tools.items()}}


def about_tool(name: str, tool: Callable[..., Any]) -> str:
    """What `help(tool)` shows in a cell: the signature and the docstring."""
    try:
        signature = str(inspect.signature(tool))
    except (TypeError, ValueError):
        signature = "(*args, **kwargs)"
    return f"{name}{signature}\n\n{inspect.getdoc(tool) or ''}".rstrip()
