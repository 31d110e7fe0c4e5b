"""One tool of a server: what a model is told of it, and the Python function that calls it."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from rlm_loop.tools.function import Fields, Tool, ToolError
from rlm_loop.tools.mcp.results import wrapper_of
from rlm_loop.tools.mcp.schemas import parameters_of, plain_schema, type_of

if TYPE_CHECKING:
    from mcp.types import Tool as Listed


class ToolCaller(Protocol):
    """Where a tool is called, in a run and outside of any."""

    def call(self, tool: Listed, arguments: Mapping[str, Any]) -> Any: ...
    def for_run(self, until: ExitStack) -> ToolCaller: ...


class RemoteFunction:
    """A tool of a server as a Python function; `parameters` are by the server's names."""

    def __init__(
        self, place: ToolCaller, tool: Listed, parameters: Mapping[str, inspect.Parameter], returns: Any
    ) -> None:
        self.place, self._tool, self.parameters = place, tool, parameters
        self._names = {own.name: theirs for theirs, own in parameters.items()}
        self.__signature__ = inspect.Signature(list(parameters.values()), return_annotation=returns)
        self.__doc__ = _help(tool)

    def for_run(self, shared: dict[int, Any], until: ExitStack) -> RemoteFunction:
        """The same function over the connection of a run (see `serving`)."""
        if id(self.place) not in shared:
            shared[id(self.place)] = self.place.for_run(until)
        same = copy.copy(self)
        same.place = shared[id(self.place)]
        return same

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by the server's names; raises `TypeError` where they do not fit."""
        own = {self.parameters[k].name if k in self.parameters else k: v for k, v in kwargs.items()}
        return {self._names[k]: v for k, v in self.__signature__.bind(*args, **own).arguments.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self.arguments(args, kwargs)
        required = [theirs for theirs, own in self.parameters.items() if own.default is own.empty]
        return self.place.call(self._tool, {k: v for k, v in given.items() if v is not None or k in required})


@dataclass(frozen=True)
class ServedTool(Tool):
    """A tool of an MCP server; its schema is the server's, its signature made of that."""

    schema_of_arguments: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)

    @functools.cached_property
    def _fields(self) -> Fields:
        remote: RemoteFunction = self.function  # pyright: ignore[reportAssignmentType]
        return tuple((theirs, own.annotation, own.default is own.empty) for theirs, own in remote.parameters.items())

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
    output: dict[str, Any] = tool.output_schema or {"type": "string"}
    wrapper = wrapper_of(output)
    inner: Any = output if wrapper is None else output["properties"][wrapper]
    remote = RemoteFunction(place, tool, parameters_of(schema), type_of(inner, output))
    told = " ".join((tool.description or tool.title or tool.name).split())
    return ServedTool(name, told, remote, timeout, schema_of_arguments=schema)


def _help(tool: Listed) -> str:
    """What `help` shows: the description as it is, and that of each argument."""
    stated: Any = tool.input_schema.get("properties")
    properties = cast("dict[str, Any]", stated) if isinstance(stated, dict) else {}
    lines = [f"{n}: {p['description']}" for n, p in properties.items() if isinstance(p, dict) and "description" in p]
    return "\n\n".join(filter(None, [tool.description or tool.title or "", "\n".join(lines)]))
