"""Tools of MCP servers, as tools of ours, for every loop alike."""

from __future__ import annotations

from rlm_loop.tools.mcp.connection import McpError
from rlm_loop.tools.mcp.served import McpTools, mcp_tools

__all__ = ["McpError", "McpTools", "mcp_tools"]
