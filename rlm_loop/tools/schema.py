"""From a function's signature to JSON schema and validation: what `tool_function` builds tools with.

pydantic makes schemas and checks; it is imported when the first one is needed.
"""

from __future__ import annotations

import functools
import inspect
import json
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Required, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: Name, type and whether it is required, of each parameter.
Fields = tuple[tuple[str, Any, bool], ...]


def read_fields(name: str, function: Callable[..., Any]) -> Fields:
    """The parameters of a function that is to be tool `name`; `TypeError` where a model could not be told them."""
    return tuple([(p.name, resolve(name, function, p), p.default is p.empty) for p in parameters_of(name, function)])


def parameters_of(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        raise TypeError(f"tool {name!r} has no signature to read: wrap it in a typed function") from None
    for p in parameters:
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            raise TypeError(
                f"tool {name!r}: name the parameters that {str(p)!r} stands for, {p.kind.description} "
                "ones cannot be described to a model"
            )
    return parameters


def resolve(name: str, function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The parameter's type; one without annotation takes anything."""
    if parameter.annotation is parameter.empty:
        return Any
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = cast("Any", inner.func)
    if not (inspect.isroutine(inner) or inspect.isclass(inner)):
        inner = inner.__call__
    scope = getattr(inspect.unwrap(inner), "__globals__", {})
    try:
        holder = type("_", (), {"__annotations__": {parameter.name: parameter.annotation}})
        return typing.get_type_hints(holder, globalns=scope, localns=scope, include_extras=True)[parameter.name]
    except Exception as error:
        raise TypeError(f"tool {name!r}: the type of {parameter.name!r} cannot be resolved: {error}") from error


def show_type(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    if typing.get_origin(annotation) is Annotated:
        return show_type(annotation.__origin__)
    return "None" if annotation is type(None) else inspect.formatannotation(annotation).replace("typing.", "")


def adapter(fields: Fields) -> TypeAdapter[Any]:
    try:
        return _cached_adapter(fields)
    except TypeError:  # a type that cannot be hashed, such as Annotated with a list
        return _cached_adapter.__wrapped__(fields)


@functools.lru_cache(maxsize=256)
def _cached_adapter(fields: Fields) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter
    from typing_extensions import TypedDict

    # A typed dict and not a model, because models reserve names (`copy`, `schema`, `_x`) that a tool may use.
    types = {name: Required[hint] if required else NotRequired[hint] for name, hint, required in fields}
    arguments: Any = TypedDict("arguments", types)  # pyright: ignore
    arguments.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    return TypeAdapter(arguments)


def untitled(schema: Any) -> Any:
    """The schema without the titles that pydantic adds: they are prompt tokens that say nothing."""
    if isinstance(schema, list):
        return [untitled(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    items = cast("dict[str, Any]", schema).items()
    literal = ("default", "enum", "const", "examples")
    return {
        key: value if key in literal else untitled(value)
        for key, value in items
        if not (key == "title" and isinstance(value, str))
    }


def is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
