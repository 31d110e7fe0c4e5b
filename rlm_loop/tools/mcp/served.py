"""The tools of a server: offered to a model as any other, called over a connection that a run or a block owns."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, overload

from rlm_loop.errors import install_line
from rlm_loop.tools.function import Tool
from rlm_loop.tools.mcp.address import McpServer, named
from rlm_loop.tools.mcp.connection import Connection
from rlm_loop.tools.mcp.remote import served_tool
from rlm_loop.tools.mcp.schemas import python_names

if TYPE_CHECKING:
    from mcp.types import Tool as Listed

_RESERVED = ("context", "llm_query", "llm_query_batched", "final_answer", "python")


class McpTools(Sequence[Tool]):
    """The tools of one MCP server, in its order; `tools["name"]` is one of them.

    The server is started when the tools are first looked at, and ended again.  Each run that is given them has a server
    of its own from its first call to its end, so that no run finds what another left there.  As a `with` block they
    have one server, from the first use to the end of the block: all runs within share it.
    """

    def __init__(self, server: McpServer, prefix: str = "") -> None:
        self.server, self._prefix = server, prefix
        self._held: Connection | None = None

    @functools.cached_property
    def _tools(self) -> tuple[Tool, ...]:
        with self._lent() as connection:
            listed = connection.listed()
        names = python_names([tool.name for tool in listed], self._prefix)
        limit = self.server.timeout + self.server.start_timeout  # the server's own limits come first
        return tuple(
            served_tool(f"{name}_" if name in _RESERVED else name, tool, self, limit)
            for name, tool in zip(names, listed, strict=True)
        )

    @contextmanager
    def _lent(self) -> Generator[Connection]:
        """The block's connection, or one for this use alone."""
        if self._held is not None:
            yield self._held
            return
        with closing(Connection(self.server)) as own:
            yield own

    def call(self, tool: Listed, arguments: Mapping[str, Any]) -> Any:
        """Call a tool outside of any run: over the block's connection, or one for this call alone."""
        with self._lent() as connection:
            return connection.call(tool, arguments)

    def for_run(self, until: ExitStack) -> Connection:
        """The connection of a run: the block's, or one that is closed with `until`."""
        return until.enter_context(self._lent())

    def __enter__(self) -> McpTools:
        if self._held is not None:
            raise RuntimeError(f"{self!r} is in a with block already")
        self._held = Connection(self.server)
        try:
            _ = self._tools  # a server that cannot be used is told of here
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    @overload
    def __getitem__(self, index: int | str) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Tool, ...]: ...
    def __getitem__(self, index: int | str | slice) -> Tool | tuple[Tool, ...]:
        if not isinstance(index, str):
            return self._tools[index]
        for tool in self._tools:
            if tool.name == index:
                return tool
        raise KeyError(f"{self.server.name!r} has no tool {index!r}; it has {', '.join(t.name for t in self._tools)}")

    def __len__(self) -> int:
        return len(self._tools)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}  # a connection is of this process

    def __repr__(self) -> str:
        many = f", {len(self)} tools" if "_tools" in self.__dict__ else ""
        return f"<MCP server {self.server.name!r}{many}>"


def mcp_tools(
    server: str | Sequence[str],
    *,
    prefix: str = "",
    timeout: float = 60.0,
    start_timeout: float = 30.0,
    longest: int = 4_000_000,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> McpTools:
    """The tools of an MCP server, for `tools=` of any agent.

    `server` is a command (a line, or an argv) that speaks MCP on its standard input and output, or a URL (streamable
    HTTP).  A command has `PATH`, `HOME` and little else of your environment, and `env`; in it `python` is this
    interpreter.  A URL is asked with `headers`.
    `prefix` goes before each name, where two servers have the same.  `timeout` and `start_timeout` are in seconds, for
    one call and for the start.  A result of more than `longest` characters is a failure of the call, as is a server
    that ends or does not answer.  Nothing is started yet.  Raises `ImportError` without the extra `mcp`.
    """
    if importlib.util.find_spec("mcp") is None:
        raise ImportError(f"tools of MCP servers need mcp: {install_line('mcp')}")
    command, url = named(server)
    if not command and not url:
        raise ValueError("server is a command or a URL, and not empty")
    return McpTools(
        McpServer(command, url, timeout, start_timeout, longest, dict(env or {}), cwd, dict(headers or {})), prefix
    )
