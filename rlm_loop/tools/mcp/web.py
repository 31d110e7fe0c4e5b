"""A server at an address: streamable HTTP, with a limit for the length of each answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import httpx2
from mcp.client.streamable_http import streamable_http_client

from rlm_loop.models.http import LONGEST

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

    from rlm_loop.tools.mcp.address import McpServer


@asynccontextmanager
async def over_http(server: McpServer) -> AsyncGenerator[TransportStreams]:
    """Connect to the server, with the user's headers."""
    timeout = httpx2.Timeout(server.timeout, connect=min(server.start_timeout, 20.0))
    async with (
        _Bounded(headers={"Accept-Encoding": "identity", **server.headers}, timeout=timeout) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=LONGEST) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncClient):
    """A client that reads `LONGEST` bytes of an answer at most.  Of a stream of events the SDK bounds each one."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        answer = await super().send(request, **options)
        if not answer.headers.get("content-type", "").lower().startswith("text/event-stream"):
            answer.stream = _Counted(cast("httpx2.AsyncByteStream", answer.stream), request)
        return answer


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._stream, self._request = stream, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > LONGEST:
                raise httpx2.ReadError(f"the server sent more than {LONGEST:,} bytes", request=self._request)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
