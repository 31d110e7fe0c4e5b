"""Tools of MCP servers, as tools of ours, for every loop alike; the clients are the SDK's."""

from __future__ import annotations

import atexit
import builtins
import copy
import functools
import importlib.util
import inspect
import keyword
import logging
import operator
import os
import re
import shlex
import tempfile
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, Literal, TextIO, TypeVar, cast

from rlm_loop.errors import install_line
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.tools.function import Tool, ToolError, as_text, untitled
from rlm_loop.tools.gateway import ToolLike
from rlm_loop.tools.processes import child_environment
from rlm_loop.traces.redact import redact

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as Listed

T = TypeVar("T")
_PAGES = 100  # of a list of tools
_CLOSING = 0.5  # seconds that the end of a server is waited for; it goes on in its thread
_LAST_WORDS = 4096  # bytes of standard error
_TYPES: dict[Any, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
    "object": dict[str, Any],
    "array": list[Any],
}
#: Under these names servers put what is no object, since a structured result has to be one: the Python SDK's
#: `result`, and `content` of the reference servers in TypeScript.  They say nothing of the value.
_WRAPPERS = (["result"], ["content"])
#: Runs a command, says how it ended, and ends what it started.
_GROUP = '"$@"; echo "exit status $?" >&2; kill -9 0'
logging.getLogger("mcp").addHandler(logging.NullHandler())  # it logs each line that is no message as an exception


class McpError(Exception):
    """An MCP server cannot be reached, or has ended.  The message is one line that names it."""


class Connection:
    """A server in use: started by the first request, in whose thread its client is, and ended by `close`."""

    def __init__(self, server: McpTools) -> None:
        self._server, self._until = server, ExitStack()
        self._opened: tuple[Client, BlockingPortal, IO[bytes]] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def listed(self) -> list[Listed]:
        """Return all tools that the server offers.  Raises `McpError`."""
        tools: list[Listed] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            try:
                page = self._ask("the list of tools", lambda client, at=cursor: client.list_tools(cursor=at))
            except ToolError as error:
                raise McpError(f"the MCP server {self._server.name!r} cannot be used: {error.message}") from None
            tools += page.tools
            if not (cursor := page.next_cursor):
                break
        return tools

    def call(self, tool: Listed, arguments: dict[str, Any]) -> Any:
        """Return the tool's value; raises `ToolError`, and `McpError` where the server has ended."""
        from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult

        request = CallToolRequest(params=CallToolRequestParams(name=tool.name, arguments=arguments))
        return value_of(self._ask(tool.name, lambda client: client.session.send_request(request, CallToolResult)), tool)

    def close(self) -> None:
        """End the server; one that starts just now is ended when it has."""
        if not self._closed:  # at the end of this process no thread can be started any more
            self._closed = True
            ending = threading.Thread(target=self._end)  # which the end of this process waits for
            ending.start()
            ending.join(_CLOSING)

    def _end(self) -> None:
        self._closed = True
        with self._lock, suppress(Exception):
            self._until.close()
        atexit.unregister(self._end)

    def _open(self) -> tuple[Client, BlockingPortal, IO[bytes]]:
        from anyio.from_thread import start_blocking_portal

        with self._lock:
            if self._closed:
                raise McpError(f"the MCP server {self._server.name!r} was ended with the run")
            if self._opened is None:
                with ExitStack() as until:
                    stderr = until.enter_context(tempfile.TemporaryFile())
                    portal = until.enter_context(start_blocking_portal())  # a notebook's own event loop is busy
                    try:
                        client = until.enter_context(portal.wrap_async_context_manager(_client(self._server, stderr)))
                    except Exception as error:
                        reason = f"{_reason(error, self._server)}{_last_words(stderr)}"
                        raise McpError(f"the MCP server {self._server.name!r} {reason}") from None
                    self._opened, self._until = (client, portal, stderr), until.pop_all()
                    atexit.register(self._end)  # later, there are no threads any more
            return self._opened

    def _ask(self, name: str, request: Callable[[Client], Awaitable[T]]) -> T:
        from anyio import BrokenResourceError, ClosedResourceError
        from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        client, portal, stderr = self._open()
        try:
            return portal.call(request, client)
        except (CancelledError, BrokenResourceError, ClosedResourceError):
            pass
        except Exception as error:  # the server's refusal, or an answer that breaks the protocol
            code = getattr(error, "code", None)
            if code == REQUEST_TIMEOUT:
                raise ToolError("timeout", f"{name} gave no result within {self._server.timeout:g} s") from None
            if code != CONNECTION_CLOSED:
                reason = " ".join(str(error).split())[:1000] or type(error).__name__
                raise ToolError("runtime", reason) from error
        raise McpError(f"the MCP server {self._server.name!r} has ended{_last_words(stderr)}")


@asynccontextmanager
async def _client(server: McpTools, stderr: IO[bytes]) -> AsyncGenerator[Client]:
    import asyncio  # here, as the SDK: only they need it

    import httpx2
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    async with AsyncExitStack() as stack:
        async with asyncio.timeout(server.timeout):
            if server.command:
                env = {"PATH": child_environment()["PATH"], **server.env}
                argv = ["-c", _GROUP, "sh", *server.command]
                process = StdioServerParameters(command="/bin/sh", args=argv, env=env)
                transport = stdio_client(process, cast("TextIO", stderr))
            else:
                web = httpx2.AsyncClient(headers=server.headers, timeout=server.timeout)
                transport = streamable_http_client(server.url, http_client=await stack.enter_async_context(web))
            lenient = _leniently(transport)
            client = Client(lenient, cache=None, read_timeout_seconds=server.timeout)
            await stack.enter_async_context(client)
        yield client


@asynccontextmanager
async def _leniently(transport: Any) -> AsyncGenerator[Any]:
    """Yield the streams of a server, with results of tools in the protocol's form: the SDK refuses any other."""
    from anyio.abc import ObjectReceiveStream

    class Lenient(ObjectReceiveStream[Any]):
        async def receive(self) -> Any:
            item = await read.receive()
            result: Any = getattr(getattr(item, "message", None), "result", None)
            if isinstance(result, dict) and "content" in result:
                content: Any = result["content"]
                parts = cast("list[Any]", content) if isinstance(content, list) else [content]
                result["content"] = [{"type": "text", "text": _text(part)} for part in parts]
                result["isError"] = bool(result.get("isError"))
                if not isinstance(structured := result.get("structuredContent", {}), dict):
                    result["structuredContent"] = {"result": structured}
            return item

        async def aclose(self) -> None:
            await read.aclose()

    async with transport as (read, write):
        yield Lenient(), write


def _text(part: Any) -> str:
    """Return a part of an answer as text; what is none is named by its kind and size."""
    match part:
        case {"text": str(text)} | {"resource": {"text": str(text)}} | {"type": "resource_link", "uri": str(text)}:
            return text
        case {"type": str(kind), "data": str(data), **about} | {
            "type": str(kind),
            "resource": {"blob": str(data), **about},
        }:
            return f"[{kind} {about.get('mimeType', '')}, {len(data) * 3 // 4:,} bytes, not shown]"
        case _:
            return as_text(part)


def _reason(error: BaseException, server: McpTools) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"did not answer within {server.timeout:g} s"
    return f"cannot be used: {type(error).__name__}: {redact(str(error))[:200]}".splitlines()[0]


def _last_words(stderr: IO[bytes]) -> str:
    """Return the last line that a process wrote to standard error, and how it ended."""
    lines: list[str] = []
    with suppress(ValueError):  # closed by another call, meanwhile
        tail = os.pread(stderr.fileno(), _LAST_WORDS, max(0, os.fstat(stderr.fileno()).st_size - _LAST_WORDS))
        lines = [line.strip() for line in tail.decode("utf-8", "replace").splitlines() if line.strip()]
    return f" ({redact(', '.join(lines[-2:]))[:200]})" if lines else ""


def value_of(result: CallToolResult, tool: Listed) -> Any:
    """Return the structured value where the tool declares one, else the text; raise `ToolError` for a failure."""
    text = "\n".join([getattr(part, "text", "") for part in result.content]) or as_text(result.structured_content)
    if result.is_error:
        raise ToolError("runtime", text or f"{tool.name} failed and gave no reason")
    value: Any = result.structured_content if tool.output_schema else text
    wrapper = _wrapper_of(tool.output_schema)
    return value[wrapper] if isinstance(value, dict) and wrapper in value else value


def _wrapper_of(schema: Any) -> str | None:
    """Return the one name in a schema of results that says nothing of the value, or None."""
    names = list((schema or {}).get("properties") or ())
    return names[0] if names in _WRAPPERS else None


class RemoteFunction:
    """A tool of a server as a Python function."""

    def __init__(self, server: McpTools, tool: Listed) -> None:
        self.server, self._tool = server, tool
        self.connection: Connection | None = None  # of a run
        stated: Any = untitled(tool.input_schema)
        properties: dict[str, Any] = stated.get("properties") or {}
        self._theirs = dict(zip(python_names(list(properties)), properties, strict=True))
        required = [own for own, name in self._theirs.items() if name in stated.get("required", ())]
        own = {name: properties[theirs] for name, theirs in self._theirs.items()}
        rest = {k: v for k, v in stated.items() if k not in ("$schema", "type", "properties", "required")}
        self.json_schema = {"type": "object", "properties": own, **rest, **({"required": required} if required else {})}
        output: dict[str, Any] = tool.output_schema or {"type": "string"}
        wrapper = _wrapper_of(output)
        returns = type_of(output if wrapper is None else output["properties"][wrapper])
        ordered = sorted(own, key=lambda name: name not in required)
        parameters = [_parameter(name, own[name], needed=name in required) for name in ordered]
        self.__signature__ = inspect.Signature(parameters, return_annotation=returns)
        lines = [f"{name}: {about['description']}" for name, about in own.items() if "description" in about]
        self.__doc__ = "\n\n".join(filter(None, [tool.description or tool.title or "", "\n".join(lines)]))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self.__signature__.bind(*args, **kwargs).arguments
        required = self.json_schema.get("required", ())
        arguments = {self._theirs[k]: v for k, v in given.items() if v is not None or k in required}
        if self.connection is not None:
            return self.connection.call(self._tool, arguments)
        with closing(Connection(self.server)) as own:
            return own.call(self._tool, arguments)


@contextmanager
def serving(tools: Sequence[ToolLike]) -> Generator[Sequence[ToolLike]]:
    """Yield tools as one run has them: those of an MCP server share one, which ends with the run."""
    connections: dict[int, Connection] = {}

    def of_run(tool: ToolLike) -> ToolLike:
        if not (isinstance(tool, Tool) and isinstance(tool.function, RemoteFunction)) or tool.function.connection:
            return tool
        remote = copy.copy(tool.function)
        remote.connection = connections.setdefault(id(remote.server), Connection(remote.server))
        return tool.over(remote)

    try:
        yield list(map(of_run, tools))
    finally:
        with shielded():
            for connection in connections.values():
                connection.close()


class McpTools:
    """The tools of an MCP server, for `tools=` of any agent, in its order; `tools["name"]` is one of them.

    `server` is a command (a line, or an argv) that speaks MCP on its standard input and output, or a URL (streamable
    HTTP).  A command has `PATH`, `HOME` and little else of your environment, and `env`; in it `python` is this
    interpreter.  A URL is asked with `headers`.  `prefix` goes before each name, where two servers have the same.
    `timeout` is in seconds, for the start and for each call.  A server that ends or does not answer is a failure of the
    call.  Raises `ImportError` without the extra `mcp`.

    The server is started when the tools are first looked at, and ended again.  Each run that is given them has a server
    of its own from its first call to its end, so that no run finds what another left there; a call outside of any run
    has one for itself.
    """

    def __init__(
        self,
        server: str | Sequence[str],
        *,
        prefix: str = "",
        timeout: float = 60.0,
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if importlib.util.find_spec("mcp") is None:
            raise ImportError(f"tools of MCP servers need mcp: {install_line('mcp')}")
        self.url = server if isinstance(server, str) and server.startswith(("http://", "https://")) else ""
        command = shlex.split(server) if isinstance(server, str) else map(str, server)
        self.command = () if self.url else tuple(command)
        self.prefix, self.timeout = prefix, timeout
        self.env, self.headers = env or {}, headers or {}

    @property
    def name(self) -> str:
        """The command or the address, without a password."""
        return shlex.join(self.command)[:120] or redact(self.url)

    @functools.cached_property
    def _tools(self) -> tuple[Tool, ...]:
        with closing(Connection(self)) as connection:
            listed = connection.listed()
        limit = 2 * self.timeout  # a start and a call: the server's own limits come first
        tools: list[Tool] = []
        for name, tool in zip(python_names([tool.name for tool in listed], self.prefix), listed, strict=True):
            description = " ".join((tool.description or tool.title or tool.name).split())
            tools.append(Tool(name, description, RemoteFunction(self, tool), limit))
        return tuple(tools)

    def __getitem__(self, name: str) -> Tool:
        for tool in self._tools:
            if tool.name == name:
                return tool
        raise KeyError(f"{self.name!r} has no tool {name!r}; it has {', '.join(t.name for t in self._tools)}")

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


def _parameter(name: str, schema: Any, *, needed: bool) -> inspect.Parameter:
    """Return a parameter; an optional one has the default of the schema, without one it has, and may be, `None`."""
    hint, default = type_of(schema), inspect.Parameter.empty
    if not needed:
        default = schema.get("default")
        hint = hint if hint is Any or default is not None else hint | None
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=hint)


def python_names(names: Collection[str], prefix: str = "") -> list[str]:
    """Return a different Python name for each; other characters, and a name of Python's own, get underscores."""
    ours: list[str] = []
    for name in names:
        own = re.sub(r"[^A-Za-z0-9_]", "_", f"{prefix}{name}")[:60] or "_"
        own = f"_{own}" if own[0].isdigit() else own
        own += "_" if keyword.iskeyword(own) or hasattr(builtins, own) else ""
        while own in ours:
            own += "_"
        ours.append(own)
    return ours


def type_of(schema: Any) -> Any:
    """Return the Python type for values of a schema; `Any` where it says too little."""
    own: dict[str, Any] = schema if isinstance(schema, dict) else {}
    kind: Any = own.get("type")
    if choices := own.get("enum"):
        return Literal[tuple(choices)] if all(isinstance(value, str | int) for value in choices) else Any
    several = own.get("anyOf") or ([{**own, "type": each} for each in kind] if isinstance(kind, list) else None)
    if several:
        types = [type_of(each) for each in several]
        return Any if Any in types else functools.reduce(operator.or_, types)
    if kind == "array" and "items" in own:
        return list[type_of(own["items"])]
    return _TYPES.get(kind, Any)
