"""Tools and the results of their calls.

A tool is a documented, typed function: its help line, JSON schema and checks all come from it.

pydantic makes schemas and checks; it is imported when the first one is needed.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import re
import reprlib
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, cast, overload, runtime_checkable

from rlm_loop.actions import FailureKind, Observation

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: Name, type and whether it is required, of each parameter.
Fields = tuple[tuple[str, Any, bool], ...]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class ToolError(Exception):
    """A tool call that failed, in words meant for the model.

    The gateway raises it into a cell that called a tool.  A tool may raise it, to have `message` shown as it stands.
    """

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind: FailureKind = kind
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.kind, self.message))


@runtime_checkable
class SimpleTool(Protocol):
    """The smallest tool protocol: an object with a name, a description, and text in, text out."""

    name: str
    description: str

    def run(self, input_data: str) -> str: ...


@dataclass(frozen=True)
class Tool:
    """A function that a model may call.  Make one with `tool` or `as_tool`; calling it calls the function.

    `timeout` (seconds) replaces the gateway's limit for this tool alone.  `mutates` says that it changes state: a call
    may then carry an idempotency key and ask for a dry run (see `ToolGateway`).  `dry_run` is the function for that,
    with the same parameters: it says what a call would do, and does nothing; a tool that has one mutates.  `polls`
    says that the same call with the same result is waiting, and no standstill that ends a run as `repeated`.
    """

    name: str
    description: str
    function: Callable[..., Any]
    timeout: float | None = None
    mutates: bool = False
    dry_run: Callable[..., Any] | None = None
    polls: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "mutates", self.mutates or self.dry_run is not None)
        if not _NAME.fullmatch(self.name):
            raise TypeError(f"{self.name!r} cannot name a tool: use letters, digits and _, at most 64")
        if not self.description:
            raise TypeError(f"tool {self.name!r} has no description: give the function a docstring")
        _ = self._fields  # so that an unusable signature is reported where the tool is made

    def over(self, function: Callable[..., Any]) -> Self:
        """Return the same tool over another function of the very same signature, which is not read again."""
        tool = copy.copy(self)
        vars(tool)["function"] = function
        return tool

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @functools.cached_property
    def _fields(self) -> Fields:
        fields: list[tuple[str, Any, bool]] = []
        for p in self._signature.parameters.values():
            if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                text = f"tool {self.name!r}: name the parameters that {str(p)!r} stands for"
                raise TypeError(f"{text}, {p.kind.description} ones cannot be described to a model")
            fields.append((p.name, _resolved(self.function, p.name, p.annotation), p.default is p.empty))
        return tuple(fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(name for name, _, _ in self._fields)

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments (an object; parameters with a default are optional)."""
        if (stated := getattr(self.function, "json_schema", None)) is not None:  # such as an MCP server's
            return stated
        schema = cast("dict[str, Any]", untitled(_adapter(self._fields).json_schema()))
        for parameter in self._signature.parameters.values():
            if parameter.default is not parameter.empty:
                with suppress(TypeError, ValueError, RecursionError):  # a default that is no JSON is not told
                    text = json.dumps(parameter.default, allow_nan=False)
                    schema["properties"][parameter.name]["default"] = json.loads(text)
        schema.setdefault("properties", {})
        return schema

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as an entry of `tools` in a chat-completions request."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    @functools.cached_property
    def signature(self) -> str:
        """Line of help: `name(parameter: type = default) -> type: description`."""
        parts: list[str] = []
        for parameter, (_, hint, required) in zip(self._signature.parameters.values(), self._fields, strict=True):
            kind = "" if parameter.annotation is parameter.empty else f": {_type_text(hint)}"
            default = "" if required else f" = {parameter.default!r}" if kind else f"={parameter.default!r}"
            parts.append(f"{parameter.name}{kind}{default}")
        returns = self._signature.return_annotation
        arrow = "" if returns is inspect.Signature.empty else f" -> {_type_text(returns)}"
        return f"{self.name}({', '.join(parts)}){arrow}: {self.description}"

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function's types, or raise `ToolError("invalid_arguments", one line)`.

        Types are strict as JSON has them: `"3"` and `true` are no integers, `3` is a number, a list fits a tuple.
        """
        from pydantic import ValidationError

        types = _adapter(self._fields)
        try:
            return cast("dict[str, Any]", types.validate_python(dict(arguments), strict=True))
        except ValidationError as error:
            problem = error
        try:  # the rules for JSON know that it has no tuples, sets or dates of its own
            return cast("dict[str, Any]", types.validate_json(json.dumps(arguments), strict=True))
        except (TypeError, ValueError, RecursionError) as error:
            problem = error if isinstance(error, ValidationError) else problem
            raise ToolError("invalid_arguments", self._explain(problem.errors(include_url=False))) from None

    def _explain(self, errors: Sequence[Any]) -> str:
        parts: list[str] = []
        for error in errors[:3]:
            where = ".".join(str(step) for step in error["loc"])
            if error["type"] in ("missing", "extra_forbidden"):
                parts.append(f"{'missing' if error['type'] == 'missing' else 'unexpected'} {where!r}")
            else:
                got = repr(error["input"])
                parts.append(f"{where!r}: {error['msg']}, not {got if len(got) <= 60 else got[:57] + '...'}")
        return f"{'; '.join(parts)}. {self.name} takes ({', '.join(self.names)})"

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return a Python call's arguments by name, or raise `ToolError("invalid_arguments", ...)`."""
        try:
            return dict(self._signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise ToolError("invalid_arguments", f"{error}; usage: {self.signature}") from None

    @functools.cached_property
    def _returns(self) -> Any:
        """The declared type of a result; Any where there is none, or none that pydantic knows."""
        with suppress(Exception):
            declared = _resolved(self.function, "result", self._signature.return_annotation)
            _adapter((("result", declared, True),))
            return declared
        return Any

    def check_result(self, value: Any) -> None:
        """Raise `ToolError("runtime", one line)` for a result that is not of the declared type.

        A value of another class passes where pydantic makes an equal one of it: a NumPy integer, but no `"3"`.
        """
        if self._returns is Any:
            return
        from pydantic import ValidationError

        types = _adapter((("result", self._returns, True),))
        try:
            types.validate_python({"result": value}, strict=True)
        except ValidationError as error:
            with suppress(Exception):
                if types.validate_python({"result": value})["result"] == value:
                    return
            problem = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, problem["loc"][1:]))
            at = f" ({where}: {problem['msg']})" if where else ""
            message = f"{self.name} must return {_type_text(self._returns)}, got {reprlib.repr(value)}{at}"
            raise ToolError("runtime", message) from None


@overload
def tool(function: Callable[..., Any], /, **options: Any) -> Tool: ...
@overload
def tool(**options: Any) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **more: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a documented function: `@tool`, or `@tool(name=..., timeout=...)` with the fields of `Tool`.

    Raises `TypeError` for a function without a docstring, or with `*args`, `**kwargs` or positional-only parameters,
    and `NameError` for an annotation that cannot be resolved.
    """

    def make(target: Callable[..., Any]) -> Tool:
        inner = _unwrapped(target)  # a partial has its class's docstring, not the function's
        text = description or inspect.getdoc(inner) or ""
        first = " ".join(text.strip().split("\n\n")[0].split())
        return Tool(name or getattr(inner, "__name__", type(inner).__name__), first, target, **more)

    return make if function is None else make(function)


def as_tool(source: Tool | SimpleTool | Callable[..., Any]) -> Tool:
    """Return a tool, a `SimpleTool` object, a session (`PythonREPL`) or a documented function as a `Tool`.

    Raises `TypeError` for anything else.
    """
    if isinstance(source, Tool):
        return source
    session: Any = getattr(source, "as_tool", None)
    if callable(session) and not isinstance(source, type):  # its own `run` returns more than text
        return as_tool(cast("SimpleTool", session()))
    if isinstance(source, SimpleTool) and not isinstance(source, type):
        return Tool(source.name, " ".join(source.description.split()), source.run)
    if callable(source):
        return tool(source)
    raise TypeError(f"a tool must be a documented function or have name, description and run, got {source!r:.80}")


def _unwrapped(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = cast("Any", function.func)
    return function


def _resolved(function: Callable[..., Any], name: str, annotation: Any) -> Any:
    """Return the type that an annotation stands for; Any where there is none."""
    if annotation is inspect.Parameter.empty:
        return Any
    inner = _unwrapped(function)
    if not (inspect.isroutine(inner) or inspect.isclass(inner)):
        inner = inner.__call__
    scope = getattr(inspect.unwrap(inner), "__globals__", {})
    holder = type("_", (), {"__annotations__": {name: annotation}})
    return typing.get_type_hints(holder, globalns=scope, localns=scope, include_extras=True)[name]


def _type_text(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    if typing.get_origin(annotation) is typing.Annotated:
        return _type_text(annotation.__origin__)
    return "None" if annotation is type(None) else inspect.formatannotation(annotation).replace("typing.", "")


def _adapter(fields: Fields) -> TypeAdapter[Any]:
    try:
        return _cached_adapter(fields)
    except TypeError:  # a type that cannot be hashed, such as Annotated with a list
        return _cached_adapter.__wrapped__(fields)


@functools.lru_cache(maxsize=256)
def _cached_adapter(fields: Fields) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter
    from typing_extensions import TypedDict

    # A typed dict and not a model, because models reserve names (`copy`, `schema`, `_x`) that a tool may use.
    types = {name: typing.Required[hint] if required else typing.NotRequired[hint] for name, hint, required in fields}
    arguments: Any = TypedDict("arguments", types)  # pyright: ignore
    arguments.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    return TypeAdapter(arguments)


def untitled(schema: Any) -> Any:
    """Return the schema without the titles that pydantic adds: they are prompt tokens that say nothing."""
    if isinstance(schema, list):
        return [untitled(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    literal = ("default", "enum", "const", "examples")
    return {
        key: value if key in literal else untitled(value)
        for key, value in cast("dict[str, Any]", schema).items()
        if not (key == "title" and isinstance(value, str))
    }


@dataclass(frozen=True)
class ToolResult(Observation):
    """The observation of one call of a tool, and `data`, the value the tool returned.

    `text` of a failure is its message.  `seconds` is the whole call, checks included.  `repeated`: the call had been
    made before under the same idempotency key.
    """

    tool: str = ""
    data: Any = None
    repeated: bool = False

    @property
    def error(self) -> FailureKind | None:
        """The kind of failure, one of the closed set in `actions.FailureKind`."""
        return None if self.failure is None else self.failure.kind


def as_text(value: Any) -> str:
    """Return a value as text: JSON types as JSON, anything else by its `repr`."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def describe(error: BaseException) -> str:
    """Return an exception as its class and its text."""
    try:
        message = str(error)
    except Exception:  # an exception whose own text raises
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
