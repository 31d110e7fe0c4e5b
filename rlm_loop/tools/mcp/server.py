"""One life of an MCP server: started, asked and ended in a thread of its own.

The thread has an event loop of its own, so that it works in a notebook, whose loop is busy running the cell.  Nothing
here trusts a server: each wait has a limit, and so has the length of what it sends.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from rlm_loop.tools.mcp.address import McpError, McpServer
from rlm_loop.traces.redact import redact

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool

T = TypeVar("T")
_PAGES = 100  # of a list of tools
_HURRY = 5.0  # seconds in which a server is ended, politely at first
_ALIVE = 2.0  # seconds in which a server that let a call wait too long is to show that it is there
AGAIN = "the next call starts it again, without what it held"


class ServerThread:
    """One life of a server.  It begins when this is made; `ask` waits for it, within the server's limits."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._said: deque[str] = deque(maxlen=20)  # lines of its standard error
        self._status: list[int | None] = []  # how it ended, where it is a process
        self._ready: concurrent.futures.Future[Client] = concurrent.futures.Future()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self.ended = False
        self._tools: list[Tool] = []
        self._thread = threading.Thread(target=self._live, daemon=True, name=f"mcp {server.name[:40]}")
        self._thread.start()
        atexit.register(self.end)

    def listed(self) -> list[Tool]:
        """All tools that the server offers.  Raises `McpError`."""
        self._ready.result()
        return self._tools

    def ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """What the server answers.  Raises `TimeoutError` where it takes too long, `McpError` where it has ended.

        A server that takes too long, and does not list its tools meanwhile either, counts as ended.
        """
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        client = self._ready.result()

        async def bounded() -> T:
            try:
                async with asyncio.timeout(self._server.timeout):
                    return await work(client)
            except TimeoutError:
                self.ended = not await _answers(client)
                raise

        asked = bounded()
        try:
            return asyncio.run_coroutine_threadsafe(asked, self._loop).result()
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                raise
            self.ended = True
        except (concurrent.futures.CancelledError, RuntimeError) as error:  # the thread is at its end, or past it
            asked.close()
            if isinstance(error, RuntimeError) and not self._loop.is_closed():
                raise
            self.ended = True
        raise McpError(f"the MCP server {self._server.name!r} has ended{self._how()}; {AGAIN}")

    def end(self) -> None:
        """End the server: it is asked to go, and killed where it does not.  Twice is harmless."""
        atexit.unregister(self.end)
        self.ended = True
        with suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_HURRY)

    def _live(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # carried to who asks
            self._failed(error)

    async def _serve(self) -> None:
        from mcp import Client

        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(self._server.start_timeout):
                    client = await stack.enter_async_context(Client(self._transport(), cache=None))
                    self._tools = await _listed(client)  # all of them, or the SDK asks again at each call
            except BaseException as error:  # told at once, before the server is ended
                self._failed(error)
                raise
            self._ready.set_result(client)
            await self._stop.wait()

    def _transport(self) -> Any:
        if self._server.command:
            from rlm_loop.tools.mcp.pipes import over_pipes

            return over_pipes(self._server, self._said, self._status)
        from rlm_loop.tools.mcp.web import over_http

        return over_http(self._server)

    def _failed(self, error: BaseException) -> None:
        self.ended = True
        if self._ready.done():
            return
        if isinstance(error, TimeoutError):
            why = f"did not answer within {self._server.start_timeout:g} s"
        elif isinstance(error, FileNotFoundError) and self._server.command:
            why = f"cannot be started: there is no command {self._server.command[0]!r}"
        else:
            why = f"cannot be used: {first_line(error)}"
        self._ready.set_exception(McpError(f"the MCP server {self._server.name!r} {why}{self._how()}"))

    def _how(self) -> str:
        """How a process ended, and the last that it said."""
        status = f" (exit status {self._status[-1]})" if self._status and self._status[-1] is not None else ""
        return f"{status}: {redact(self._said[-1])[:200]}" if self._said else status


async def _listed(client: Client) -> list[Tool]:
    found: list[Tool] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        if not (cursor := page.next_cursor):
            break
    return found


async def _answers(client: Client) -> bool:
    """Whether the server answers at all; a refusal is an answer."""
    try:
        async with asyncio.timeout(_ALIVE):
            await client.list_tools()  # newer versions of the protocol have no ping
    except TimeoutError:
        return False
    except Exception:
        return True
    return True


def first_line(error: BaseException) -> str:
    """The reason in one line, of the first of a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {redact(lines[0])[:200]}" if lines else type(error).__name__
