"""What a task can be measured in: its name on an axis, how a figure of it is written, and where its numbers are."""

from __future__ import annotations

from dataclasses import dataclass

from rlm_loop.report.figures.cells import Arm, Unit
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.errors import StudyError


@dataclass(frozen=True)
class Measure:
    """`column` of a study's rows (`total_tokens`: input plus output); `format` is for a mean, `tick` for an axis."""

    column: str
    name: str
    format: str = "{x:,.0f}"
    unit: str = ""
    tick: str = "{x:,.10g}"

    @property
    def title(self) -> str:
        """The name in few words, with a capital."""
        short = self.unit or self.name
        return short[:1].upper() + short[1:]

    def values(self, arm: Arm) -> dict[Unit, float]:
        """The known figures of an arm, by unit."""
        if self.column == "total_tokens":
            sums = {u: total_tokens(r) for u, r in arm.rows.items()}
            return {u: float(n) for u, n in sums.items() if n is not None}
        return arm.values(self.column)

    def say(self, value: float) -> str:
        return f"{self.format.format(x=value)} {self.unit or self.name}"


_KNOWN = (
    Measure("total_tokens", "tokens (in + out)", unit="tokens"),
    Measure("input_tokens", "prompt tokens"),
    Measure("output_tokens", "output tokens"),
    Measure("new_tokens", "prompt tokens not cached"),
    Measure("scaffold_tokens", "scaffold tokens"),
    Measure("steps", "steps", "{x:,.1f}"),
    Measure("calls", "model calls", "{x:,.1f}"),
    Measure("seconds", "seconds", "{x:,.1f}"),
    Measure("working_seconds", "working seconds", "{x:,.1f}"),
    Measure("model_seconds", "seconds of the model", "{x:,.1f}"),
    Measure("cost", "cost", "{x:.4g}", "$"),
    Measure("value", "score", "{x:.2f}"),
    Measure("actions", "actions", "{x:,.1f}"),
)
MEASURES = {m.column: m for m in _KNOWN}


def measure_of(column: str) -> Measure:
    """Raises `StudyError` for one that is not known."""
    if column not in MEASURES:
        raise StudyError(f"there is no measure {column!r}; there are {', '.join(MEASURES)}")
    return MEASURES[column]
