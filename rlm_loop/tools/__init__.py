"""Tools: documented functions that a model may call, and the gateway that calls them."""

from __future__ import annotations

from rlm_loop.tools.function import SimpleTool, Tool, ToolError, ToolResult, as_tool, tool
from rlm_loop.tools.gateway import ToolGateway
from rlm_loop.tools.hooks import Hooks
from rlm_loop.tools.mcp import McpError, McpTools

__all__ = ["Hooks", "McpError", "McpTools", "SimpleTool", "Tool", "ToolError", "ToolGateway", "ToolResult", "as_tool"]
__all__ += ["tool"]
