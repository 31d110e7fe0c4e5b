"""What a server answers to a call: the value for a cell, whose text a model sees, or a failure in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from rlm_loop.tools.calls import as_text
from rlm_loop.tools.function import ToolError

if TYPE_CHECKING:
    from mcp.types import CallToolResult


#: Under these names servers put what is no object, since a structured result has to be one: the Python SDK's
#: `result`, and `content` of the reference servers in TypeScript.  They say nothing of the value.
_WRAPPERS = (["result"], ["content"])


def value_of(result: CallToolResult, name: str, *, wrapper: str | None, longest: int) -> Any:
    """The structured value where there is one, else the text.

    `wrapper` is the name under which the tool's value stands (see `wrapper_of`).  Raises `ToolError` for a failure
    that the server states, and for more than `longest` characters.
    """
    text = "\n".join(filter(None, map(_text, result.content)))
    if result.is_error:
        raise ToolError("runtime", text[:longest] or f"{name} failed and did not say why")
    value: Any = text if result.structured_content is None else result.structured_content
    if wrapper is not None and isinstance(value, Mapping) and wrapper in value:
        value = cast("Mapping[str, Any]", value)[wrapper]
    size = len(as_text(value))
    if size > longest:
        raise ToolError(
            "runtime", f"the result of {name} has {size:,} characters and at most {longest:,} are taken: ask for less"
        )
    return value


def wrapper_of(schema: Any) -> str | None:
    """The one name in a schema of results that says nothing of the value; `None` where there is no such name."""
    properties: Any = schema.get("properties") if isinstance(schema, dict) else None
    names = list(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else []
    return names[0] if names in _WRAPPERS else None


def _text(block: Any) -> str:
    """A part of the answer as text; what is none is named by its kind and size."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource":
        inner = block.resource
        return str(getattr(inner, "text", "")) or _named("resource", inner.mime_type, str(getattr(inner, "blob", "")))
    if block.type == "resource_link":
        return str(block.uri)
    return _named(block.type, getattr(block, "mime_type", None), str(getattr(block, "data", "")))


def _named(kind: str, mime: str | None, data: str) -> str:
    return f"[{kind}{f' {mime}' if mime else ''}, {len(data) * 3 // 4:,} bytes, not shown]"
