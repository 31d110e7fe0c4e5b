"""One call of a tool: under way, kept by its idempotency key, and what it led to.

A call that is retried with its key is not made again: it gets the result of the first, and waits for it where it is
not there yet (the first may have run out of time and still be at work).
"""

from __future__ import annotations

import contextvars
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.accounting.limits import BudgetSpent
from rlm_loop.actions import Failure, FailureKind
from rlm_loop.tools.function import Tool, ToolError
from rlm_loop.tools.threads import TOOL_THREADS, wait


@dataclass(frozen=True)
class ToolResult:
    """What one tool call led to.

    `data` is the value the tool returned, `text` what a model may see of it (of a failure: its message),
    clipped head and tail where `truncated`; `full` is then the text for the record, up to a cap of its own.
    `seconds` is the whole call, checks included.  `effects` are the files that it changed, where the gateway watches
    them.  `repeated`: the call had been made before under the same idempotency key, and this is what it led to.
    """

    tool: str
    data: Any = None
    text: str = ""
    failure: Failure | None = None
    seconds: float = 0.0
    truncated: bool = False
    full: str = ""
    effects: Mapping[str, Any] = field(default_factory=dict[str, Any])
    repeated: bool = False

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


def as_text(value: Any) -> str:
    """What a model sees of a value: text as it is, JSON types as JSON, anything else by its `repr`."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def describe(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:  # an exception whose own text raises
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


_MAX_KEY = 200

#: What a call of a tool that mutates may carry beside the tool's own arguments.  No schema and no help names them.
KEY, DRY_RUN = "idempotency_key", "dry_run"


@dataclass(frozen=True)
class CallOptions:
    """How a call is to be made: under a key, and whether for real."""

    key: str | None = None
    dry_run: bool = False

    def and_asked(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], CallOptions]:
        """The tool's own arguments, and the manner with what the others ask for."""
        own, found = dict(arguments), {KEY: self.key, DRY_RUN: self.dry_run}
        for name in (KEY, DRY_RUN):
            if tool.mutates and name in own and name not in tool.names:
                found[name] = own.pop(name)
        key, dry = found[KEY], found[DRY_RUN]
        if key is not None and (not isinstance(key, str) or not 0 < len(key) <= _MAX_KEY):
            raise ToolError("invalid_arguments", f"{KEY!r} must be a text of 1 to {_MAX_KEY} characters")
        if not isinstance(dry, bool):
            raise ToolError("invalid_arguments", f"{DRY_RUN!r} must be true or false")
        if dry and tool.mutates and tool.dry_run is None:
            raise ToolError("invalid_arguments", f"{tool.name} has no dry run, and was not run")
        return own, CallOptions(key, dry)


class ToolFuture:
    """Work that is done once, by whoever waits for it first; an exception of it is carried to all who wait."""

    def __init__(self, work: Callable[[], Any], name: str) -> None:
        self._work, self._name = work, name
        self._begun = threading.Lock()
        self._done = threading.Event()
        self._ended: tuple[Any, BaseException | None] = (None, None)

    def result(self, limit: float | None, seconds_left: Callable[[], float | None] = lambda: None) -> Any:
        """What the work returned or raised.

        `ToolError("timeout")` where it did not end in `limit` seconds, and `BudgetSpent` once there are no
        `seconds_left` for the run.  An infinite limit is for work that keeps to the run's limits itself: it is done in
        this thread.
        """
        if self._begun.acquire(blocking=False):
            if limit is not None and math.isinf(limit):
                self._do()()
            else:
                context = contextvars.copy_context()
                TOOL_THREADS.run(f"tool-{self._name}", lambda: context.run(self._do))
        until = None if limit is None or math.isinf(limit) else time.monotonic() + limit

        def left() -> float | None:
            own = None if until is None else max(0.0, until - time.monotonic())
            all_ = seconds_left()
            return own if all_ is None else all_ if own is None else min(own, all_)

        if not wait(self._done, left):
            if seconds_left() == 0:
                raise BudgetSpent("seconds", f"the time of the run was up before {self._name} gave a result")
            raise ToolError("timeout", f"{self._name} gave no result within {limit:g} s")
        value, error = self._ended
        if error is not None:
            raise error
        return value

    def raised(self, error: BaseException) -> bool:
        """Whether it was the work that raised this."""
        return self._ended[1] is error

    def _do(self) -> Callable[[], None]:
        try:
            self._ended = self._work(), None
        except BaseException as error:  # carried to the caller, who decides
            self._ended = None, error
        return self._done.set


class IdempotencyCache:
    """The calls with a key, by tool and key: at most `room` of them, the oldest go first."""

    def __init__(self, room: int = 1000) -> None:
        self._room = room
        self._calls: OrderedDict[tuple[str, str], tuple[str, ToolFuture]] = OrderedDict()
        self._lock = threading.Lock()

    def call(
        self, key: str, tool: str, arguments: Mapping[str, Any], work: Callable[[], Any]
    ) -> tuple[ToolFuture, bool]:
        """The call of that key, and whether it was there before; another call under the same key is refused."""
        asked = json.dumps(arguments, sort_keys=True, default=repr)
        with self._lock:
            before = self._calls.get((tool, key))
            if before is None:
                self._calls[tool, key] = asked, ToolFuture(work, tool)
                while len(self._calls) > self._room:
                    self._calls.popitem(last=False)
                return self._calls[tool, key][1], False
        if before[0] != asked:
            raise ToolError("invalid_arguments", f"{KEY} {key!r} was used for another call of {tool}: take a new one")
        return before[1], True

    def forget(self, key: str, tool: str) -> None:
        """The call did not come to an end of its own: a retry makes it again."""
        with self._lock:
            self._calls.pop((tool, key), None)
