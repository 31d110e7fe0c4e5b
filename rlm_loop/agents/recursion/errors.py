"""What a failed sub-call raises.  Cells know these classes by the same names (see `repl.worker`)."""

from __future__ import annotations

from typing import Any

from rlm_loop.actions import FailureKind
from rlm_loop.tools.function import ToolError


class SubCallError(ToolError):
    """A sub-call gave no answer.  `reason` is one line that says why.

    It is raised where the sub-call was asked for; an error is never returned as if it were an answer.  `stop` is why a
    sub-agent ended.
    """

    stop: str | None = None

    def __init__(self, reason: str, kind: FailureKind = "runtime") -> None:
        super().__init__(kind, f"{type(self).__name__}: {reason}")
        self.reason = reason

    def __str__(self) -> str:
        return self.reason

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.reason, self.kind))


class DepthExceeded(SubCallError):
    """A sub-call would be deeper than `max_depth` allows, and `on_depth` is `"error"`."""

    def __init__(self, reason: str, kind: FailureKind = "denied") -> None:
        super().__init__(reason, kind)
