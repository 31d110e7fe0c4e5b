"""The figure of a study: what the arms resolve for their tokens, and how the prompt grows turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.report.curves import Curve, prompt_curves
from rlm_loop.report.labels import Tag, write
from rlm_loop.study import ArmSummary, Results, StudyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, which stay apart in the common forms of colour blindness; yellow is left out for contrast.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
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
    matplotlib = matplotlib_or_say()
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
        left, right = made.subplots(1, 2, gridspec_kw={"wspace": 0.06})
        named = [(left, _rates(left, found, styles)), (right, _growth(right, curves, styles))]
        made.supxlabel(_caption(results, found[0].n), fontsize=7, color=_GREY, x=0.01, ha="left")
        made.draw_without_rendering()  # settles the layout
        made.set_layout_engine("none")
        for axes, tags in named:
            write(made, axes, tags)
    return made


def save_figure(results: Results, folder: str | Path, name: str = "figure", *, model: str | None = None) -> list[Path]:
    """Save the figure as PNG and SVG; the same results give the same files.  Returns their paths."""
    return save(figure(results, model=model), folder, name)


def save(made: Figure, folder: str | Path, name: str) -> list[Path]:
    """Save a figure as PNG and SVG, the same figure as the same bytes.  Returns their paths.

    A figure's label is its alternative text, and is kept in both files.
    """
    paths = [Path(folder) / f"{name}.png", Path(folder) / f"{name}.svg"]
    said = {"Description": str(made.get_label())} if made.get_label() else {}
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with matplotlib_or_say().rc_context(dict(_RC)):
            made.savefig(paths[0], dpi=200, metadata={"Software": None, **said})
            made.savefig(paths[1], metadata={"Date": None, **said})
    except OSError as error:
        raise StudyError(f"cannot write to {folder}: {error.strerror}; choose another folder") from error
    return paths


def _rates(axes: Any, found: Sequence[ArmSummary], styles: Mapping[str, tuple[str, str]]) -> list[Tag]:
    known = [s for s in found if s.total_tokens and s.rate is not None]
    tags: list[Tag] = []
    for s in known:
        colour, marker = styles[s.arm]
        x, y, low, high = s.total_tokens or 1.0, (s.rate or 0.0) * 100, s.low * 100, s.high * 100
        axes.errorbar(
            x,
            y,
            yerr=[[y - low], [high - y]],
            fmt=marker,
            color=colour,
            markersize=7,
            capsize=3,
            linewidth=1.1,
            markeredgecolor="white",
            zorder=3,
            clip_on=False,
        )
        tags.append(Tag(f"{s.arm}  {s.resolved}/{s.judged}", colour, x, y, low, high, ((x, low), (x, high))))
    tokens = [t.x for t in tags] or [1.0]
    low, high = min(tokens) / 1.6, max(tokens) * 2.4  # room for the names beside the points
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xticks([t for t in _ROUND if low <= t <= high], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 100)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:.0f} %")
    _finish(axes, "a   Tasks resolved, and their price", "mean tokens a task, in + out (log scale)")
    return tags


def _growth(axes: Any, curves: Sequence[Curve], styles: Mapping[str, tuple[str, str]]) -> list[Tag]:
    tags: list[Tag] = []
    for curve in curves:
        if not curve.tokens:
            continue
        colour, marker = styles[curve.arm]
        path = tuple((float(turn), tokens) for turn, tokens in enumerate(curve.tokens, 1))
        axes.plot(
            *zip(*path, strict=True),
            marker=marker,
            color=colour,
            markersize=5,
            linewidth=1.6,
            markeredgecolor="white",
            markeredgewidth=0.5,
            zorder=3,
        )
        x, y = path[-1]
        tags.append(Tag(curve.arm, colour, x, y, y, y, path))
    longest = max((t.x for t in tags), default=1.0)
    axes.set_xlim(0.8, longest + max(0.8, longest * 0.25))
    axes.set_ylim(0, 1.1 * max((t.y for t in tags), default=1.0))
    axes.set_xticks(range(1, int(longest) + 1))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    _finish(axes, "b   Prompt tokens sent so far, by turn", "turn")
    return tags


def _finish(axes: Any, title: str, below: str) -> None:
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.set_xlabel(below)
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")


_ROUND = [step * 10**power for power in range(8) for step in (1, 2, 5)]


def _caption(results: Results, n: int) -> str:
    kind = "recorded run; " if results.recorded else ""
    source = results.provenance
    date = f", {source['date']}" if source["date"] else ""
    return (
        f"{kind}{source['model']}, {n} tasks an arm{date}. a: bars are 95 % Wilson intervals. "
        "b: mean over the tasks still running at a turn;\na line ends where fewer than a third of the arm's tasks "
        "still run. Prompt tokens include those re-sent or cached."
    )


def house_style() -> Mapping[str, Any]:
    """Settings of matplotlib that all figures share."""
    return _RC


def matplotlib_or_say() -> Any:
    """The library; raises `StudyError` that says how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise StudyError('figures need matplotlib: pip install "rlm-loop[studies]"') from None
    return matplotlib
