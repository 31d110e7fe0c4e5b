"""The figure of a study: what the arms resolve for their tokens, and how the prompt grows turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.report.curves import Curve, prompt_curves
from rlm_loop.study import ArmSummary, Results, StudyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, which stay apart in the common forms of colour blindness; yellow is left out for contrast.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_GREY = "#555555"
_RC: Mapping[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _GREY,
    "axes.linewidth": 0.8,
    "xtick.color": _GREY,
    "ytick.color": _GREY,
    "svg.fonttype": "none",
    "svg.hashsalt": "rlm-loop",
}


def figure(results: Results, *, model: str | None = None) -> Figure:
    """Two panels for one model (the first by default): resolve rate against tokens, and cumulative prompt tokens.

    Raises `StudyError` where there is no task that every arm has finished, or matplotlib is missing.
    """
    matplotlib = _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    chosen = model or (results.models[0] if results.models else "")
    found = [s for s in results.summary() if s.model == chosen and s.n]
    if not found:
        raise StudyError("there is no task that every arm has finished, so there is nothing to draw yet")
    curves = prompt_curves([r for r in results.compared if r["model"] == chosen], [s.arm for s in found])
    styles = {s.arm: (COLOURS[i % 7], MARKERS[i % 7]) for i, s in enumerate(found)}
    with matplotlib.rc_context(dict(_RC)):
        made = Figure(figsize=(9.0, 3.9), layout="constrained")
        FigureCanvasAgg(made)
        left, right = made.subplots(1, 2)
        _rates(left, found, styles)
        _growth(right, curves, styles)
        made.supxlabel(_caption(results, found[0].n, chosen), fontsize=7, color=_GREY, x=0.01, ha="left")
    return made


def save_figure(results: Results, folder: str | Path, name: str = "figure", *, model: str | None = None) -> list[Path]:
    """Save the figure as PNG and SVG; the same results give the same files.  Returns their paths."""
    made = figure(results, model=model)
    paths = [Path(folder) / f"{name}.png", Path(folder) / f"{name}.svg"]
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with _matplotlib().rc_context(dict(_RC)):
            made.savefig(paths[0], dpi=200, metadata={"Software": None})
            made.savefig(paths[1], metadata={"Date": None})
    except OSError as error:
        raise StudyError(f"cannot write to {folder}: {error.strerror}; choose another folder") from error
    return paths


def _rates(axes: Any, found: Sequence[ArmSummary], styles: Mapping[str, tuple[str, str]]) -> None:
    known = [s for s in found if s.total_tokens and s.rate is not None]
    for s in known:
        colour, marker = styles[s.arm]
        rate = s.rate or 0.0
        error = [[(rate - s.low) * 100], [(s.high - rate) * 100]]
        axes.errorbar(
            s.total_tokens, rate * 100, yerr=error, fmt=marker, color=colour, markersize=7, capsize=3, linewidth=1.1,
            ecolor=colour, markeredgecolor="white", zorder=3,
        )
    axes.set_xscale("log")
    tokens = [s.total_tokens or 1.0 for s in known] or [1.0]
    low, high = min(tokens) / 1.5, max(tokens) * 2.6  # room for the labels right of the points
    axes.set_xlim(low, high)
    axes.set_xticks([t for t in _ROUND if low <= t <= high], minor=False)
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(_thousands)
    axes.set_ylim(0, 100)
    axes.yaxis.set_major_formatter("{x:.0f} %")
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.7, zorder=0)
    axes.set_xlabel("mean tokens a task, in + out (log scale)")
    axes.set_title("a   Tasks resolved, and their price", loc="left", fontsize=10, fontweight="bold")
    spots = spread([(s.rate or 0.0) * 100 for s in known], 5.5, 0, 100)
    for s, y in zip(known, spots, strict=True):
        text = f"{s.arm}  {s.resolved}/{s.n}"
        axes.annotate(
            text, (s.total_tokens, y), xytext=(8, 0), textcoords="offset points", va="center",
            color=styles[s.arm][0], fontsize=8.5,
        )


def _growth(axes: Any, curves: Sequence[Curve], styles: Mapping[str, tuple[str, str]]) -> None:
    top = max((c.tokens[-1] for c in curves if c.tokens), default=1.0)
    longest = max((len(c.tokens) for c in curves), default=1)
    drawn = [c for c in curves if c.tokens]
    for curve in drawn:
        colour, marker = styles[curve.arm]
        turns = range(1, len(curve.tokens) + 1)
        axes.plot(
            turns, curve.tokens, marker=marker, color=colour, markersize=4.5, linewidth=1.6,
            markeredgecolor="white", markeredgewidth=0.5, zorder=3,
        )
    for curve, y in zip(drawn, spread([c.tokens[-1] for c in drawn], top * 0.058, 0, top * 1.05), strict=True):
        axes.annotate(
            curve.arm, (len(curve.tokens), y), xytext=(7, 0), textcoords="offset points", va="center",
            color=styles[curve.arm][0], fontsize=8.5,
        )
    axes.set_xlim(0.8, longest + max(1.0, longest * 0.32))
    axes.set_ylim(0, top * 1.1)
    axes.set_xticks(range(1, longest + 1))
    axes.yaxis.set_major_formatter(_thousands)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.7, zorder=0)
    axes.set_xlabel("turn")
    axes.set_title("b   Prompt tokens sent so far, by turn", loc="left", fontsize=10, fontweight="bold")


_ROUND = [step * 10**power for power in range(7) for step in (1, 2, 5)]


def _thousands(value: float, _: object = None) -> str:
    return f"{value:,.0f}" if value < 10_000 else f"{value / 1000:,.0f}k"


def spread(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The values moved apart so that labels at them are at least `gap` from each other, within low to high."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    placed = [min(max(values[i], low + gap / 2), high - gap / 2) for i in order]
    for _ in range(200):
        moved = False
        for k in range(len(placed) - 1):
            short = gap - (placed[k + 1] - placed[k])
            if short > 1e-9:
                placed[k] -= short / 2
                placed[k + 1] += short / 2
                moved = True
        if placed and placed[0] < low:
            placed = [p + low - placed[0] for p in placed]
        if placed and placed[-1] > high:
            placed = [p + high - placed[-1] for p in placed]
        if not moved:
            break
    spots = [0.0] * len(values)
    for i, spot in zip(order, placed, strict=True):
        spots[i] = spot
    return spots


def _caption(results: Results, n: int, model: str) -> str:
    kind = "recorded run; " if results.recorded else ""
    date = results.provenance["date"]
    return (
        f"{kind}{model}, {n} tasks an arm{f', {date}' if date else ''}. a: bars are 95 % Wilson intervals. "
        "b: mean over the tasks still running at a turn;\na line ends where fewer than a third of the arm's tasks "
        "still run. Prompt tokens include those re-sent or cached."
    )


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise StudyError('figures need matplotlib: pip install "rlm-loop[studies]"') from None
    return matplotlib
