"""Tools: documented functions that a model may call, the gate through which they are called, and the code tools."""

from __future__ import annotations

from rlm_loop.tools.calls import ToolResult
from rlm_loop.tools.function import SimpleTool, Tool, ToolError, as_tool, tool
from rlm_loop.tools.gateway import ToolGateway

__all__ = ["SimpleTool", "Tool", "ToolError", "ToolGateway", "ToolResult", "as_tool", "tool"]
