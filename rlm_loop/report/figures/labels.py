"""Where to write names beside points so that they hide nothing: every place is tried and the freest taken."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.report.figures.style import SMALL, settle


@dataclass(frozen=True)
class Box:
    """A rectangle on the page, in any one unit."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """The shared area."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return width * height if width > 0 and height > 0 else 0.0

    def grown(self, by: float) -> Box:
        return Box(self.left - by, self.bottom - by, self.right + by, self.top + by)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.top - self.bottom)


@dataclass(frozen=True)
class Anchor:
    """What a name of the given size belongs to: a point, and the extent (an error bar) above and below it."""

    x: float
    y: float
    low: float
    high: float
    width: float
    height: float

    def places(self, gap: float) -> list[Box]:
        """Where the name may be, best first: right of the point, above or below what belongs to it, then further."""
        right = [(self.x + gap, self.y + k * self.height) for k in (-0.5, 0.1, -1.1, 0.8, -1.8, -2.6, 1.6)]
        above = [(self.x - share * self.width, self.high + gap * 0.6) for share in (0.5, 0.15, 0.85)]
        below = [(self.x - share * self.width, self.low - gap * 0.6 - self.height) for share in (0.5, 0.15, 0.85)]
        left = [(self.x - gap - self.width, self.y + k * self.height) for k in (-0.5, 0.1, -1.1)]
        raised = [(x, y + k * self.height) for k in (1.2, 2.4) for x, y in above]
        return [Box(x, y, x + self.width, y + self.height) for x, y in [*right, *above, *below, *left, *raised]]


def place(anchors: Sequence[Anchor], taken: Iterable[Box], frame: Box, gap: float) -> list[Box]:
    """One box a name, in the order of the anchors.

    Each takes the place that costs least: five times the area of `taken` boxes and other names that it would hide, ten
    times what would stick out of the `frame`, and a little for every place that would have been better.  Names placed
    early are then moved once more, now that the others are known.
    """
    fixed = list(taken)
    places = [anchor.places(gap) for anchor in anchors]
    alone = [[_cost(box, rank, fixed, frame) for rank, box in enumerate(of)] for of in places]
    found: dict[int, Box] = {}
    for _ in range(3):
        for number, of in enumerate(places):
            others = [box.grown(gap / 4) for other, box in found.items() if other != number]  # so that none touch
            costs = [
                cost + 5 * sum(box.overlap(other) for other in others)
                for box, cost in zip(of, alone[number], strict=True)
            ]
            found[number] = of[costs.index(min(costs))]
    return [found[number] for number in range(len(anchors))]


def _cost(box: Box, rank: int, fixed: Sequence[Box], frame: Box) -> float:
    """What a place costs, whatever the other names do."""
    left, bottom, right, top = box.left, box.bottom, box.right, box.top
    near = [u for u in fixed if u.left < right and u.right > left and u.bottom < top and u.top > bottom]
    outside = box.area - box.overlap(frame)
    return 5 * sum(box.overlap(u) for u in near) + 10 * outside + 0.01 * rank * box.area


#: Half the width of a stretch of line or bar that a name should not hide, in dots at matplotlib's 100 a inch.
_HALF = 3.0


@dataclass(frozen=True)
class Tag:
    """A name to be written beside a point: its text and colour, the point, what reaches above and below, its line."""

    text: str
    colour: str
    x: float
    y: float
    low: float
    high: float
    path: tuple[tuple[float, float], ...]


def write(made: Any, axes: Any, tags: Sequence[Tag], *, leaders: bool = False) -> None:
    """Write the names at the end, when the layout is known, each in a darker shade of the colour of what it names.

    With `leaders` a thin line goes from a name to its point where the two are not beside each other.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2, foreground="white")]
    renderer = made.canvas.get_renderer()
    to_page = axes.transData.transform
    frame = axes.get_window_extent(renderer)
    there = [text.get_window_extent(renderer) for text in axes.texts]  # such as the name of a line
    taken = [Box(box.x0, box.y0, box.x1, box.y1) for box in there]
    anchors: list[Anchor] = []
    for tag in tags:
        points = [tuple(to_page(p)) for p in tag.path]
        taken += [Box(x - _HALF, y - _HALF, x + _HALF, y + _HALF) for x, y in along(points, 2 * _HALF)]
        text = axes.text(0, 0, tag.text, fontsize=8.5)
        size = text.get_window_extent(renderer)
        text.remove()
        (x, y), (_, low), (_, high) = (to_page((tag.x, v)) for v in (tag.y, tag.low, tag.high))
        anchors.append(Anchor(x, y, low, high, size.width, size.height))
    gap = 7 * made.dpi / 72
    boxes = place(anchors, taken, Box(frame.x0, frame.y0 + 2, frame.x1, frame.y1), gap)
    for tag, box in zip(tags, boxes, strict=True):
        x, y = axes.transAxes.inverted().transform((box.left, box.bottom))
        shade = tuple(0.82 * part for part in to_rgb(tag.colour))
        written = axes.text(x, y, tag.text, transform=axes.transAxes, fontsize=8.5, color=shade, va="bottom", zorder=4)
        written.set_path_effects(halo)
        if leaders:
            _lead(axes, tag, box, to_page((tag.x, tag.y)), gap, shade)


def _lead(axes: Any, tag: Tag, box: Box, point: Sequence[float], gap: float, shade: Any) -> None:
    x, y = (float(v) for v in point)
    end = (min(max(x, box.left), box.right), min(max(y, box.bottom), box.top))
    if math.hypot(end[0] - x, end[1] - y) > 1.6 * gap:
        (x0, y0), (x1, y1) = axes.transData.inverted().transform([end, (x, y)])
        axes.plot([x0, x1], [y0, y1], color=shade, linewidth=0.6, linestyle=":", zorder=2, scalex=False, scaley=False)


def along(points: Sequence[tuple[float, float]], step: float) -> list[tuple[float, float]]:
    """Points on the line through `points`, about `step` apart."""
    found = list(points[:1])
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        pieces = max(1, round(math.hypot(x1 - x0, y1 - y0) / step))
        found += [(x0 + (x1 - x0) * k / pieces, y0 + (y1 - y0) * k / pieces) for k in range(1, pieces + 1)]
    return found


def write_at_ends(made: Any, axes: Any, ends: Sequence[tuple[str, str, float]]) -> None:
    """Write the names of lines (name, colour, last value) right of the panel, each at the height of its line's end.

    Names that would touch are moved apart as little as can be; a thin line joins each to its end.  The layout is fixed
    with it.
    """
    from matplotlib.colors import to_rgb

    look = {"transform": axes.get_yaxis_transform(), "fontsize": SMALL, "va": "center"}
    low, high = axes.get_ylim()
    shades = [tuple(0.82 * part for part in to_rgb(colour)) for _, colour, _ in ends]
    texts = [axes.text(1.05, y, name, color=shade, **look) for (name, _, y), shade in zip(ends, shades, strict=True)]
    axes.set_ylim(low, high)
    settle(made)
    to_page = axes.transData.transform
    heights = [float(to_page((axes.get_xlim()[1], y))[1]) for _, _, y in ends]
    gap = SMALL * 1.15 * made.dpi / 72
    for text, shade, (_, _, y), at in zip(texts, shades, ends, apart(heights, gap), strict=True):
        share = float(axes.transAxes.inverted().transform((0, at))[1])
        text.set_transform(axes.transAxes)
        text.set_y(share)
        start = float(axes.transAxes.inverted().transform(to_page((axes.get_xlim()[1], y)))[1])
        axes.plot([1.0, 1.012, 1.032, 1.042], [start, start, share, share], transform=axes.transAxes, color=shade,
                  linewidth=0.6, clip_on=False, scalex=False, scaley=False)  # fmt: skip


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Places in the order of `wanted`, at least `gap` apart, whose squared distances from `wanted` are the least.

    That is isotonic regression of what is wanted less `gap` for each that is lower (pool adjacent violators).
    """
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    blocks: list[tuple[float, int]] = []  # the mean of a block, and how many are in it
    for rank, index in enumerate(order):
        mean, many = wanted[index] - rank * gap, 1
        while blocks and blocks[-1][0] >= mean:
            before, others = blocks.pop()
            mean, many = (before * others + mean * many) / (others + many), others + many
        blocks.append((mean, many))
    flat = [mean for mean, many in blocks for _ in range(many)]
    places = dict(zip(order, (at + rank * gap for rank, at in enumerate(flat)), strict=True))
    return [places[index] for index in range(len(wanted))]
