"""The one gate through which tools are called: look up, check, run with a time limit, catch, cap, log once."""

from __future__ import annotations

import contextvars
import difflib
import inspect
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rlm_loop.actions import Failure, FailureKind
from rlm_loop.hooks import notify
from rlm_loop.repl.clip import RECORD_CAP, clip
from rlm_loop.tool_function import SimpleTool, Tool, ToolError, as_tool, tool

__all__ = ["SimpleTool", "Tool", "ToolError", "ToolGateway", "ToolResult", "as_tool", "tool"]

_log = logging.getLogger(__name__)

#: What to do about JSON that cannot be read: nearly always it holds code with quotes of its own.
JSON_HINT = 'inside a JSON string write \\" for a quote and \\n for a line break'


@dataclass(frozen=True)
class ToolResult:
    """What one tool call led to.

    `data` is the value the tool returned, `text` what a model may see of it (of a failure: its message),
    clipped head and tail where `truncated`; `full` is then the text for the record, up to a cap of its own.
    `seconds` is the whole call, checks included.
    """

    tool: str
    data: Any = None
    text: str = ""
    failure: Failure | None = None
    seconds: float = 0.0
    truncated: bool = False
    full: str = ""

    @property
    def ok(self) -> bool:
        return self.failure is None

    @property
    def error(self) -> FailureKind | None:
        """The kind of failure, one of the closed set in `actions.FailureKind`."""
        return None if self.failure is None else self.failure.kind

    @property
    def message(self) -> str:
        """What went wrong, for the model; empty when nothing did."""
        return "" if self.failure is None else self.failure.message


class ToolGateway:
    """Calls tools by name.  What a tool or a model does wrong comes back as data and is never raised.

    `timeout` (seconds, `None` for no limit) is enforced from outside: the call returns, and the thread that
    the tool runs in is abandoned, so a tool that goes on may still have effects.  `cap` is the most characters
    of a result's text.  `allow` names the tools that may run; the others are `denied`.  `hooks` are told when a call
    that was understood starts, and how every call ended, as one of `node`.  Only exceptions that are
    no `Exception` (`KeyboardInterrupt`, `SystemExit`) pass through.
    """

    def __init__(
        self,
        tools: Iterable[Tool | SimpleTool | Callable[..., Any]],
        *,
        timeout: float | None = 60.0,
        cap: int = 65536,
        allow: Collection[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        hooks: Sequence[object] = (),
        node: str = "",
    ) -> None:
        known = [as_tool(source) for source in tools]
        names = [t.name for t in known]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"tool names must differ; used more than once: {', '.join(twice)}")
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout must be seconds, 0 or more, or None for no limit, not {timeout}")
        self._tools = {t.name: t for t in known}
        self._allow = None if allow is None else frozenset(allow)
        self._timeout, self._cap, self._clock = timeout, cap, clock
        self._hooks, self._node = hooks, node

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that may be called, in the order given."""
        return tuple(t for t in self._tools.values() if self._allow is None or t.name in self._allow)

    def call(self, name: str, arguments: str | Mapping[str, Any] = "") -> ToolResult:
        """Call a tool with arguments as a model wrote them (JSON text; empty is `{}`) or as a mapping."""
        return self._call(name, lambda _: _read(arguments))

    def call_function(self, name: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Call a tool as Python code would and return its value; every failure is raised as a `ToolError`."""
        result = self._call(name, lambda found: found.bind(args, kwargs or {}))
        if result.failure is not None:
            raise ToolError(result.failure.kind, result.failure.message)
        return result.data

    def _call(self, name: str, read: Callable[[Tool], Mapping[str, Any]]) -> ToolResult:
        start = self._clock()
        data, text, failure = None, "", None
        try:
            found = self._find(name)
            checked = found.check(read(found))
            notify(self._hooks, "on_tool_start", tool=name, arguments=checked, node=self._node)
            data, text = self._run(found, checked)
        except ToolError as error:
            failure, text = Failure(error.kind, self._clean(error.message)[0]), error.message
        whole = text
        text, truncated = self._clean(whole)
        full = _sendable(clip(whole, max(self._cap, RECORD_CAP))[0]) if truncated else ""
        seconds = self._clock() - start
        outcome = "ok" if failure is None else f"{failure.kind}: {failure.message}"
        _log.info("tool=%s seconds=%.3f characters=%d %s", name, seconds, len(text), outcome[:500])
        result = ToolResult(name, data, text, failure, seconds, truncated, full)
        notify(self._hooks, "on_tool_end", tool=name, result=result, node=self._node)
        return result

    def _find(self, name: str) -> Tool:
        offered = [t.name for t in self.tools]
        if name in self._tools and name not in offered:
            raise ToolError("denied", f"tool {name!r} is not allowed here; tools: {', '.join(offered) or 'none'}")
        if name not in self._tools:
            near = difflib.get_close_matches(name, offered, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ";"
            raise ToolError("unknown_tool", f"no tool {name!r}{hint} tools: {', '.join(offered) or 'none'}")
        return self._tools[name]

    def _run(self, found: Tool, arguments: Mapping[str, Any]) -> tuple[Any, str]:
        limit = self._timeout if found.timeout is None else found.timeout
        box: list[tuple[Any, str] | BaseException] = []

        def work() -> None:
            try:
                value = found.function(**arguments)
                if inspect.iscoroutine(value):
                    import asyncio  # costs 30 ms, which only an async tool should

                    value = asyncio.run(value)
                box.append((value, _as_text(value)))
            except BaseException as error:  # carried to the caller, who decides
                box.append(error)

        if limit is None or math.isinf(limit):
            work()
        else:
            context = contextvars.copy_context()
            thread = threading.Thread(target=context.run, args=(work,), daemon=True, name=f"tool-{found.name}")
            thread.start()
            thread.join(min(limit, threading.TIMEOUT_MAX))
        if not box:
            raise ToolError("timeout", f"{found.name} gave no result within {limit:g} s")
        ended = box[0]
        if isinstance(ended, ToolError):
            raise ended
        if isinstance(ended, Exception):
            raise ToolError("runtime", _describe(ended)) from ended
        if isinstance(ended, BaseException):
            raise ended
        return ended

    def _clean(self, text: str) -> tuple[str, bool]:
        """At most `cap` characters, and only such as can be sent: a lone surrogate would fail in transport."""
        text, truncated = clip(text, self._cap)
        return _sendable(text), truncated


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _read(arguments: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments, strict=False)  # models put real line breaks into JSON strings
    except json.JSONDecodeError as error:
        near = arguments[max(0, error.pos - 15) : error.pos + 15]
        message = f"arguments are not JSON: {error.msg} near {near!r}; {JSON_HINT}"
        raise ToolError("invalid_arguments", message) from None
    except (ValueError, RecursionError) as error:
        raise ToolError("invalid_arguments", f"arguments are not JSON: {error}") from None
    if not isinstance(value, dict):
        kind = {"list": "an array", "str": "a string", "NoneType": "null"}.get(type(value).__name__, "a value")
        raise ToolError("invalid_arguments", f"arguments must be a JSON object such as {{}}, not {kind}")
    return cast("dict[str, Any]", value)


def _as_text(value: Any) -> str:
    """What a model sees of a value: text as it is, JSON types as JSON, anything else by its `repr`."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _describe(error: Exception) -> str:
    try:
        message = str(error)
    except Exception:  # an exception whose own text raises
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
