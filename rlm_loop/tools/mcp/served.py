"""The tools of a server, called over a connection that a run or a block owns."""

from __future__ import annotations

import copy
import functools
import importlib.util
import inspect
import shlex
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, cast, overload

from rlm_loop.errors import install_line
from rlm_loop.tools.function import Fields, Tool, ToolError
from rlm_loop.tools.mcp.connection import Connection, McpServer
from rlm_loop.tools.mcp.schemas import parameters_of, plain_schema, python_names, type_of, wrapper_of

if TYPE_CHECKING:
    from mcp.types import Tool as Listed

_RESERVED = ("context", "llm_query", "llm_query_batched", "final_answer", "python")


class RemoteFunction:
    """A tool of a server as a Python function; `parameters` are by the server's names."""

    def __init__(self, server: McpTools | Connection, tool: Listed, schema: dict[str, Any]) -> None:
        self.server, self._tool, self.schema, self.parameters = server, tool, schema, parameters_of(schema)
        self._names = {own.name: theirs for theirs, own in self.parameters.items()}
        output: dict[str, Any] = tool.output_schema or {"type": "string"}
        wrapper = wrapper_of(output)
        returns = type_of(output if wrapper is None else output["properties"][wrapper], output)
        self.__signature__ = inspect.Signature(list(self.parameters.values()), return_annotation=returns)
        described = {n: p for n, p in schema["properties"].items() if isinstance(p, dict) and "description" in p}
        lines = [f"{name}: {argument['description']}" for name, argument in described.items()]
        self.__doc__ = "\n\n".join(filter(None, [tool.description or tool.title or "", "\n".join(lines)]))

    def for_run(self, shared: dict[int, Any], until: ExitStack) -> RemoteFunction:
        """Return the same function over the connection of a run (see `serving`)."""
        if isinstance(self.server, Connection):
            return self
        if id(self.server) not in shared:
            shared[id(self.server)] = until.enter_context(self.server.lent())
        copied = copy.copy(self)
        copied.server = shared[id(self.server)]
        return copied

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by the server's names; raises `TypeError` where they do not fit."""
        own = {self.parameters[k].name if k in self.parameters else k: v for k, v in kwargs.items()}
        return {self._names[k]: v for k, v in self.__signature__.bind(*args, **own).arguments.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arguments = self.arguments(args, kwargs)
        required = [theirs for theirs, own in self.parameters.items() if own.default is own.empty]
        return self.server.call(self._tool, {k: v for k, v in arguments.items() if v is not None or k in required})


class ServedTool(Tool):
    """A tool of an MCP server; its schema is the server's, its signature made of that."""

    @property
    def _remote(self) -> RemoteFunction:
        return cast("RemoteFunction", self.function)

    @functools.cached_property
    def _fields(self) -> Fields:
        remote = self._remote.parameters
        return tuple((theirs, own.annotation, own.default is own.empty) for theirs, own in remote.items())

    @property
    def parameters(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return dict(self._remote.schema)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._remote.arguments(args, kwargs)
        except TypeError as error:
            raise ToolError("invalid_arguments", f"{error}; usage: {self.signature}") from None


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
        with self.lent() as connection:
            listed = connection.listed()
        limit = self.server.timeout + self.server.start_timeout  # the server's own limits come first
        tools: list[Tool] = []
        for name, tool in zip(python_names([tool.name for tool in listed], self._prefix), listed, strict=True):
            name = f"{name}_" if name in _RESERVED else name
            description = " ".join((tool.description or tool.title or tool.name).split())
            remote = RemoteFunction(self, tool, plain_schema(tool.input_schema))
            tools.append(ServedTool(name, description, remote, limit))
        return tuple(tools)

    @contextmanager
    def lent(self) -> Generator[Connection]:
        """Yield the block's connection, or one for this use alone."""
        if self._held is not None:
            yield self._held
            return
        with closing(Connection(self.server)) as own:
            yield own

    def call(self, tool: Listed, arguments: Mapping[str, Any]) -> Any:
        """Call a tool outside of any run: over the block's connection, or one for this call alone."""
        with self.lent() as connection:
            return connection.call(tool, arguments)

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
        return f"<MCP server {self.server.name!r}>"


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
    """Return the tools of an MCP server, for `tools=` of any agent.

    `server` is a command (a line, or an argv) that speaks MCP on its standard input and output, or a URL (streamable
    HTTP).  A command has `PATH`, `HOME` and little else of your environment, and `env`; in it `python` is this
    interpreter.  A URL is asked with `headers`.
    `prefix` goes before each name, where two servers have the same.  `timeout` and `start_timeout` are in seconds, for
    one call and for the start.  A result of more than `longest` characters is a failure of the call, as is a server
    that ends or does not answer.  Nothing is started yet.  Raises `ImportError` without the extra `mcp`.
    """
    if importlib.util.find_spec("mcp") is None:
        raise ImportError(f"tools of MCP servers need mcp: {install_line('mcp')}")
    url = server if isinstance(server, str) and server.startswith(("http://", "https://")) else ""
    command = () if url else tuple(shlex.split(server) if isinstance(server, str) else map(str, server))
    if not command and not url:
        raise ValueError("server must be a command or a URL, got nothing")
    limits = (timeout, start_timeout, longest)
    return McpTools(McpServer(command, url, *limits, dict(env or {}), cwd, dict(headers or {})), prefix)
