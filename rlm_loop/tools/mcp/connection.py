"""Connections to MCP servers: the SDK's clients, used by code that does not await."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from rlm_loop.tools.calls import as_text
from rlm_loop.tools.function import ToolError
from rlm_loop.tools.mcp.schemas import wrapper_of
from rlm_loop.traces.redact import redact

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp.types import CallToolResult
    from mcp.types import Tool as Listed

_PAGES = 100  # of a list of tools
_CLOSING = 3.0  # seconds
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


class Connection:
    """A server in use: started by a call, the one after its end too, and ended by `close`."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self._client: ServerClient | None = None
        self._closed = False
        self._lock = threading.Lock()

    def call(self, tool: Listed, arguments: Mapping[str, Any]) -> Any:
        """Return the tool's value; raises `ToolError`, and `McpError` where the server has ended."""
        client = self._open()
        try:
            result = client.call(tool.name, dict(arguments))
        except TimeoutError:
            raise ToolError("timeout", f"{tool.name} gave no result within {self.server.timeout:g} s") from None
        except McpError:
            raise
        except Exception as error:  # the server's refusal, or an answer that breaks the protocol
            raise ToolError("runtime", " ".join(str(error).split())[:1000] or type(error).__name__) from error
        return value_of(result, tool, self.server.longest)

    def listed(self) -> list[Listed]:
        """Return all tools that the server offers.  Raises `McpError`."""
        return self._open().ready.result()[1]

    def close(self) -> None:
        """End the server for good."""
        with self._lock:
            self._closed = True
            if self._client is not None:
                self._client.end()

    def _open(self) -> ServerClient:
        with self._lock:
            if self._closed:
                raise McpError(f"the MCP server {self.server.name!r} was ended with the run")
            if self._client is None or self._client.ended:
                if self._client is not None:
                    self._client.end()
                self._client = ServerClient(self.server)
            return self._client


class ServerClient:
    """A client of the SDK with a thread and an event loop: a notebook's loop is busy with its cell."""

    def __init__(self, server: McpServer) -> None:
        from anyio.from_thread import start_blocking_portal

        self.ended = False
        self.ready: Future[tuple[Client, list[Listed]]] = Future()
        self._server, self._stop, self._thread = server, asyncio.Event(), ExitStack()
        self._stderr = self._thread.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._portal = self._thread.enter_context(start_blocking_portal())
        self._serving = self._portal.start_task_soon(self._serve)

    def call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool; raises `TimeoutError`, and `McpError` where the server has ended."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        client = self.ready.result()[0]
        try:
            return self._portal.call(self._call, client, name, arguments)
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                raise
        except (CancelledError, RuntimeError):
            if not self.ended:
                raise
        self.ended = True
        ended = f"has ended{self._last_words()}; the next call starts it again"
        raise McpError(f"the MCP server {self._server.name!r} {ended}")

    async def _call(self, client: Client, name: str, arguments: dict[str, Any]) -> CallToolResult:
        async with asyncio.timeout(self._server.timeout):
            return await client.call_tool(name, arguments)

    def end(self) -> None:
        """End the server: it is asked to go, and killed where it does not.  Twice is harmless."""
        self.ended = True
        with suppress(Exception):
            if self.ready.done():
                self._portal.call(self._stop.set)
                self._serving.exception(_CLOSING)
        self._serving.cancel()
        self._thread.close()

    async def _serve(self) -> None:
        from mcp import Client

        from rlm_loop.tools.mcp.lenient import lenient

        try:
            async with AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(self._server.start_timeout):
                        transport = await self._transport(stack)
                        client = await stack.enter_async_context(Client(lenient(transport), cache=None))
                        tools = await _listed(client)  # all of them, or the SDK asks again at each call
                    self.ready.set_result((client, tools))
                except BaseException as error:  # told at once, before the server is ended
                    self._failed(error)
                    raise
                await self._stop.wait()
        except Exception:
            self.ended = True

    async def _transport(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[TransportStreams]:
        server = self._server
        if server.command:
            from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client

            path = get_default_environment().get("PATH", os.defpath)
            env = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), path]), **server.env}
            argv = ["-I", "-S", _GUARD, *server.command]
            process = StdioServerParameters(command=sys.executable, args=argv, env=env, cwd=server.cwd)
            return stdio_client(process, cast("TextIO", self._stderr))
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        timeout = httpx2.Timeout(server.timeout, connect=min(server.start_timeout, 20.0))
        client = await stack.enter_async_context(httpx2.AsyncClient(headers=server.headers, timeout=timeout))
        return streamable_http_client(server.url, http_client=client, max_sse_event_size=_LONGEST_EVENT)

    def _failed(self, error: BaseException) -> None:
        self.ended = True
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        reason = f"did not answer within {self._server.start_timeout:g} s"
        if not isinstance(error, TimeoutError):
            reason = f"cannot be used: {type(error).__name__}: {redact(str(error))[:200]}".splitlines()[0]
        self.ready.set_exception(McpError(f"the MCP server {self._server.name!r} {reason}{self._last_words()}"))

    def _last_words(self) -> str:
        """Return the last line that a process wrote to standard error, and how it ended."""
        if self._stderr.closed:  # by `end`, meanwhile
            return ""
        size = os.fstat(self._stderr.fileno()).st_size
        tail = os.pread(self._stderr.fileno(), _LAST_WORDS, max(0, size - _LAST_WORDS)).decode("utf-8", "replace")
        lines = [line.strip() for line in tail.splitlines() if line.strip()]
        return f" ({redact(', '.join(lines[-2:]))[:200]})" if lines else ""


async def _listed(client: Client) -> list[Listed]:
    tools: list[Listed] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        if not (cursor := page.next_cursor):
            break
    return tools


def value_of(result: CallToolResult, tool: Listed, longest: int) -> Any:
    """Return the structured value where the tool declares one, else the text.

    Raises `ToolError` for a failure that the server states, and for more than `longest` characters.
    """
    structured: Any = result.structured_content
    text = "\n".join([block.text for block in result.content if block.type == "text"])
    text = text or as_text(structured)
    if result.is_error:
        raise ToolError("runtime", text[:longest] or f"{tool.name} failed and gave no reason")
    value, wrapper = structured if tool.output_schema else text, wrapper_of(tool.output_schema)
    if wrapper is not None and isinstance(value, dict) and wrapper in value:
        value = cast("dict[str, Any]", value)[wrapper]
    if (size := len(as_text(value))) > longest:
        limit = f"has {size:,} characters and at most {longest:,} are taken: ask for less"
        raise ToolError("runtime", f"the result of {tool.name} {limit}")
    return value
