"""A comparison's rows as they are drawn: points of resolve rate, or ratios, and the axis that suits them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.style import GREY, SMALL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_COLUMNS = {"arm", "baseline", "measure", "estimate", "low", "high"}
#: Ratios beyond 16 times are drawn at the edge; a scale wide enough for one stray task would hide all others.
_WIDEST = 16.0


@dataclass(frozen=True)
class DrawnEffect:
    """One estimate with its interval: a difference in points of 100 where `share`, else a ratio."""

    model: str
    arm: str
    label: str
    baseline: str
    measure: str
    share: bool
    estimate: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """The numbers; a ratio as percent more or less."""
        if self.share:
            middle, low, high = (f"{v:+.1f}" for v in (self.estimate, self.low, self.high))
        else:
            middle, low, high = (f"{100 * (v - 1):+.0f}" for v in (self.estimate, self.low, self.high))
        unit = "" if self.share else " %"
        return f"{middle}{unit} ({low} to {high})".replace("-", "−")


def given(frame: pd.DataFrame) -> bool:
    """Whether a frame is that of a comparison."""
    return set(frame.columns) >= _COLUMNS


def effects_of(
    rows: Sequence[Mapping[str, Any]], measures: Sequence[str], arms: Sequence[str] | None = None
) -> list[DrawnEffect]:
    """The rows of `Comparison.frame()` for these measures that have a whole interval, in the order of `arms`."""
    chosen = [r for r in rows if r["measure"] in measures and (arms is None or r["arm"] in arms)]
    if arms is not None:
        chosen.sort(key=lambda r: arms.index(r["arm"]))
    several = len({r.get("model") for r in chosen}) > 1
    found: list[DrawnEffect] = []
    for row in chosen:
        numbers = [row[name] for name in ("estimate", "low", "high")]
        if any(v is None or v != v for v in numbers):
            continue
        share = str(row.get("effect") or ("difference" if row["measure"] == "resolved" else "ratio")) == "difference"
        figures = [(100.0 if share else 1.0) * float(v) for v in numbers]
        model = str(row.get("model") or "")
        label = f"{row['arm']}, {model}" if several else str(row["arm"])
        found.append(
            DrawnEffect(model, str(row["arm"]), label, str(row["baseline"]), str(row["measure"]), share, *figures)
        )
    return found


def scale(axes: Any, effects: Sequence[DrawnEffect], margin: float | None) -> None:
    """The same room to both sides of no difference; a log axis for ratios."""
    share = effects[0].share
    axes.axvline(0.0 if share else 1.0, color="black", linewidth=0.9, zorder=2)
    if share:
        reach = max(10.0, *(max(abs(e.low), abs(e.high)) for e in effects)) * 1.08
        axes.set_xlim(-reach, reach)
        axes.xaxis.set_major_formatter(_signed)
        if margin:
            axes.axvspan(-reach, -100 * margin, color="#ececec", zorder=0, linewidth=0)
            axes.axvline(-100 * margin, color=GREY, linewidth=0.9, linestyle="--", zorder=2)
        return
    dots = [float(x) for line in axes.lines for x in line.get_xdata() if float(x) > 0]
    needed = max([2.0, *(max(e.high, 1 / max(e.low, 1e-9)) for e in effects)])
    reach = max(min(needed, 1e6), min(_WIDEST, max([max(x, 1 / x) for x in dots], default=1.0))) * 1.08
    axes.set_xscale("log")
    axes.set_xlim(1 / reach, reach)
    top = math.floor(math.log2(reach))
    powers = [p for p in range(-top, top + 1) if not p % max(1, math.ceil(top / 2))]
    axes.set_xticks([2.0**p for p in powers], [_times(p) for p in powers], fontsize=SMALL)
    axes.set_xticks([], minor=True)


def thin_ticks(made: Figure, axes: Any) -> None:
    """Take away every second tick as long as two of them meet, in a figure that is laid out (`settle`)."""
    renderer: Any = made.canvas.get_renderer()  # type: ignore[attr-defined]
    while True:
        ticks, labels = list(axes.get_xticks()), axes.get_xticklabels()
        boxes = [label.get_window_extent(renderer).expanded(1.08, 1.0) for label in labels]
        if len(ticks) < 4 or not any(left.overlaps(right) for left, right in pairwise(boxes)):
            return
        middle = len(ticks) // 2  # no difference stays
        kept = [i for i in range(len(ticks)) if not (i - middle) % 2]
        axes.set_xticks([ticks[i] for i in kept], [labels[i].get_text() for i in kept], fontsize=SMALL)


def _times(power: int) -> str:
    return "same" if not power else f"x {2**power}" if power > 0 else f"1/{2**-power}"


def _signed(value: float, _: object = None) -> str:
    return f"{value:+.0f}".replace("-", "−") if value else "0"
