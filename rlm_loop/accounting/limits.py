"""What a run may spend: one frozen value, and what is raised where nothing is left."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

#: The limits that are no counts.
_MEASURED = ("seconds", "working_seconds", "cost")


@dataclass(frozen=True)
class Budget:
    """Limits of a run.  `None` means unlimited, `0` means none at all.

    `steps` are replies of the root model; `seconds` wall time from the start of the run; `working_seconds` the same
    without waits for rate limits and retries; `tokens` input plus output of all calls; `output_tokens` generated ones;
    `cost` US dollars; `calls` model calls, failed ones included; `depth` levels of recursion; `malformed` unreadable
    replies in a row; `tool_failures` failed tool calls in a row;
    `repeated` equal replies with equal results in a row, or as many rounds of the same two in turn (2 or more).
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

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"Budget.{limit.name} is a number or None (unlimited), not {value!r}")
            if math.isnan(value) or value < 0:
                raise ValueError(f"Budget.{limit.name} cannot be {value}; None means unlimited, 0 means none at all")
            if limit.name not in _MEASURED and not math.isinf(value) and value != int(value):
                raise ValueError(f"Budget.{limit.name} counts, so it is a whole number or None, not {value}")
        if self.repeated is not None and (self.repeated < 2 or self.repeated != int(self.repeated)):
            raise ValueError(
                f"Budget.repeated counts equal turns in a row, so it is 2 or more, or None (off), not {self.repeated}"
            )


class BudgetSpent(BaseException):
    """Nothing is left to spend.  Not an `Exception`: no `except Exception` in a cell may swallow it."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class UnknownPrice(ValueError):
    """A cost limit was set for a model whose price is not known."""
