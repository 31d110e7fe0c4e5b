"""Tools whose function needs an instance for each run, such as a connection to a server."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol, runtime_checkable

from rlm_loop.repl.host.shielded import shielded
from rlm_loop.tools.function import Tool

ToolLike = Tool | Callable[..., Any]


@runtime_checkable
class PerRun(Protocol):
    """A tool function that needs one instance per run, such as an MCP connection."""

    def for_run(self, shared: dict[int, Any], until: ExitStack) -> Callable[..., Any]:
        """Return the function for one run, of which `until` is the end.

        `shared` holds what functions of that run have in common, by the id of its source.
        """
        ...


@contextmanager
def serving(*lists: Sequence[ToolLike]) -> Generator[tuple[Sequence[ToolLike], ...]]:
    """Yield the lists of tools as one run has them; an empty list is the same object."""
    shared: dict[int, Any] = {}
    until = ExitStack()

    def own(tool: ToolLike) -> ToolLike:
        if isinstance(tool, Tool) and isinstance(tool.function, PerRun):
            return tool.over(tool.function.for_run(shared, until))
        return tool

    try:
        yield tuple([tuple(map(own, tools)) if tools else tools for tools in lists])
    finally:
        with shielded():
            until.close()
