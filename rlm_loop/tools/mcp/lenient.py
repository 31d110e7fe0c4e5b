"""Results of MCP calls that are outside of the protocol's model, read leniently."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from anyio.abc import ObjectReceiveStream

from rlm_loop.tools.calls import as_text

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


@asynccontextmanager
async def lenient(transport: AbstractAsyncContextManager[TransportStreams]) -> AsyncGenerator[TransportStreams]:
    """Yield a transport whose results have text alone: other content becomes a line about it."""
    async with transport as (received, sent):
        yield _Lenient(received), sent


class _Lenient(ObjectReceiveStream[Any]):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def receive(self) -> Any:
        item = await self._stream.receive()
        result = getattr(getattr(item, "message", None), "result", None)
        if isinstance(result, dict) and not {"content", "structuredContent", "isError"}.isdisjoint(result):
            _simplify(cast("dict[str, Any]", result))
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()


def _simplify(result: dict[str, Any]) -> None:
    content = result.get("content")
    blocks: list[Any] = content if isinstance(content, list) else [] if content is None else [content]
    texts = [_text(block) for block in blocks]
    structured = result.get("structuredContent")
    if structured is not None and not isinstance(structured, dict):
        texts = texts or [as_text(structured)]
        del result["structuredContent"]
    result["content"] = [{"type": "text", "text": text} for text in texts]
    result["isError"] = bool(result.get("isError"))


def _text(block: Any) -> str:
    """Return a part of the answer as text; what is none is named by its kind and size."""
    if not isinstance(block, dict):
        return as_text(block)
    own = cast("dict[str, Any]", block)
    resource: Any = own.get("resource")
    own = cast("dict[str, Any]", resource) if isinstance(resource, dict) else own
    for name in ("text", "uri") if block.get("type") == "resource_link" else ("text",):
        if isinstance(own.get(name), str):
            return own[name]
    kind, data = f"{block.get('type', 'part')} {own.get('mimeType') or ''}".strip(), own.get("data", own.get("blob"))
    return f"[{kind}, {len(data) * 3 // 4:,} bytes, not shown]" if isinstance(data, str) else f"[{kind}, not shown]"
