"""The one gate through which tools are called: look up, check, run with a time limit, catch, cap, log once."""

from __future__ import annotations

import inspect
import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from rlm_loop.accounting.limits import BudgetSpent
from rlm_loop.accounting.scope import Cancelled
from rlm_loop.actions import CallTool, Failure
from rlm_loop.errors import nearest
from rlm_loop.repl.text import RECORD_CAP, clip
from rlm_loop.tools.calls import CallOptions, IdempotencyCache, ToolFuture, ToolResult, as_text, describe, sendable
from rlm_loop.tools.function import SimpleTool, Tool, ToolError, as_tool
from rlm_loop.tools.hooks import notify
from rlm_loop.tools.threads import awaited
from rlm_loop.traces.logs import say

_log = logging.getLogger(__name__)

#: What to do about JSON that cannot be read: nearly always it holds code with quotes of its own.
JSON_HINT = 'inside a JSON string write \\" for a quote and \\n for a line break'


class ToolGateway:
    """Calls tools by name.  A mistake of a tool or a model is returned as data and never raised.

    - `timeout` is in seconds (`None`: no limit).  The call then returns and the tool's thread is abandoned, so a
      tool that goes on may still have effects.
    - `cap` is the most characters of a result's text.
    - `allow` names the tools that may run; a call of another one is `denied`.
    - `hooks` are told when a call starts and how it ended, with the id `node`.  `about` adds fields to log lines.
    - `approve` is asked before a call runs; the text that it returns is the reason of a `denied` call.
    - `watch` is called after a tool has run and returns what changed since the last time.
    - `seconds_left` returns the seconds left to the run (`None`: no limit).  At 0 a call raises `BudgetSpent`.

    Whatever a tool raises is a failure of the call, `SystemExit` and `KeyboardInterrupt` included.  Three things pass
    through: `BudgetSpent`, `Cancelled`, and Ctrl-C while the gateway waits for a tool.

    A call of a tool that mutates may carry `idempotency_key` and `dry_run`, in its arguments or from the caller.
    A second call with the same key is not made: it gets the recorded result, a failure too.  A dry run does nothing
    and says what would be done.  Gateways that share `kept` share the keys.
    """

    def __init__(
        self,
        tools: Iterable[Tool | SimpleTool | Callable[..., Any]],
        *,
        timeout: float | None = 60.0,
        cap: int = 65536,
        allow: Collection[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        watch: Callable[[], Mapping[str, Any]] | None = None,
        kept: IdempotencyCache | None = None,
        hooks: Sequence[object] = (),
        node: str = "",
        about: Callable[[], Mapping[str, Any]] = dict,
        seconds_left: Callable[[], float | None] = lambda: None,
        approve: Callable[[CallTool], str | None] | None = None,
    ) -> None:
        known = list(tools)
        self._tools: dict[str, Tool] = {}
        for given in known:
            found = given if isinstance(given, Tool) else as_tool(given)
            self._tools[found.name] = found
        if len(self._tools) < len(known):
            twice = sorted(name for name, n in Counter(as_tool(t).name for t in known).items() if n > 1)
            raise ValueError(f"tool names must differ; used more than once: {', '.join(twice)}")
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout must be seconds, 0 or more, or None for no limit, not {timeout}")
        self._allow = None if allow is None else frozenset(allow)
        self._timeout, self._cap, self._clock = timeout, cap, clock
        self._watch, self._kept = watch, IdempotencyCache() if kept is None else kept
        self._hooks, self._node, self._about, self._seconds_left = hooks, node, about, seconds_left
        self._approve = approve

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that may be called, in the order given."""
        found = tuple(self._tools.values())
        return found if self._allow is None else tuple(t for t in found if t.name in self._allow)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools, those that are denied too."""
        return tuple(self._tools)

    def tool(self, name: str) -> Tool:
        """The tool of that name, allowed or not."""
        return self._tools[name]

    def call(
        self,
        name: str,
        arguments: str | Mapping[str, Any] = "",
        *,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        call_id: str | None = None,
    ) -> ToolResult:
        """Call a tool with arguments as a model wrote them (JSON text; empty is `{}`) or as a mapping.

        `call_id` is what the model calls this call.
        """
        manner = CallOptions(idempotency_key, dry_run)
        return self._call(name, lambda found: manner.and_asked(found, _read(arguments)), call_id)

    def call_function(self, name: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Call a tool as Python code would and return its value; every failure is raised as a `ToolError`."""

        def read(found: Tool) -> tuple[dict[str, Any], CallOptions]:
            own, manner = CallOptions().and_asked(found, kwargs or {})
            return found.bind(args, own), manner

        result = self._call(name, read)
        if result.failure is not None:
            raise ToolError(result.failure.kind, result.failure.message)
        return result.data

    def _call(
        self, name: str, read: Callable[[Tool], tuple[Mapping[str, Any], CallOptions]], call_id: str | None = None
    ) -> ToolResult:
        start = self._clock()
        data, text, failure, repeated, effects = None, "", None, False, {}
        passing: BaseException | None = None
        try:
            found = self._find(name)
            arguments, manner = read(found)
            checked = found.check(arguments)
            if self._approve is not None:
                asked = json.dumps(dict(arguments), default=repr, ensure_ascii=False)
                if (refused := self._approve(CallTool(name, asked, call_id))) is not None:
                    raise ToolError("denied", refused)
            notify(self._hooks, "on_tool_start", tool=name, arguments=checked, node=self._node)
            try:
                running, repeated = self._running(found, checked, manner)
                data, text = self._ended(found, running, manner)
            finally:
                effects = {} if self._watch is None else self._watch()
        except ToolError as error:
            failure, text = Failure(error.kind, self._clean(error.message)[0]), error.message
        except (BudgetSpent, Cancelled, KeyboardInterrupt) as error:  # it ends more than this call, which ends as well
            passing, text = error, str(error) or "interrupted"
            failure = Failure("budget" if isinstance(error, BudgetSpent) else "interrupted", text)
        whole = text
        text, truncated = self._clean(whole)
        full = sendable(clip(whole, max(self._cap, RECORD_CAP))[0]) if truncated else ""
        seconds = self._clock() - start
        outcome = "ok" if failure is None else f"{failure.kind}: {failure.message}"
        if _log.isEnabledFor(logging.INFO):
            kind = None if failure is None else failure.kind
            told = {"node": self._node or None, **self._about(), "tool": name, "call_id": call_id}
            told |= {"seconds": seconds, "error_kind": kind, "characters": len(text), "outcome": outcome[:500]}
            say(_log, "tool", **told)  # pyright: ignore[reportArgumentType]: none of them is its level
        result = ToolResult(name, data, text, failure, seconds, truncated, full, effects, repeated)
        notify(self._hooks, "on_tool_end", tool=name, result=result, node=self._node)
        if passing is not None:
            raise passing
        return result

    def _find(self, name: str) -> Tool:
        offered = [t.name for t in self.tools]
        if name in self._tools and name not in offered:
            raise ToolError("denied", f"tool {name!r} is not allowed here; tools: {', '.join(offered) or 'none'}")
        if name not in self._tools:
            hint = nearest(name, offered) or ";"
            raise ToolError("unknown_tool", f"no tool {name!r}{hint} tools: {', '.join(offered) or 'none'}")
        return self._tools[name]

    def _running(self, found: Tool, arguments: Mapping[str, Any], manner: CallOptions) -> tuple[ToolFuture, bool]:
        function = found.function if found.dry_run is None or not manner.dry_run else found.dry_run

        def work() -> tuple[Any, str]:
            value = function(**arguments)
            if inspect.isawaitable(value):
                value = awaited(value)
            return value, as_text(value)

        if manner.key is None or manner.dry_run:
            return ToolFuture(work, found.name), False
        return self._kept.call(manner.key, found.name, arguments, work)

    def _ended(self, found: Tool, running: ToolFuture, manner: CallOptions) -> tuple[Any, str]:
        if self._seconds_left() == 0:
            raise BudgetSpent("seconds", f"the time of the run is up: {found.name} was not run")
        inline = found.timeout is not None and math.isinf(found.timeout)
        try:
            return running.result(self._timeout if found.timeout is None else found.timeout, self._seconds_left)
        except ToolError:
            raise
        except (BudgetSpent, Cancelled) as error:
            if manner.key is not None and running.raised(error):  # it came to no end of its own
                self._kept.forget(manner.key, found.name)
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and (inline or not running.raised(error)):
                raise  # Ctrl-C, and no doing of the tool's
            raise ToolError("runtime", describe(error)) from error

    def _clean(self, text: str) -> tuple[str, bool]:
        """At most `cap` characters, and only such as can be sent: a lone surrogate would fail in transport."""
        text, truncated = clip(text, self._cap)
        return sendable(text), truncated


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
