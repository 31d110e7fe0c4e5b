"""One value where an arguments object should be: read only where the tool leaves one way to read it."""

from __future__ import annotations

import json
from typing import Any

from rlm_loop.tools.function import Tool


def wrapped(tool: Tool | None, value: Any) -> str | None:
    """`{"code": value}` for a tool whose only parameter is `code`; `None` for any other tool, or if the value cannot be
    meant (no text for a text parameter)."""
    properties = {} if tool is None else tool.parameters.get("properties", {})
    if len(properties) != 1:
        return None
    ((name, kind),) = properties.items()
    if kind.get("type") == "string" and not isinstance(value, str):
        return None
    return json.dumps({name: value})
