"""Text where an arguments object should be: read only where the tool leaves one way to read it."""

from __future__ import annotations

import json

from rlm_loop.tools import Tool


def wrapped(tool: Tool | None, text: str) -> str | None:
    """`{"code": text}` for a tool whose only parameter is the string `code`; `None` for any other tool."""
    properties = {} if tool is None else tool.parameters.get("properties", {})
    if len(properties) != 1:
        return None
    ((name, kind),) = properties.items()
    return json.dumps({name: text}) if kind.get("type") == "string" else None
