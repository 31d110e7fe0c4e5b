"""A server in use: what a run or a `with` block holds, over as many lives of the server as it takes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from rlm_loop.tools.function import ToolError
from rlm_loop.tools.mcp.address import McpError, McpServer
from rlm_loop.tools.mcp.results import value_of, wrapper_of
from rlm_loop.tools.mcp.server import AGAIN, ServerThread

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool as Listed


class Connection:
    """A server in use: started at the first call, started again at the call after its end, ended by `close`."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self._life: ServerThread | None = None
        self._closed = False
        self._lock = threading.Lock()

    def call(self, tool: Listed, arguments: Mapping[str, Any]) -> Any:
        """What the tool returned; raises `ToolError`, and `McpError` where the server has ended."""

        async def ask(client: Client) -> Any:
            return await client.call_tool(tool.name, dict(arguments))

        life = self._alive()
        try:
            result = life.ask(ask)
        except TimeoutError:
            gone = f"; its server answers nothing at all: {AGAIN}" if life.ended else ""
            raise ToolError("timeout", f"{tool.name} gave no result within {self.server.timeout:g} s{gone}") from None
        except (McpError, ToolError):
            raise
        except Exception as error:  # the server's refusal, or an answer that breaks the protocol
            raise ToolError("runtime", " ".join(str(error).split())[:1000] or type(error).__name__) from error
        return value_of(result, tool.name, wrapper=wrapper_of(tool.output_schema), longest=self.server.longest)

    def for_run(self, until: ExitStack) -> Connection:
        """Itself: it is a run's already."""
        del until
        return self

    def listed(self) -> list[Listed]:
        """All tools that the server offers.  Raises `McpError`."""
        return self._alive().listed()

    def close(self) -> None:
        """End the server for good."""
        with self._lock:
            self._closed = True
            life, self._life = self._life, None
        if life is not None:
            life.end()

    def _alive(self) -> ServerThread:
        with self._lock:
            if self._closed:
                raise McpError(f"the MCP server {self.server.name!r} was ended with the run")
            if self._life is None or self._life.ended:
                if self._life is not None:
                    self._life.end()
                self._life = ServerThread(self.server)
            return self._life
