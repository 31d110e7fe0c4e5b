"""The result of a tool call, and the results that are kept by idempotency key."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlm_loop.actions import Failure, FailureKind
from rlm_loop.tools.function import ToolError
from rlm_loop.tools.threads import Pending

#: Arguments that a call of a tool that mutates may have beside the tool's own.  No schema and no help names them.
KEY, DRY_RUN = "idempotency_key", "dry_run"
_MOST_KEPT = 1 << 28  # characters


@dataclass(frozen=True)
class ToolResult:
    """The result of one tool call.

    `data` is the value the tool returned, `text` what a model may see of it (of a failure: its message), clipped head
    and tail where `truncated`; `full` is then the text for the record, up to a cap of its own.  `printed` is what the
    tool printed, which no model sees.  `seconds` is the whole call, checks included.  `repeated`: the call had been
    made before under the same idempotency key.
    """

    tool: str
    data: Any = None
    text: str = ""
    failure: Failure | None = None
    seconds: float = 0.0
    truncated: bool = False
    full: str = ""
    repeated: bool = False
    printed: str = ""

    @property
    def ok(self) -> bool:
        return self.failure is None

    @property
    def error(self) -> FailureKind | None:
        """The kind of failure, one of the closed set in `actions.FailureKind`."""
        return None if self.failure is None else self.failure.kind

    @property
    def message(self) -> str:
        """The failure in words for the model; empty where there is none."""
        return "" if self.failure is None else self.failure.message


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


class IdempotencyCache:
    """The calls with a key, by tool and key.

    At most `room` of them are kept, and 256 MiB of their texts; the oldest go first.  A call that is retried with its
    key gets the result of the first, and waits for it where it is still at work.
    """

    def __init__(self, room: int = 1000) -> None:
        self._room = room
        self._calls: OrderedDict[tuple[str, str], tuple[str, Pending[Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def call(self, key: str, tool: str, arguments: Mapping[str, Any], new: Pending[Any]) -> Pending[Any]:
        """Return the call of that key, or `new`; refuse the key for another call."""
        text = json.dumps(arguments, sort_keys=True, default=repr)
        with self._lock:
            asked, call = self._calls.setdefault((tool, key), (text, new))
            while len(self._calls) > self._room or (len(self._calls) > 1 and self._size() > _MOST_KEPT):
                self._calls.popitem(last=False)
        if asked != text:
            raise ToolError("invalid_arguments", f"{KEY} {key!r} was used for another call of {tool}: take a new one")
        return call

    def _size(self) -> int:
        return sum(len(call.value[1]) for _, call in self._calls.values() if call.value is not None)

    def forget(self, key: str, tool: str) -> None:
        """Let a retry make the call again, which came to no end of its own."""
        with self._lock:
            self._calls.pop((tool, key), None)
