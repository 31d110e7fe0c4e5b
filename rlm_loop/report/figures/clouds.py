"""How sure a point of cost and resolve rate is in both at once: an ellipse around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlm_loop.report.figures.cells import Arm, Measure
from rlm_loop.report.figures.style import ArmStyle
from rlm_loop.study.compare.joint import Cloud, clouds

#: 95 % of a normal cloud lie within so many standard deviations: the root of a quantile of chi-squared, 2 degrees.
_RADIUS = 2.4477
#: Of more arms than this the ellipses hide one another, and the points; a study's page has them as a table too.
MOST_ELLIPSES = 5
LEGEND = "Ellipses: 95 % of paired resamples of the tasks"


def clouds_of(arms: Sequence[Arm], baseline: str, asked: Measure) -> dict[str, Cloud]:
    """The cloud of each arm of which something is known, by its label."""
    rows = [dict(row) for arm in arms for row in arm.rows.values()]
    taken = {(arm.name, arm.model): asked.values(arm) for arm in arms}

    def of(row: Mapping[str, Any]) -> float | None:
        return taken[row["arm"], row["model"]].get((row["suite"], row["task"], row["seed"]))

    labels = {(arm.name, arm.model): arm.label for arm in arms}
    return {labels[one.arm, one.model]: one for one in clouds(rows, baseline, of)}


def draw_ellipse(axes: Any, cloud: Cloud, mark: ArmStyle) -> None:
    """A faint ellipse in the arm's colour; none where one of the two figures does not vary."""
    import numpy as np  # here, as pages without it say what to install

    both = np.column_stack([cloud.spent, 100 * cloud.rate])
    both = both[np.isfinite(both).all(axis=1)]
    if len(both) < 3 or (np.ptp(both, axis=0) == 0).any():
        return
    values, vectors = np.linalg.eigh(np.cov(both.T))
    angle = np.linspace(0, 2 * np.pi, 100)
    circle = _RADIUS * np.sqrt(np.maximum(values, 0))[:, None] * np.array([np.cos(angle), np.sin(angle)])
    edge = both.mean(axis=0)[:, None] + vectors @ circle
    across = np.maximum(edge[0], 0.3 * both[:, 0].min())  # an axis of logarithms has no 0
    axes.fill(across, edge[1], color=mark.colour, alpha=0.08, linewidth=0, zorder=0.5)
    axes.plot(across, edge[1], color=mark.colour, alpha=0.45, linewidth=0.8, zorder=0.6)


def said(found: Mapping[str, Cloud], baseline: str) -> str:
    """In how many resamples an arm is cheaper than the baseline and resolves no fewer, in words; empty for none."""
    told = [f"{label} {100 * one.both:.0f} %" for label, one in found.items() if one.both is not None]
    return f"Cheaper than {baseline} and no worse in so many resamples: {', '.join(told)}." if told else ""
