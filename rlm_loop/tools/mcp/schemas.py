"""From the JSON schema of a tool's arguments to Python: a signature, and names that Python can say."""

from __future__ import annotations

import builtins
import inspect
import keyword
import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, cast

from rlm_loop.tools.function import untitled

_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
    "object": dict[str, Any],
    "array": list[Any],
}
_DEEPEST = 8  # levels of a schema that are looked into
_MOST = 20  # choices that a signature lists


def plain_schema(stated: Any) -> dict[str, Any]:
    """The schema of the arguments without what says nothing (titles, the dialect's address); always of an object."""
    schema = cast("dict[str, Any]", untitled(stated)) if isinstance(stated, dict) else {}
    properties = schema.get("properties")
    rest = {k: v for k, v in schema.items() if k not in ("$schema", "type", "properties")}
    return {"type": "object", "properties": properties if isinstance(properties, dict) else {}, **rest}


def parameters_of(schema: Mapping[str, Any]) -> dict[str, inspect.Parameter]:
    """How each argument is given in Python, by its name in the schema, required ones first.

    An optional argument has the default of the schema; without one it has, and may be, `None`.
    """
    properties = cast("dict[str, Any]", schema["properties"])
    stated: Any = schema.get("required")
    required = [name for name in properties if isinstance(stated, list) and name in stated]
    names = [*required, *(name for name in properties if name not in required)]
    found: dict[str, inspect.Parameter] = {}
    for name, shown in zip(names, python_names(names), strict=True):
        own: Any = properties[name]
        hint, default = type_of(own, schema), inspect.Parameter.empty
        if name not in required:
            default = own.get("default") if isinstance(own, dict) else None
            hint = hint if hint is Any or default is not None else hint | None
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        found[name] = inspect.Parameter(shown, kind, default=default, annotation=hint)
    return found


def python_names(names: Collection[str], prefix: str = "") -> list[str]:
    """A different Python name for each; what is none gets underscores, and so does a name of Python's own."""
    found: list[str] = []
    for name in names:
        given = re.sub(r"[^A-Za-z0-9_]", "_", f"{prefix}{name}")[:60] or "_"
        given = f"_{given}" if given[0].isdigit() else given
        given += "_" if keyword.iskeyword(given) or hasattr(builtins, given) else ""
        while given in found:
            given += "_"
        found.append(given)
    return found


def type_of(schema: Any, whole: Mapping[str, Any], depth: int = 0) -> Any:
    """The Python type for values of a schema; `Any` where it says too little, or too much."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return Any
    own = cast("dict[str, Any]", schema)
    if isinstance(reference := own.get("$ref"), str):
        return type_of(_referred(reference, whole), whole, depth + 1)
    values: Any = [own["const"]] if "const" in own else own.get("enum")
    if isinstance(values, list) and 0 < len(cast("list[Any]", values)) <= _MOST:
        if all(value is None or isinstance(value, str | int | bool) for value in cast("list[Any]", values)):
            return Literal[tuple(cast("list[Any]", values))]
        return Any
    for several in ("anyOf", "oneOf"):
        if isinstance(own.get(several), list):
            return _union([type_of(each, whole, depth + 1) for each in own[several]])
    kind: Any = own.get("type")
    if isinstance(kind, list):
        return _union([type_of({**own, "type": each}, whole, depth + 1) for each in cast("list[Any]", kind)])
    if kind == "array" and "items" in own:
        return list[type_of(own["items"], whole, depth + 1)]
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any


def _union(types: list[Any]) -> Any:
    made: Any = types[0] if types else Any
    for each in types[1:]:
        made = Any if made is Any or each is Any else made | each
    return made


def _referred(reference: str, whole: Mapping[str, Any]) -> Any:
    """What a reference within the schema stands for."""
    found: Any = whole
    if not reference.startswith("#/"):
        return None
    for step in reference[2:].split("/"):
        found = cast("Mapping[str, Any]", found).get(step) if isinstance(found, Mapping) else None
    return found
