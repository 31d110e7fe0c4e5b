"""One tool of a server: what a model is told of it, and the Python function that calls it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from rlm_loop.tools.function import Tool, ToolError
from rlm_loop.tools.mcp.results import wrapper_of
from rlm_loop.tools.mcp.schemas import fields_of, plain_schema, python_names, signature_of, type_of
from rlm_loop.tools.schema import Fields

if TYPE_CHECKING:
    from mcp.types import Tool as Listed


class ToolCaller(Protocol):
    """Where a tool is called, in a run and outside of any."""

    def call(self, tool: Listed, arguments: Mapping[str, Any]) -> Any: ...
    def for_run(self, until: ExitStack) -> ToolCaller: ...


class RemoteFunction:
    """A tool of a server as a Python function."""

    def __init__(self, place: ToolCaller, tool: Listed, signature: inspect.Signature, names: Mapping[str, str]) -> None:
        self.place, self._tool, self._names = place, tool, names
        self.__signature__ = signature
        self.__doc__ = _help(tool)

    def for_run(self, shared: dict[int, Any], until: ExitStack) -> RemoteFunction:
        """The same function over the connection of a run (see `serving`)."""
        if id(self.place) not in shared:
            shared[id(self.place)] = self.place.for_run(until)
        return RemoteFunction(shared[id(self.place)], self._tool, self.__signature__, self._names)

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by the server's names; raises `TypeError` where they do not fit."""
        theirs = {theirs: ours for ours, theirs in self._names.items()}
        bound = self.__signature__.bind(*args, **{theirs.get(k, k): v for k, v in kwargs.items()}).arguments
        return {self._names[k]: v for k, v in bound.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self.arguments(args, kwargs)
        return self.place.call(self._tool, {k: v for k, v in given.items() if v is not None or k in self._required})

    @functools.cached_property
    def _required(self) -> frozenset[str]:
        own = self.__signature__.parameters.values()
        return frozenset(self._names[p.name] for p in own if p.default is p.empty)


@dataclass(frozen=True)
class ServedTool(Tool):
    """A tool of an MCP server; its schema is the server's, its signature made of that."""

    schema_of_arguments: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)

    @functools.cached_property
    def _fields(self) -> Fields:
        return fields_of(self.schema_of_arguments)

    @property
    def parameters(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return dict(self.schema_of_arguments)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        remote: RemoteFunction = self.function  # pyright: ignore[reportAssignmentType]
        try:
            return remote.arguments(args, kwargs)
        except TypeError as error:
            raise ToolError("invalid_arguments", f"{error}; usage: {self.signature}") from None


def served_tool(name: str, tool: Listed, place: ToolCaller, timeout: float) -> ServedTool:
    """A tool as a server lists it, under a name of ours."""
    schema = plain_schema(tool.input_schema)
    fields = fields_of(schema)
    theirs = [field for field, _, _ in fields]
    output: dict[str, Any] = tool.output_schema or {"type": "string"}
    wrapper = wrapper_of(output)
    inner: Any = output if wrapper is None else output["properties"][wrapper]
    returns = type_of(inner, output)
    names = dict(zip(python_names(theirs), theirs, strict=True))
    remote = RemoteFunction(place, tool, signature_of(fields, schema, returns), names)
    told = " ".join((tool.description or tool.title or tool.name).split())
    return ServedTool(name, told, remote, timeout, schema_of_arguments=schema)


def _help(tool: Listed) -> str:
    """What `help` shows: the description as it is, and that of each argument."""
    stated: Any = tool.input_schema.get("properties")
    properties = cast("dict[str, Any]", stated) if isinstance(stated, dict) else {}
    lines = [f"{n}: {p['description']}" for n, p in properties.items() if isinstance(p, dict) and "description" in p]
    return "\n\n".join(filter(None, [tool.description or tool.title or "", "\n".join(lines)]))
