"""Connections to MCP servers: the SDK's clients, used by code that does not await."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import shlex
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from rlm_loop.tools.calls import as_text
from rlm_loop.tools.function import ToolError
from rlm_loop.tools.mcp.schemas import wrapper_of
from rlm_loop.traces.redact import redact

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as Listed

_PAGES = 100  # of a list of tools
_CLOSING = 3.0  # seconds
_STARTING = 0.2  # seconds; who holds the lock for longer starts a server
_LAST_WORDS = 4096  # bytes of standard error
_LONGEST_EVENT = 64 << 20  # bytes
_GUARD = str(Path(__file__).with_name("guard.py"))
logging.getLogger("mcp").addHandler(logging.NullHandler())  # it logs each line that is no message as an exception


class McpError(Exception):
    """An MCP server cannot be reached, or has ended.  The message is one line that names it."""


@dataclass(frozen=True)
class McpServer:
    """The arguments of `mcp_tools`.  `command` is an argv, empty for a server at a `url`."""

    command: tuple[str, ...]
    url: str
    timeout: float
    start_timeout: float
    longest: int
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def name(self) -> str:
        """The command or the address, without a password."""
        scheme, sep, rest = self.url.partition("://")
        return shlex.join(self.command)[:120] if self.command else f"{scheme}{sep}{rest.rpartition('@')[2]}"


@dataclass(frozen=True, eq=False)
class _Opened:
    """A server that answers, with the thread and the event loop of its client: a notebook's loop is busy."""

    client: Client
    tools: list[Listed]
    portal: BlockingPortal
    stderr: IO[bytes]
    until: ExitStack

    def __post_init__(self) -> None:
        atexit.register(self.close)  # later, there are no threads any more

    def close(self) -> None:
        atexit.unregister(self.close)
        with contextlib.suppress(Exception):
            self.until.close()


class Connection:
    """A server in use: started by a call, the one after its end too, and ended by `close`."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self._opened: _Opened | None = None
        self._closed = False
        self._lock = threading.Lock()

    def call(self, tool: Listed, arguments: Mapping[str, Any]) -> Any:
        """Return the tool's value; raises `ToolError`, and `McpError` where the server has ended."""
        opened = self._open()
        try:
            result = opened.portal.call(self._call, opened.client, tool.name, dict(arguments))
        except TimeoutError:
            raise ToolError("timeout", f"{tool.name} gave no result within {self.server.timeout:g} s") from None
        except Exception as error:
            if not self._is_gone(opened, error):  # the server's refusal, or an answer that breaks the protocol
                reason = " ".join(str(error).split())[:1000] or type(error).__name__
                raise ToolError("runtime", reason) from error
            ended = f"has ended{_last_words(opened.stderr)}; the next call starts it again"
            self._end(opened)
            raise McpError(f"the MCP server {self.server.name!r} {ended}") from None
        return value_of(result, tool, self.server.longest)

    def _is_gone(self, opened: _Opened, error: Exception) -> bool:
        from anyio import BrokenResourceError, ClosedResourceError
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        if isinstance(error, MCPError):
            return error.code == CONNECTION_CLOSED
        lost = isinstance(error, (CancelledError, BrokenResourceError, ClosedResourceError))
        return lost or self._opened is not opened

    async def _call(self, client: Client, name: str, arguments: dict[str, Any]) -> CallToolResult:
        async with asyncio.timeout(self.server.timeout):
            return await client.call_tool(name, arguments)

    def listed(self) -> list[Listed]:
        """Return all tools that the server offers.  Raises `McpError`."""
        return self._open().tools

    def close(self) -> None:
        """End the server for good; one that starts just now is ended when it has."""
        self._closed = True
        if self._lock.acquire(timeout=_STARTING):
            opened, self._opened = self._opened, None
            self._lock.release()
            if opened is not None:
                opened.close()

    def _end(self, opened: _Opened) -> None:
        with self._lock:
            if self._opened is opened:
                self._opened = None
                opened.close()

    def _open(self) -> _Opened:
        with self._lock:
            if not self._closed:
                self._opened = self._opened or _open(self.server)
            if self._opened is not None and not self._closed:
                return self._opened
            if self._opened is not None:  # closed meanwhile
                self._opened.close()
            raise McpError(f"the MCP server {self.server.name!r} was ended with the run")


def _open(server: McpServer) -> _Opened:
    from anyio.from_thread import start_blocking_portal

    with ExitStack() as until:
        stderr = until.enter_context(tempfile.TemporaryFile())
        portal = until.enter_context(start_blocking_portal())
        try:
            client, tools = until.enter_context(portal.wrap_async_context_manager(_client(server, stderr)))
        except Exception as error:
            raise McpError(f"the MCP server {server.name!r} {_reason(error, server)}{_last_words(stderr)}") from None
        return _Opened(client, tools, portal, stderr, until.pop_all())


@contextlib.asynccontextmanager
async def _client(server: McpServer, stderr: IO[bytes]) -> AsyncGenerator[tuple[Client, list[Listed]]]:
    """Yield a client of the server, and the server's tools: without all of them the SDK asks again at each call."""
    import httpx2
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    stack = AsyncExitStack()
    try:
        async with asyncio.timeout(server.start_timeout):
            if server.command:
                path = get_default_environment().get("PATH", os.defpath)
                env = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), path]), **server.env}
                argv = ["-I", "-S", _GUARD, *server.command]
                process = StdioServerParameters(command=sys.executable, args=argv, env=env, cwd=server.cwd)
                transport = stdio_client(process, cast("TextIO", stderr))
            else:
                limits = httpx2.Timeout(server.timeout, connect=min(server.start_timeout, 20.0))
                web = await stack.enter_async_context(httpx2.AsyncClient(headers=server.headers, timeout=limits))
                transport = streamable_http_client(server.url, http_client=web, max_sse_event_size=_LONGEST_EVENT)
            client = await stack.enter_async_context(Client(transport, cache=None))
            tools: list[Listed] = []
            cursor: str | None = None
            for _ in range(_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                if not (cursor := page.next_cursor):
                    break
        yield client, tools
    finally:
        async with asyncio.timeout(_CLOSING):
            await stack.aclose()


def _reason(error: BaseException, server: McpServer) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"did not answer within {server.start_timeout:g} s"
    return f"cannot be used: {type(error).__name__}: {redact(str(error))[:200]}".splitlines()[0]


def _last_words(stderr: IO[bytes]) -> str:
    """Return the last line that a process wrote to standard error, and how it ended."""
    if stderr.closed:  # by another call, meanwhile
        return ""
    size = os.fstat(stderr.fileno()).st_size
    tail = os.pread(stderr.fileno(), _LAST_WORDS, max(0, size - _LAST_WORDS)).decode("utf-8", "replace")
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return f" ({redact(', '.join(lines[-2:]))[:200]})" if lines else ""


def value_of(result: CallToolResult, tool: Listed, longest: int) -> Any:
    """Return the structured value where the tool declares one, else the text.

    Raises `ToolError` for a failure that the server states, and for more than `longest` characters.
    """
    structured: Any = result.structured_content
    text = "\n".join(map(_text, result.content)) or as_text(structured)
    if result.is_error:
        raise ToolError("runtime", text[:longest] or f"{tool.name} failed and gave no reason")
    value, wrapper = structured if tool.output_schema else text, wrapper_of(tool.output_schema)
    if wrapper is not None and isinstance(value, dict) and wrapper in value:
        value = cast("dict[str, Any]", value)[wrapper]
    if (size := len(as_text(value))) > longest:
        limit = f"has {size:,} characters and at most {longest:,} are taken: ask for less"
        raise ToolError("runtime", f"the result of {tool.name} {limit}")
    return value


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
