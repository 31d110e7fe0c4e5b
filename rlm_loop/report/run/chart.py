"""Tokens by cause, turn by turn: stacked bars as inline SVG, each bar a link to its step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlm_loop.report.figures.colours import cause_place
from rlm_loop.report.run.marked import parts

#: Segments that are no cause of input: what the model wrote, and what sub-calls took (both ways).
OUTPUT, BELOW = "output", "sub-calls"
_HEIGHT = 1000
_GAPS = 150  # bars; more of them leave no room for gaps
_BAR = 64  # pixels that a bar is wide at most


@dataclass
class TokenBar:
    """What one turn cost: tokens by segment."""

    turn: int
    link: str
    tokens: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, segment: str, tokens: int | None) -> None:
        if tokens:
            self.tokens[segment] = self.tokens.get(segment, 0) + tokens

    @property
    def total(self) -> int:
        return sum(self.tokens.values())


def stacked(segment: str) -> tuple[int, str]:
    """The sort key of segments, from the bottom up."""
    return {BELOW: (900, ""), OUTPUT: (999, "")}.get(segment) or cause_place(segment)


def segments_of(bars: Sequence[TokenBar]) -> list[tuple[str, int]]:
    """Each segment with its tokens over all turns, from the bottom of the bars to the top."""
    sums: dict[str, int] = {}
    for bar in bars:
        for segment, tokens in bar.tokens.items():
            sums[segment] = sums.get(segment, 0) + tokens
    return sorted(sums.items(), key=lambda item: stacked(item[0]))


def chart(bars: Sequence[TokenBar], shades: Mapping[str, str], *, label: str) -> str:
    """The chart with its legend; `shades` are the CSS classes of segments.  Empty where nothing is known."""
    segments = segments_of(bars)
    most = max((bar.total for bar in bars), default=0)
    if not most:
        return ""
    step, top = _ticks(most)
    width = 0.82 if len(bars) <= _GAPS else 1
    paths: dict[str, list[str]] = {name: [] for name, _ in segments}
    for place, bar in enumerate(bars):
        y = float(_HEIGHT)
        x = place + (1 - width) / 2
        for name, _ in segments:
            if tokens := bar.tokens.get(name):
                height = tokens * _HEIGHT / top
                y -= height
                paths[name].append(f"M{x:.6g} {y:.5g}h{width}v{height:.5g}h-{width}z")
    lines = [k * step for k in range(round(top / step) + 1)]
    total = sum(tokens for _, tokens in segments)
    return parts().chart(
        label,
        bars=[(bar.link, _said(bar, segments)) for bar in bars],
        paths=[(shades[name], "".join(path)) for name, path in paths.items()],
        grid="".join(f"M0 {_HEIGHT - value * _HEIGHT / top:.5g}H{len(bars)}" for value in lines),
        ticks=[(f"{190 - 180 * value / top:.1f}", _short(value)) for value in lines],
        top=top,
        height=_HEIGHT,
        width=len(bars) * _BAR,
        ends=[f"turn {bar.turn}" for bar in (bars[0], *bars[1:][-1:])],
        segments=[(shades[name], name, f"{tokens:,}", _percent(tokens, total)) for name, tokens in segments],
    )


def _said(bar: TokenBar, segments: Sequence[tuple[str, int]]) -> str:
    """What a bar says on hovering: its turn, and each segment from the top down."""
    lines = [f"{name}: {bar.tokens[name]:,}" for name, _ in reversed(segments) if name in bar.tokens]
    return "\n".join([f"turn {bar.turn}: {bar.total:,} tokens", *lines])


def _percent(part: int, total: int) -> str:
    share = 100 * part / total
    return f"{share:.0f} %" if share >= 1 else "< 1 %"


def _ticks(most: int) -> tuple[float, float]:
    """The distance of grid lines, round and so that there are two to five, and the value of the last one."""
    rough = most / 3
    power = 10 ** math.floor(math.log10(rough)) if rough > 0 else 1
    step = max(1, next(n * power for n in (1, 2, 2.5, 5, 10) if n * power >= rough * 0.999))
    return step, math.ceil(most / step) * step


def _short(value: float) -> str:
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
