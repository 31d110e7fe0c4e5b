"""The limits of a run, and the errors of a spent budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Limits that need not be whole numbers.
_MEASURED = ("seconds", "working_seconds", "cost", "cell_seconds", "tool_seconds")


@dataclass(frozen=True)
class Budget:
    """Limits of a run.  `None` (or infinity) means unlimited, `0` means none at all.

    `steps` are replies of the root model; `seconds` wall time from the start of the run; `working_seconds` the same
    without waits for rate limits and retries; `tokens` input plus output of all calls; `output_tokens` generated ones;
    `cost` US dollars; `calls` model calls, failed ones included; `depth` levels of recursion; `malformed` unreadable
    replies in a row; `tool_failures` failed tool calls in a row;
    `repeated` equal replies with equal results in a row, or as many rounds of the same two in turn (2 or more);
    `cell_seconds` the time of each cell, and `tool_seconds` that of each tool call.
    """

    steps: int | None = 20
    seconds: float | None = None
    working_seconds: float | None = None
    tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    calls: int | None = None
    depth: int | None = None
    malformed: int | None = 3
    tool_failures: int | None = 3
    repeated: int | None = 2
    cell_seconds: float | None = 60.0
    tool_seconds: float | None = 60.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"Budget.{name} must be a number or None (unlimited), got {value!r}")
            if value == math.inf:
                object.__setattr__(self, name, None)
            elif not value >= 0:
                raise ValueError(f"Budget.{name} must be 0 or more (0: none at all) or None (unlimited), got {value}")
            elif name not in _MEASURED and value != int(value):
                raise ValueError(f"Budget.{name} must be a whole number or None, got {value}")
            elif name == "repeated" and value < 2:
                raise ValueError(f"Budget.repeated must be 2 or more equal turns in a row or None (off), got {value}")


#: For what has no limits of its own: what is recorded already, and several attempts together.
NO_LIMITS = Budget(steps=None, malformed=None, tool_failures=None)


class BudgetSpent(BaseException):
    """Nothing is left to spend.  Not an `Exception`: no `except Exception` in a cell may swallow it."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class UnknownPrice(ValueError):
    """A cost limit was set for a model whose price is not known."""
