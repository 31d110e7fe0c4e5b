"""The gateway to tools: look up, check, run with a time limit, catch, cap, log once."""

from __future__ import annotations

import inspect
import json
import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.accounting.scope import Cancelled
from rlm_loop.actions import CallTool, Failure, FailureKind
from rlm_loop.errors import nearest
from rlm_loop.repl.in_process.streams import CellOutput, captured
from rlm_loop.repl.text import RECORD_CAP, clip, clip_again
from rlm_loop.tools.function import SimpleTool, Tool, ToolError, ToolResult, as_text, as_tool, describe
from rlm_loop.tools.hooks import NO_HOOKS, Hooks
from rlm_loop.tools.threads import GivenUp, Pending
from rlm_loop.traces.logs import say

_log = logging.getLogger(__name__)

#: What to do about JSON that cannot be read: nearly always it holds code with quotes of its own.
JSON_HINT = 'inside a JSON string write \\" for a quote and \\n for a line break'
#: Arguments that a call of a tool that mutates may have beside the tool's own.  No schema and no help names them.
KEY, DRY_RUN = "idempotency_key", "dry_run"
_MAX_TEXT = 1 << 26  # characters of a result, which host and cells would have to hold
#: The value of a call, its text, and what was raised.
_Done = tuple[Any, str, BaseException | None]


ToolLike = Tool | Callable[..., Any]


class ToolGateway:
    """Calls tools by name; a mistake of a tool or a model is data and never raised.

    - `quiet` tools are called by functions (`call_function`) alone: a model never reads of them.
    - `timeout` is in seconds (`None`: no limit).  A tool that goes on in its thread may still have effects.
    - `cap` is the most characters of a result's text.
    - `allow` names the tools that may run; a call of another one is `denied`.
    - `hooks` are told when a call starts and how it ended, with the id `node`.  `about` adds fields to log lines.
    - `approve` is asked before a call runs; the text that it returns is the reason of a `denied` call.
    - `seconds_left` returns the seconds left to the run (`None`: no limit).  At 0 a call raises `BudgetSpent`.

    Whatever a tool raises is a failure of the call, `SystemExit` and `KeyboardInterrupt` included, and so is a result
    that is not of the type that the tool declares, or of more than 64 million characters.  Three things pass through:
    `BudgetSpent`, `Cancelled`, and Ctrl-C while the gateway waits for a tool.

    A call of a tool that mutates may carry `idempotency_key` and `dry_run`, in its arguments.
    The same call with the same key is not made again: it gets the recorded result, a failure too, and waits for it
    where the first is still at work.  A dry run does nothing and says what would be done.
    """

    def __init__(
        self,
        tools: Iterable[Tool | SimpleTool | Callable[..., Any]],
        quiet: Sequence[Tool] = (),
        *,
        timeout: float | None = 60.0,
        cap: int = 65536,
        allow: Collection[str] | None = None,
        hooks: Hooks = NO_HOOKS,
        node: str = "",
        about: Callable[[], Mapping[str, Any]] = dict,
        seconds_left: Callable[[], float | None] = lambda: None,
        approve: Callable[[CallTool], str | None] | None = None,
    ) -> None:
        self._listed = {tool.name: tool for tool in map(as_tool, tools)}
        self._every = self._listed | {tool.name: tool for tool in quiet}
        self._allow = None if allow is None else frozenset(allow)
        self._timeout, self._cap = timeout, cap
        self._kept: dict[tuple[str, str, str], Pending[_Done]] = {}  # calls by tool, key and arguments
        self._hooks, self._node, self._about = hooks, node, about
        self._seconds_left, self._approve = seconds_left, approve

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that a model may call, in the order given."""
        listed = self._listed.values()
        return tuple(listed if self._allow is None else [tool for tool in listed if tool.name in self._allow])

    def call(
        self,
        name: str,
        arguments: str | Mapping[str, Any] = "",
        *,
        call_id: str | None = None,
        intent: Mapping[str, str] | None = None,
    ) -> ToolResult:
        """Call a tool with arguments as JSON text (empty is `{}`) or as a mapping.

        `call_id` is the model's own name of this call, `intent` what a typed action states, for `approve`.
        """
        return self._call(CallTool(name, call_id=call_id, intent=intent or {}), arguments)

    def call_function(self, name: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Call a tool as Python code would and return its value; every failure is raised as a `ToolError`."""
        result = self._call(CallTool(name), kwargs or {}, args)
        if result.failure is not None:
            raise ToolError(result.failure.kind, result.failure.message)
        return result.data

    def _call(self, action: CallTool, asked: str | Mapping[str, Any], args: Sequence[Any] | None = None) -> ToolResult:
        """Make a call; `args` are the positional arguments of one by a function."""
        start = time.monotonic()
        values: dict[str, Any] = {}
        signal: BaseException | None = None  # it ends more than this call, which ends as well
        kind: FailureKind | None = None
        try:
            text = self._perform(action, asked, args, values)
        except ToolError as error:
            kind, text = error.kind, error.message
        except (BudgetSpent, Cancelled, KeyboardInterrupt) as error:
            signal, text = error, str(error) or "interrupted"
            kind = "budget" if isinstance(error, BudgetSpent) else "interrupted"
        seen, values["truncated"] = clip(text, self._cap)
        seen = _sendable(seen)
        values["full"] = _sendable(clip(text, max(self._cap, RECORD_CAP))[0]) if values["truncated"] else ""
        values |= {"tool": action.name, "seconds": time.monotonic() - start}
        result = ToolResult(seen, kind and Failure(kind, seen), **values)
        self._say(result, action.call_id)
        self._hooks.notify("on_tool_end", tool=action.name, result=result, node=self._node)
        if signal is not None:
            raise signal
        return result

    def _perform(
        self, action: CallTool, asked: str | Mapping[str, Any], args: Sequence[Any] | None, values: dict[str, Any]
    ) -> str:
        """Do the call and return its text; `values` gets known fields of the `ToolResult`."""
        tool = self._find(action.name, self._listed if args is None else self._every)
        arguments, key, dry = _options(tool, _parsed(asked))
        arguments = arguments if args is None else tool.bind(args, arguments)
        checked = tool.check(arguments)
        if self._approve is not None:
            text = json.dumps(arguments, default=repr, ensure_ascii=False)
            if (refused := self._approve(replace(action, arguments=text))) is not None:
                raise ToolError("denied", refused)
        self._hooks.notify("on_tool_start", tool=tool.name, arguments=checked, node=self._node)
        inline = tool.timeout is not None and math.isinf(tool.timeout)  # such as a sub-call: it keeps to the limits
        output = CellOutput(RECORD_CAP, passed_on=True)
        function = tool.dry_run if dry and tool.dry_run is not None else tool.function

        def work() -> _Done:
            try:
                with nullcontext() if inline else captured(output):
                    value = function(**checked)
                    if inspect.iscoroutine(value):
                        import asyncio  # 30 ms, which only an async tool should cost

                        value = asyncio.run(value)
                    if function is tool.function:
                        tool.check_result(value)
                    text = as_text(value)
                    if len(text) > _MAX_TEXT:
                        raise ToolError("runtime", f"{tool.name} gave {len(text):,} characters: ask for less")
                    return value, text, None
            except BaseException as error:  # whatever it is, the tool raised it
                return None, "", error

        new = Pending(work, f"tool-{tool.name}")
        known = None if key is None or dry else (tool.name, key, json.dumps(checked, sort_keys=True, default=repr))
        try:
            if self._seconds_left() == 0:
                raise BudgetSpent("seconds", f"the time of the run is up: {tool.name} was not run")
            pending = new if known is None else self._kept.setdefault(known, new)
            values["repeated"] = pending is not new
            values["data"], text, error = work() if inline else self._waited(pending, tool)
        finally:
            values["printed"] = clip_again(output.text(), RECORD_CAP)[0]
        if error is None:
            return text
        if known is not None and isinstance(error, (BudgetSpent, Cancelled)):  # it came to no end of its own
            self._kept.pop(known, None)
        ours = (ToolError, BudgetSpent, Cancelled, *((KeyboardInterrupt,) if inline else ()))
        raise error if isinstance(error, ours) else ToolError("runtime", describe(error)) from error

    def _find(self, name: str, known: Mapping[str, Tool]) -> Tool:
        if name in known and (self._allow is None or name in self._allow):
            return known[name]
        names = [tool.name for tool in self.tools]
        offered = ", ".join(names) or "none"
        if name in known:
            raise ToolError("denied", f"tool {name!r} is not allowed here; tools: {offered}")
        raise ToolError("unknown_tool", f"no tool {name!r}{nearest(name, names) or ';'} tools: {offered}")

    def _waited(self, pending: Pending[_Done], tool: Tool) -> _Done:
        """Wait for the work within the limits of the tool and of the run."""
        limit = self._timeout if tool.timeout is None else tool.timeout
        until = time.monotonic() + (math.inf if limit is None else limit)

        def left() -> float:
            of_run = self._seconds_left()
            return max(0.0, min(until - time.monotonic(), math.inf if of_run is None else of_run))

        try:
            return pending.result(left)
        except GivenUp:
            if self._seconds_left() == 0:
                spent = f"the time of the run was up before {tool.name} gave a result"
                raise BudgetSpent("seconds", spent) from None
            raise ToolError("timeout", f"{tool.name} gave no result within {limit:g} s") from None

    def _say(self, result: ToolResult, call_id: str | None) -> None:
        outcome = "ok" if result.failure is None else f"{result.failure.kind}: {result.failure.message}"
        fields = {"node": self._node or None, **self._about(), "tool": result.tool, "call_id": call_id}
        fields |= {"seconds": result.seconds, "error_kind": result.error, "characters": len(result.text)}
        say(_log, "tool", **fields, outcome=outcome[:500])  # pyright: ignore[reportArgumentType]: none is its level


def _sendable(text: str) -> str:
    """Return the text without lone surrogates, which would fail in transport."""
    return text.encode("utf-8", "replace").decode()


def _options(tool: Tool, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], str | None, bool]:
    """Return the tool's own arguments; and of the call, whose options stand among them, key and dry run."""
    rest = dict(arguments)
    ours = {KEY, DRY_RUN} - set(tool.names) if tool.mutates else set[str]()
    key = rest.pop(KEY, None) if KEY in ours else None
    dry = bool(rest.pop(DRY_RUN, False)) if DRY_RUN in ours else False
    if dry and tool.dry_run is None:
        raise ToolError("invalid_arguments", f"{tool.name} has no dry run, and was not run")
    return rest, None if key is None else str(key), dry


def _parsed(arguments: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments as an object, or raise `ToolError("invalid_arguments", one line)`."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments if arguments.strip() else "{}", strict=False)  # models write real line breaks
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
