"""Tools: documented functions that a model may call, and the gateway that calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlm_loop.tools.calls import IdempotencyCache, ToolResult
from rlm_loop.tools.function import SimpleTool, Tool, ToolError, as_tool, tool
from rlm_loop.tools.gateway import ToolGateway
from rlm_loop.tools.hooks import Hooks

if TYPE_CHECKING:
    from rlm_loop.tools.mcp import McpError, McpTools, mcp_tools

__all__ = [
    "Hooks",
    "IdempotencyCache",
    "McpError",
    "McpTools",
    "SimpleTool",
    "Tool",
    "ToolError",
    "ToolGateway",
    "ToolResult",
    "as_tool",
    "mcp_tools",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in ("McpError", "McpTools", "mcp_tools"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rlm_loop.tools import mcp  # with asyncio, which only they need

    return getattr(mcp, name)
