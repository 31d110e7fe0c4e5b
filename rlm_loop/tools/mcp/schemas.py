"""Python for the JSON schema of a tool's arguments: a signature, and names that Python can say."""

from __future__ import annotations

import builtins
import functools
import inspect
import keyword
import operator
import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, cast

from rlm_loop.tools.function import untitled

_TYPES: dict[Any, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
    "object": dict[str, Any],
    "array": list[Any],
}
#: Under these names servers put what is no object, since a structured result has to be one: the Python SDK's
#: `result`, and `content` of the reference servers in TypeScript.  They say nothing of the value.
_WRAPPERS = (["result"], ["content"])
_DEEPEST = 8  # levels of a schema that are looked into
_MOST = 20  # choices that a signature lists


def plain_schema(stated: Any) -> dict[str, Any]:
    """Return the schema of the arguments without titles and the dialect's address; always of an object."""
    schema = cast("dict[str, Any]", untitled(stated)) if isinstance(stated, dict) else {}
    properties = schema.get("properties")
    rest = {k: v for k, v in schema.items() if k not in ("$schema", "type", "properties")}
    return {"type": "object", "properties": properties if isinstance(properties, dict) else {}, **rest}


def parameters_of(schema: Mapping[str, Any]) -> dict[str, inspect.Parameter]:
    """Return the Python parameter for each argument, by its name in the schema, required ones first.

    An optional argument has the default of the schema; without one it has, and may be, `None`.
    """
    properties = cast("dict[str, Any]", schema["properties"])
    stated: Any = schema.get("required")
    required = [name for name in properties if isinstance(stated, list) and name in stated]
    names = [*required, *(name for name in properties if name not in required)]
    parameters: dict[str, inspect.Parameter] = {}
    for name, shown in zip(names, python_names(names), strict=True):
        own: Any = properties[name]
        hint, default = type_of(own, schema), inspect.Parameter.empty
        if name not in required:
            default = own.get("default") if isinstance(own, dict) else None
            hint = hint if hint is Any or default is not None else hint | None
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters[name] = inspect.Parameter(shown, kind, default=default, annotation=hint)
    return parameters


def python_names(names: Collection[str], prefix: str = "") -> list[str]:
    """Return a different Python name for each; other characters, and a name of Python's own, get underscores."""
    ours: list[str] = []
    for name in names:
        own = re.sub(r"[^A-Za-z0-9_]", "_", f"{prefix}{name}")[:60] or "_"
        own = f"_{own}" if own[0].isdigit() else own
        own += "_" if keyword.iskeyword(own) or hasattr(builtins, own) else ""
        while own in ours:
            own += "_"
        ours.append(own)
    return ours


def type_of(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """Return the Python type for values of a schema; `Any` where it says too little, or too much."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return Any
    own = cast("dict[str, Any]", schema)
    if isinstance(reference := own.get("$ref"), str):
        target: Any = root if reference.startswith("#/") else None
        for step in reference[2:].split("/"):
            target = cast("dict[str, Any]", target).get(step) if isinstance(target, dict) else None
        return type_of(target, root, depth + 1)
    values: Any = [own["const"]] if "const" in own else own.get("enum")
    if isinstance(values, list) and 0 < len(cast("list[Any]", values)) <= _MOST:
        plain = all(value is None or isinstance(value, str | int | bool) for value in cast("list[Any]", values))
        return Literal[tuple(cast("list[Any]", values))] if plain else Any
    kind: Any = own.get("type")
    several: Any = own.get("anyOf") or own.get("oneOf")
    if several is None and isinstance(kind, list):
        several = [{**own, "type": each} for each in cast("list[Any]", kind)]
    if isinstance(several, list):
        types = [type_of(each, root, depth + 1) for each in cast("list[Any]", several)]
        return functools.reduce(operator.or_, types) if types and Any not in types else Any
    if kind == "array" and "items" in own:
        return list[type_of(own["items"], root, depth + 1)]
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any


def wrapper_of(schema: Any) -> str | None:
    """Return the one name in a schema of results that says nothing of the value, or None."""
    properties: Any = schema.get("properties") if isinstance(schema, dict) else None
    names = list(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else []
    return names[0] if names in _WRAPPERS else None
