"""What a tool call led to, and its values as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.actions import Failure, FailureKind


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
