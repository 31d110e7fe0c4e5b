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
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, TextIO, TypeVar, cast

from rlm_loop.errors import install_line
from rlm_loop.tools.function import Fields, Tool, ToolError, as_text, untitled
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
_DEEPEST = 8  # levels of a schema that are looked into
_MOST = 20  # choices that a signature lists
#: Runs a command, says how it ended, and ends what it started.
_GROUP = '"$@"; echo "exit status $?" >&2; kill -9 0'
logging.getLogger("mcp").addHandler(logging.NullHandler())  # it logs each line that is no message as an exception


class McpError(Exception):
    """An MCP server cannot be reached, or has ended.  The message is one line that names it."""


class _Opened(NamedTuple):
    """A server that answers, and the thread of its client: a notebook's event loop is busy."""

    client: Client
    portal: BlockingPortal
    stderr: IO[bytes]
    until: ExitStack


class Connection:
    """A server in use: started by a request, the one after its end too, and ended by `close`."""

    def __init__(self, server: McpTools) -> None:
        self.server = server
        self._opened: _Opened | None = None
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
                raise McpError(f"the MCP server {self.server.name!r} cannot be used: {error.message}") from None
            tools += page.tools
            if not (cursor := page.next_cursor):
                break
        return tools

    def call(self, tool: Listed, arguments: Mapping[str, Any]) -> Any:
        """Return the tool's value; raises `ToolError`, and `McpError` where the server has ended."""
        from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult

        request = CallToolRequest(params=CallToolRequestParams(name=tool.name, arguments=dict(arguments)))
        return value_of(self._ask(tool.name, lambda client: client.session.send_request(request, CallToolResult)), tool)

    def close(self) -> None:
        """End the server for good; one that starts just now is ended when it has."""
        self._closed = True
        ending = threading.Thread(target=self._end)  # which the end of this process waits for
        ending.start()
        ending.join(_CLOSING)

    def _end(self, ended: _Opened | None = None) -> None:
        """End the server, unless it is another than the one that has ended."""
        with self._lock:
            if self._opened is not None and ended in (None, self._opened):
                opened, self._opened = self._opened, None
                atexit.unregister(self._end)
                with suppress(Exception):
                    opened.until.close()

    def _open(self) -> _Opened:
        from anyio.from_thread import start_blocking_portal

        with self._lock:
            if self._closed:
                raise McpError(f"the MCP server {self.server.name!r} was ended with the run")
            if self._opened is None:
                with ExitStack() as until:
                    stderr = until.enter_context(tempfile.TemporaryFile())
                    portal = until.enter_context(start_blocking_portal())
                    try:
                        client = until.enter_context(portal.wrap_async_context_manager(_client(self.server, stderr)))
                    except Exception as error:
                        reason = f"{_reason(error, self.server)}{_last_words(stderr)}"
                        raise McpError(f"the MCP server {self.server.name!r} {reason}") from None
                    self._opened = _Opened(client, portal, stderr, until.pop_all())
                    atexit.register(self._end)  # later, there are no threads any more
            return self._opened

    def _ask(self, name: str, request: Callable[[Client], Awaitable[T]]) -> T:
        import asyncio  # here, as the SDK: only they need it

        from anyio import BrokenResourceError, ClosedResourceError
        from mcp.types import CONNECTION_CLOSED

        opened = self._open()

        async def answer() -> T:
            async with asyncio.timeout(self.server.timeout):
                return await request(opened.client)

        try:
            return opened.portal.call(answer)
        except TimeoutError:
            raise ToolError("timeout", f"{name} gave no result within {self.server.timeout:g} s") from None
        except (Exception, CancelledError) as error:
            lost = isinstance(error, (CancelledError, BrokenResourceError, ClosedResourceError))
            if self._opened is opened and not lost and getattr(error, "code", None) != CONNECTION_CLOSED:
                # the server's refusal, or an answer that breaks the protocol
                reason = " ".join(str(error).split())[:1000] or type(error).__name__
                raise ToolError("runtime", reason) from error
        ended = f"has ended{_last_words(opened.stderr)}; the next call starts it again"
        self._end(opened)
        raise McpError(f"the MCP server {self.server.name!r} {ended}")


@asynccontextmanager
async def _client(server: McpTools, stderr: IO[bytes]) -> AsyncGenerator[Client]:
    import asyncio

    import httpx2
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    async with AsyncExitStack() as stack:
        async with asyncio.timeout(server.timeout):
            if server.command:
                path = get_default_environment().get("PATH", os.defpath)
                env = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), path]), **server.env}
                argv = ["-c", _GROUP, "sh", *server.command]
                process = StdioServerParameters(command="/bin/sh", args=argv, env=env)
                transport = stdio_client(process, cast("TextIO", stderr))
            else:
                web = httpx2.AsyncClient(headers=server.headers, timeout=server.timeout)
                transport = streamable_http_client(server.url, http_client=await stack.enter_async_context(web))
            client = await stack.enter_async_context(Client(_leniently(transport), cache=None))
        yield client


@asynccontextmanager
async def _leniently(transport: Any) -> AsyncGenerator[Any]:
    """Yield the streams of a server, with results of tools in the protocol's form: the SDK refuses any other."""
    from anyio.abc import ObjectReceiveStream

    class Lenient(ObjectReceiveStream[Any]):
        def __getattr__(self, name: str) -> Any:
            return getattr(read, name)

        async def receive(self) -> Any:
            return _in_form(await read.receive())

        async def aclose(self) -> None:
            await read.aclose()

    async with transport as (read, write):
        yield Lenient(), write


def _in_form(item: Any) -> Any:
    """Return a message whose parts of a tool's result that break the protocol are texts."""
    from mcp.types import ContentBlock
    from pydantic import TypeAdapter, ValidationError

    message: Any = getattr(item, "message", None)
    result: Any = getattr(message, "result", None)
    if not isinstance(result, dict) or "content" not in result:
        return item
    blocks: list[Any] = []
    for block in result["content"] if isinstance(result["content"], list) else [result["content"]]:
        try:
            TypeAdapter(ContentBlock).validate_python(block)
            blocks.append(block)
        except ValidationError:
            blocks.append({"type": "text", "text": as_text(block)})
    mended = {**result, "content": blocks, "isError": bool(result.get("isError"))}
    if not isinstance(result.get("structuredContent", {}), dict):
        mended["structuredContent"] = {"result": result["structuredContent"]}
    return replace(item, message=message.model_copy(update={"result": mended}))


def _reason(error: BaseException, server: McpTools) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"did not answer within {server.timeout:g} s"
    return f"cannot be used: {type(error).__name__}: {redact(str(error))[:200]}".splitlines()[0]


def _last_words(stderr: IO[bytes]) -> str:
    """Return the last line that a process wrote to standard error, and how it ended."""
    if stderr.closed:  # by another call, meanwhile
        return ""
    size = os.fstat(stderr.fileno()).st_size
    tail = os.pread(stderr.fileno(), _LAST_WORDS, max(0, size - _LAST_WORDS)).decode("utf-8", "replace")
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return f" ({redact(', '.join(lines[-2:]))[:200]})" if lines else ""


def value_of(result: CallToolResult, tool: Listed) -> Any:
    """Return the structured value where the tool declares one, else the text; raise `ToolError` for a failure."""
    structured: Any = result.structured_content
    text = "\n".join(map(_text, result.content)) or as_text(structured)
    if result.is_error:
        raise ToolError("runtime", text or f"{tool.name} failed and gave no reason")
    value, wrapper = structured if tool.output_schema else text, _wrapper_of(tool.output_schema)
    return value[wrapper] if wrapper is not None and isinstance(value, dict) and wrapper in value else value


def _text(block: Any) -> str:
    """Return a part of an answer as text; what is none is named by its kind and size."""
    part = getattr(block, "resource", block)
    text = getattr(part, "text", None)
    if isinstance(text, str):
        return text
    if block.type == "resource_link":
        return str(block.uri)
    kind, data = f"{block.type} {part.mime_type or ''}".strip(), getattr(part, "data", getattr(part, "blob", None))
    return f"[{kind}, {len(data) * 3 // 4:,} bytes, not shown]" if isinstance(data, str) else f"[{kind}, not shown]"


class RemoteFunction:
    """A tool of a server as a Python function; `parameters` are by the server's names."""

    def __init__(self, server: McpTools | Connection, tool: Listed) -> None:
        self.server, self._tool = server, tool
        self.schema = _plain_schema(tool.input_schema)
        self.parameters = _parameters_of(self.schema)
        output: dict[str, Any] = tool.output_schema or {"type": "string"}
        wrapper = _wrapper_of(output)
        returns = type_of(output if wrapper is None else output["properties"][wrapper], output)
        self.__signature__ = inspect.Signature(list(self.parameters.values()), return_annotation=returns)
        described = {n: p for n, p in self.schema["properties"].items() if isinstance(p, dict) and "description" in p}
        lines = [f"{name}: {argument['description']}" for name, argument in described.items()]
        self.__doc__ = "\n\n".join(filter(None, [tool.description or tool.title or "", "\n".join(lines)]))

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by the server's names; raises `TypeError` where they do not fit."""
        own = {self.parameters[k].name if k in self.parameters else k: v for k, v in kwargs.items()}
        theirs = {parameter.name: name for name, parameter in self.parameters.items()}
        return {theirs[k]: v for k, v in self.__signature__.bind(*args, **own).arguments.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arguments = self.arguments(args, kwargs)
        required = [theirs for theirs, own in self.parameters.items() if own.default is own.empty]
        return self.server.call(self._tool, {k: v for k, v in arguments.items() if v is not None or k in required})


class ServedTool(Tool):
    """A tool of an MCP server; its schema is the server's, its signature made of that."""

    function: RemoteFunction  # pyright: ignore[reportIncompatibleMethodOverride]

    def for_run(self, servers: dict[int, Any], until: ExitStack) -> Tool:
        """Return the same tool over the connection of a run, of which `until` is the end (see `serving`)."""
        server = self.function.server
        if isinstance(server, Connection):
            return self
        if id(server) not in servers:
            servers[id(server)] = until.enter_context(server.lent())
        remote = copy.copy(self.function)
        remote.server = servers[id(server)]
        return self.over(remote)

    @functools.cached_property
    def _fields(self) -> Fields:
        remote = self.function.parameters
        return tuple((theirs, own.annotation, own.default is own.empty) for theirs, own in remote.items())

    @property
    def parameters(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return dict(self.function.schema)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self.function.arguments(args, kwargs)
        except TypeError as error:
            raise ToolError("invalid_arguments", f"{error}; usage: {self.signature}") from None


@dataclass(eq=False, repr=False)
class McpTools:
    """The tools of one MCP server, in its order; `tools["name"]` is one of them.

    The server is started when the tools are first looked at, and ended again.  Each run that is given them has a server
    of its own from its first call to its end, so that no run finds what another left there.  As a `with` block they
    have one server, from the first use to the end of the block: all runs within share it.
    """

    command: Sequence[str]
    url: str
    prefix: str
    timeout: float
    env: Mapping[str, str]
    headers: Mapping[str, str]
    _held: Connection | None = None

    @property
    def name(self) -> str:
        """The command or the address, without a password."""
        scheme, sep, rest = self.url.partition("://")
        return shlex.join(self.command)[:120] if self.command else f"{scheme}{sep}{rest.rpartition('@')[2]}"

    @functools.cached_property
    def _tools(self) -> tuple[Tool, ...]:
        with self.lent() as connection:
            listed = connection.listed()
        limit = 2 * self.timeout  # a start and a call: the server's own limits come first
        tools: list[Tool] = []
        for name, tool in zip(python_names([tool.name for tool in listed], self.prefix), listed, strict=True):
            description = " ".join((tool.description or tool.title or tool.name).split())
            tools.append(ServedTool(name, description, RemoteFunction(self, tool), limit))
        return tuple(tools)

    @contextmanager
    def lent(self) -> Generator[Connection]:
        """Yield the block's connection, or one for this use alone."""
        if self._held is not None:
            yield self._held
            return
        with closing(Connection(self)) as own:
            yield own

    def call(self, tool: Listed, arguments: Mapping[str, Any]) -> Any:
        """Call a tool outside of any run."""
        with self.lent() as connection:
            return connection.call(tool, arguments)

    def __enter__(self) -> McpTools:
        self._held = Connection(self)
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

    def __getitem__(self, name: str) -> Tool:
        for tool in self._tools:
            if tool.name == name:
                return tool
        raise KeyError(f"{self.name!r} has no tool {name!r}; it has {', '.join(t.name for t in self._tools)}")

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}  # a connection is of this process


def mcp_tools(
    server: str | Sequence[str],
    *,
    prefix: str = "",
    timeout: float = 60.0,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> McpTools:
    """Return the tools of an MCP server, for `tools=` of any agent.

    `server` is a command (a line, or an argv) that speaks MCP on its standard input and output, or a URL (streamable
    HTTP).  A command has `PATH`, `HOME` and little else of your environment, and `env`; in it `python` is this
    interpreter.  A URL is asked with `headers`.  `prefix` goes before each name, where two servers have the same.
    `timeout` is in seconds, for the start and for each call.  A server that ends or does not answer is a failure of the
    call.  Nothing is started yet.  Raises `ImportError` without the extra `mcp`.
    """
    if importlib.util.find_spec("mcp") is None:
        raise ImportError(f"tools of MCP servers need mcp: {install_line('mcp')}")
    url = server if isinstance(server, str) and server.startswith(("http://", "https://")) else ""
    command = () if url else tuple(shlex.split(server) if isinstance(server, str) else map(str, server))
    if not command and not url:
        raise ValueError("server must be a command or a URL, got nothing")
    return McpTools(command, url, prefix, timeout, env or {}, headers or {})


def _plain_schema(stated: Any) -> dict[str, Any]:
    """Return the schema of the arguments without titles and the dialect's address; always of an object."""
    schema = cast("dict[str, Any]", untitled(stated)) if isinstance(stated, dict) else {}
    properties = schema.get("properties")
    rest = {k: v for k, v in schema.items() if k not in ("$schema", "type", "properties")}
    return {"type": "object", "properties": properties if isinstance(properties, dict) else {}, **rest}


def _parameters_of(schema: Mapping[str, Any]) -> dict[str, inspect.Parameter]:
    """Return the Python parameter for each argument, by its name in the schema, required ones first.

    An optional argument has the default of the schema; without one it has, and may be, `None`.
    """
    properties = cast("dict[str, Any]", schema["properties"])
    stated: Any = schema.get("required")
    required = [name for name in properties if isinstance(stated, list) and name in stated]
    names = [*required, *(name for name in properties if name not in required)]
    parameters: dict[str, inspect.Parameter] = {}
    for name, shown in zip(names, python_names(names), strict=True):
        own: Any = properties[name]
        hint, default = type_of(own, schema), inspect.Parameter.empty
        if name not in required:
            default = own.get("default") if isinstance(own, dict) else None
            hint = hint if hint is Any or default is not None else hint | None
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters[name] = inspect.Parameter(shown, kind, default=default, annotation=hint)
    return parameters


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


def type_of(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """Return the Python type for values of a schema; `Any` where it says too little, or too much."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return Any
    own = cast("dict[str, Any]", schema)
    if isinstance(reference := own.get("$ref"), str):
        target: Any = root if reference.startswith("#/") else None
        for step in reference[2:].split("/"):
            target = cast("dict[str, Any]", target).get(step) if isinstance(target, dict) else None
        return type_of(target, root, depth + 1)
    values: Any = [own["const"]] if "const" in own else own.get("enum")
    if isinstance(values, list) and 0 < len(cast("list[Any]", values)) <= _MOST:
        plain = all(value is None or isinstance(value, str | int | bool) for value in cast("list[Any]", values))
        return Literal[tuple(cast("list[Any]", values))] if plain else Any
    kind: Any = own.get("type")
    several: Any = own.get("anyOf") or own.get("oneOf")
    if several is None and isinstance(kind, list):
        several = [{**own, "type": each} for each in cast("list[Any]", kind)]
    if isinstance(several, list):
        types = [type_of(each, root, depth + 1) for each in cast("list[Any]", several)]
        return functools.reduce(operator.or_, types) if types and Any not in types else Any
    if kind == "array" and "items" in own:
        return list[type_of(own["items"], root, depth + 1)]
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any


def _wrapper_of(schema: Any) -> str | None:
    """Return the one name in a schema of results that says nothing of the value, or None."""
    properties: Any = schema.get("properties") if isinstance(schema, dict) else None
    names = list(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else []
    return names[0] if names in _WRAPPERS else None
