"""A tool is a documented, typed function: its help text, JSON schema and argument check all come from it."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, overload, runtime_checkable

from rlm_loop.actions import FailureKind
from rlm_loop.tools.schema import Fields, adapter, is_json, parameters_of, read_fields, show_type, untitled

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class ToolError(Exception):
    """A tool call that failed, in words meant for the model.

    The gateway raises it into a REPL cell that called a tool.  A tool may raise it too, to have `message`
    shown as it stands, without the name of an exception class before it.
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

    def over(self, function: Callable[..., Any]) -> Tool:
        """The same tool over another function of the very same signature, which is not read again."""
        made = object.__new__(type(self))
        vars(made).update(vars(self), function=function)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @functools.cached_property
    def _fields(self) -> Fields:
        return read_fields(self.name, self.function)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(name for name, _, _ in self._fields)

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments (an object; parameters with a default are optional)."""
        try:
            schema = cast("dict[str, Any]", untitled(adapter(self._fields).json_schema()))
        except Exception as error:
            line = str(error).splitlines()[0]
            raise TypeError(f"tool {self.name!r} has a parameter that JSON cannot describe: {line}") from error
        for parameter in parameters_of(self.name, self.function):
            if parameter.default is not parameter.empty and is_json(parameter.default):
                schema["properties"][parameter.name]["default"] = json.loads(json.dumps(parameter.default))
        schema.setdefault("properties", {})
        return schema

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as an entry of `tools` in a chat-completions request."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    @functools.cached_property
    def signature(self) -> str:
        """One line of help: `name(parameter: type = default) -> type: description`."""
        shown: list[str] = []
        parameters = parameters_of(self.name, self.function)
        for parameter, (_, hint, required) in zip(parameters, self._fields, strict=True):
            kind = "" if parameter.annotation is parameter.empty else f": {show_type(hint)}"
            default = "" if required else f" = {parameter.default!r}" if kind else f"={parameter.default!r}"
            shown.append(f"{parameter.name}{kind}{default}")
        returns = inspect.signature(self.function).return_annotation
        arrow = "" if returns is inspect.Signature.empty else f" -> {show_type(returns)}"
        return f"{self.name}({', '.join(shown)}){arrow}: {self.description}"

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function's types; `ToolError("invalid_arguments", one line)` where they do not fit.

        Types are strict as JSON has them: `"3"` and `true` are no integers, `3` is a number, a list fits a tuple.
        """
        from pydantic import ValidationError

        types = adapter(self._fields)
        try:
            return cast("dict[str, Any]", types.validate_python(dict(arguments), strict=True))
        except ValidationError as error:
            problem = error
        try:  # the rules for JSON know that it has no tuples, sets or dates of its own
            return cast("dict[str, Any]", types.validate_json(json.dumps(arguments), strict=True))
        except (TypeError, ValueError, RecursionError) as error:
            problem = error if isinstance(error, ValidationError) else problem
            raise ToolError("invalid_arguments", self._explain(problem.errors(include_url=False))) from None

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """A Python call's arguments by name; `ToolError("invalid_arguments", ...)` where they do not fit."""
        try:
            return dict(inspect.signature(self.function).bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise ToolError("invalid_arguments", f"{error}; usage: {self.signature}") from None

    def _explain(self, errors: Sequence[Any]) -> str:
        parts: list[str] = []
        for error in errors[:3]:
            where = ".".join(str(step) for step in error["loc"])
            if error["type"] == "missing":
                parts.append(f"missing {where!r}")
            elif error["type"] == "extra_forbidden":
                parts.append(f"unexpected {where!r}")
            else:
                got = repr(error["input"])
                parts.append(f"{where!r}: {error['msg']}, not {got if len(got) <= 60 else got[:57] + '...'}")
        return f"{'; '.join(parts)}. {self.name} takes ({', '.join(self.names)})"


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    mutates: bool = False,
    dry_run: Callable[..., Any] | None = None,
    polls: bool = False,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    mutates: bool = False,
    dry_run: Callable[..., Any] | None = None,
    polls: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a documented function: `@tool`, or `@tool(name=..., timeout=...)` with the fields of `Tool`.

    Raises `TypeError` for a function without a docstring, with `*args`, `**kwargs` or positional-only
    parameters, or with an annotation that cannot be resolved.
    """

    def make(target: Callable[..., Any]) -> Tool:
        inner = target
        while isinstance(inner, functools.partial):  # a partial has its class's docstring, not the function's
            inner = cast("Callable[..., Any]", inner.func)
        text = description or inspect.getdoc(inner) or ""
        first = " ".join(text.strip().split("\n\n")[0].split())
        called = name or getattr(inner, "__name__", type(inner).__name__)
        return Tool(called, first, target, timeout, mutates, dry_run, polls)

    return make if function is None else make(function)


def as_tool(source: Tool | SimpleTool | Callable[..., Any]) -> Tool:
    """A tool, a `SimpleTool` object, a session (`PythonREPL`) or a documented function as a `Tool`.

    Raises `TypeError` for anything else.
    """
    if isinstance(source, Tool):
        return source
    made: Any = getattr(source, "as_tool", None)
    if callable(made) and not isinstance(source, type):  # a session: its own `run` returns more than text
        return as_tool(cast("SimpleTool", made()))
    if isinstance(source, SimpleTool) and not isinstance(source, type):
        return Tool(source.name, " ".join(source.description.split()), source.run)
    if callable(source):
        return tool(source)
    raise TypeError(f"a tool is a documented function or has name, description and run, not {source!r:.80}")
