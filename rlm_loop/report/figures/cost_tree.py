"""What a run's calls cost, as a tree: a box a node, as wide as what it and all below it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from rlm_loop.accounting.tree import TraceTree
from rlm_loop.report.figures.style import COLOURS, PAGE, caption, finish, sheet, style
from rlm_loop.study.errors import StudyError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Fill and hatch of each kind of node; grey tells them apart too.
_KINDS = {
    "agent": ("#56B4E9", ""),
    "completion": ("#f2d5a0", ".."),
    "cached": ("#ffffff", "///"),
    "fallback": ("#ffffff", "xx"),
    "denied": ("#ffffff", "---"),
}
_FAILED = COLOURS[1]
#: Boxes that would be narrower than this share of the page are drawn as one.
_NARROW = 0.006
_UNITS = {"tokens": "tokens (in + out)", "cost": "$", "calls": "model calls", "seconds": "seconds of the model"}


@dataclass(frozen=True)
class NodeBox:
    """One node, or several narrow siblings: from where to where, at which depth."""

    left: float
    width: float
    depth: int
    nodes: Sequence[Mapping[str, Any]]

    @property
    def failed(self) -> int:
        return sum(node.get("ok") is False for node in self.nodes)


def cost_tree(tree: TraceTree | pd.DataFrame, *, measure: str = "tokens") -> Figure:
    """The call tree of one run: every row a depth, every box a node, as wide as what it and its sub-calls took.

    `tree` is `accounting.tree.read_tree(trace)`, or its `frame()`.  `measure` is `tokens` (in and out), `cost`,
    `calls` or `seconds` (of the model; those of concurrent calls add up).  What a box has below it that no box covers
    is its own.  Siblings too narrow to be seen are one box with their number; failed ones have a thick red edge.
    Raises `StudyError` where the measure is not known of a node, or matplotlib is missing.
    """
    if measure not in _UNITS:
        raise StudyError(f"there is no measure {measure!r}; there are {', '.join(_UNITS)}")
    frame = tree.frame() if isinstance(tree, TraceTree) else tree
    nodes: Sequence[Mapping[str, Any]] = cast("list[dict[str, Any]]", frame.to_dict("records"))
    if not nodes or "node" not in nodes[0]:
        raise StudyError("the frame has no nodes; give the frame() of a TraceTree")
    own = {str(n["node"]): _own(n, measure) for n in nodes}
    below: dict[str, list[Mapping[str, Any]]] = {}
    for node in nodes[1:]:
        below.setdefault(str(node["node"]).rpartition(".")[0], []).append(node)
    whole = _whole(own)
    total = whole["0"]
    if not total:
        raise StudyError(f"the run took no {measure}, so there is nothing to draw")
    boxes = _boxes(nodes[0], below, whole, total)
    levels = max(b.depth for b in boxes) + 1
    with style():
        made = sheet(PAGE, 1.35 + 0.46 * levels)
        axes: Any = made.subplots()
        for box in boxes:
            _draw(axes, box)
        axes.set_xlim(0, total)
        axes.set_ylim(levels, 0)
        axes.set_yticks([d + 0.5 for d in range(levels)], [f"depth {d}" for d in range(levels)])
        axes.tick_params(axis="y", length=0, labelcolor="black")
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_formatter("{x:,.0f}" if total > 5 else "{x:.3g}")
        finish(
            axes,
            f"Call tree: {_amount(total, measure)}, {len(nodes)} node{'' if len(nodes) == 1 else 's'}",
            _UNITS[measure],
            grid="",
        )
        _legend(made, boxes)
        caption(made, "A box is as wide as what it and all below it took; what no box below covers is its own.")
        made.draw_without_rendering()
        for box in boxes:
            _name(made, axes, box, whole, measure)
    made.set_label(_told(nodes, own, total, measure))
    return made


def _own(node: Mapping[str, Any], measure: str) -> float:
    columns = {"tokens": ("input_tokens", "output_tokens"), "seconds": ("model_seconds",)}.get(measure, (measure,))
    parts = [node.get(column) for column in columns]
    if any(p is None or p != p for p in parts):
        raise StudyError(f"{measure} of node {node['node']} is not known; choose another measure, such as calls")
    return float(sum(parts))  # type: ignore[arg-type]


def _whole(own: Mapping[str, float]) -> dict[str, float]:
    """With all below: each node's own is added to every node on its path."""
    found = dict.fromkeys(own, 0.0)
    for node, value in own.items():
        parts = node.split(".")
        for depth in range(1, len(parts) + 1):
            found[".".join(parts[:depth])] += value
    return found


def _boxes(
    root: Mapping[str, Any], below: Mapping[str, Sequence[Mapping[str, Any]]], whole: Mapping[str, float], total: float
) -> list[NodeBox]:
    found = [NodeBox(0.0, total, 0, (root,))]
    ahead = list(found)
    while ahead:
        parent = ahead.pop()
        if len(parent.nodes) > 1:
            continue
        at, mine = parent.left, list[NodeBox]()
        children = below.get(str(parent.nodes[0]["node"]), ())
        for narrow, of in groupby(children, key=lambda child: whole[str(child["node"])] < _NARROW * total):
            siblings = tuple(of)
            for nodes in [siblings] if narrow else [(child,) for child in siblings]:
                width = sum(whole[str(node["node"])] for node in nodes)
                mine.append(NodeBox(at, width, parent.depth + 1, nodes))
                at += width
        found += mine
        ahead += mine
    return found


def _draw(axes: Any, box: NodeBox) -> None:
    from matplotlib.patches import Rectangle

    kinds = {str(n["kind"]) for n in box.nodes}
    fill, hatch = _KINDS.get(kinds.pop(), ("#dddddd", "")) if len(kinds) == 1 else ("#dddddd", "")
    place = (box.left, box.depth + 0.05)
    axes.add_patch(Rectangle(place, box.width, 0.9, facecolor=fill, edgecolor="#5a5a5a", hatch=hatch, linewidth=0.6))
    if box.failed:
        axes.add_patch(Rectangle(place, box.width, 0.9, fill=False, edgecolor=_FAILED, linewidth=1.8, zorder=3))


def _name(made: Any, axes: Any, box: NodeBox, whole: Mapping[str, float], measure: str) -> None:
    """The longest text that fits into the box."""
    first = box.nodes[0]
    value = sum(whole[str(n["node"])] for n in box.nodes)
    if len(box.nodes) > 1:
        many = len(box.nodes)
        wordings = [f"{many} nodes: {_amount(value, measure)}", f"{many} nodes", str(many)]
    else:
        name, failed = str(first["node"]), " failed" if box.failed else ""
        wordings = [f"{name} {first['kind']}{failed}: {_amount(value, measure)}"]
        wordings += [f"{name}{failed}: {_amount(value, measure)}", f"{name}{failed}", name]
    left, right = axes.transData.transform([(box.left, 0), (box.left + box.width, 0)])[:, 0]
    for words in wordings:
        text = axes.text(box.left + box.width / 2, box.depth + 0.5, words, ha="center", va="center", fontsize=7.5)
        if text.get_window_extent(made.canvas.get_renderer()).width < right - left - 6:
            text.set_bbox({"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.8})
            text.set_zorder(5)
            return
        text.remove()


def _legend(made: Any, boxes: Sequence[NodeBox]) -> None:
    from matplotlib.patches import Patch

    kinds = {str(n["kind"]) for b in boxes for n in b.nodes}
    handles = [
        Patch(facecolor=fill, hatch=hatch, edgecolor="#5a5a5a", linewidth=0.6, label=kind)
        for kind, (fill, hatch) in _KINDS.items()
        if kind in kinds
    ]
    if any(b.failed for b in boxes):
        handles.append(Patch(facecolor="white", edgecolor=_FAILED, linewidth=1.8, label="failed"))
    made.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=8)


def _amount(value: float, measure: str) -> str:
    return {"cost": f"${value:.4g}", "seconds": f"{value:,.1f} s"}.get(measure, f"{value:,.0f} {measure}")


def _told(nodes: Sequence[Mapping[str, Any]], own: Mapping[str, float], total: float, measure: str) -> str:
    lines: list[str] = []
    for depth in sorted({str(n["node"]).count(".") for n in nodes}):
        mine = [n for n in nodes if str(n["node"]).count(".") == depth]
        spent = sum(own[str(n["node"])] for n in mine)
        failed = sum(n.get("ok") is False for n in mine)
        lines.append(
            f"depth {depth}: {len(mine)} node{'' if len(mine) == 1 else 's'}, {_amount(spent, measure)} of their own "
            f"({spent / total:.0%}){f', {failed} failed' if failed else ''}"
        )
    return f"Call tree of a run, {_amount(total, measure)} in all. {'; '.join(lines)}."
