"""A call tree for a notebook: nested rows that open, a square per member of a batch, tokens by depth."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from rlm_loop.accounting.amounts import counted
from rlm_loop.accounting.tree.fold import FOLD, Fold, folded, head, status

if TYPE_CHECKING:
    from rlm_loop.accounting.tree.nodes import Node, TraceTree

# Translucent, and text in the theme's own colour: light and dark notebooks both work.
_BOX = "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:.5em .8em;margin:.3em 0;text-align:left"
_SHADE = {"ok": "rgba(46,160,67,.55)", "failed": "rgba(218,54,51,.7)", "open": "rgba(210,153,34,.6)"}
_DOT = "display:inline-block;width:.7em;height:.7em;border-radius:2px;margin:0 .35em 0 0;background:{shade}"
_SQUARE = "display:inline-block;width:.6em;height:.6em;border-radius:1px;margin:1px;background:{shade}"
_NEST = "margin:.1em 0 .1em .4em;padding-left:1em;border-left:1px solid rgba(128,128,128,.35)"
_TITLE = "opacity:.65;margin:0 0 .15em 1.05em;font-size:.9em;overflow-wrap:anywhere"
_CELL = "text-align:{align};padding:.1em .8em .1em 0;border:0"
#: Nodes that are open at first; deeper ones open on a click.
_OPEN = 2
#: Squares of one batch at most.
_SQUARES = 2_000


def tree_html(tree: TraceTree, *, fold: int = FOLD) -> str:
    """The tree as HTML with no script; whatever a model or a provider wrote is escaped."""
    return f'<div class="rlm-loop-tree" style="{_BOX}">{_depths(tree)}{_rows(tree, fold)}</div>'


def _rows(tree: TraceTree, fold: int) -> str:
    parts: list[str] = []
    stack: list[Node | Fold | str] = [tree.root]
    while stack:
        item = stack.pop()
        if isinstance(item, str):  # what closes a node whose children are done
            parts.append(item)
            continue
        below = list(item.members) if isinstance(item, Fold) else folded(tree, item.node, fold)
        parts.append(_opening(tree, item, bool(below)))
        if below:
            shown = item.shown if isinstance(item, Fold) else below
            stack += ["</div></details>", *reversed(shown)]
    return "".join(parts)


def _opening(tree: TraceTree, item: Node | Fold, nested: bool) -> str:
    line = f'<span style="{_DOT.format(shade=_SHADE[status(item)])}"></span>{escape(head(tree, item))}'
    title = "" if isinstance(item, Fold) or not item.title else f'<div style="{_TITLE}">{escape(item.title)}</div>'
    if not nested:
        return f"<div>{line}{title}</div>"
    depth = item.members[0].depth if isinstance(item, Fold) else item.depth
    opened = " open" if depth < _OPEN and not isinstance(item, Fold) else ""
    squares = _squares(item) if isinstance(item, Fold) else ""
    return (
        f'<details{opened} style="margin:.1em 0"><summary style="cursor:pointer">{line}{squares}</summary>'
        f'<div style="{_NEST}">{title}'
    )


def _squares(item: Fold) -> str:
    cells = "".join(f'<span style="{_SQUARE.format(shade=_SHADE[status(n)])}"></span>' for n in item.members[:_SQUARES])
    return f'<div style="line-height:.7em;margin:.2em 0 .2em 1em">{cells}</div>'


def _depths(tree: TraceTree) -> str:
    """A table of what each depth cost, with a bar for its share of the tokens; only where there are sub-calls."""
    totals = tree.by_depth()
    if len(totals) < 2:
        return ""
    known = [(t.own.total_tokens or 0) for t in totals]
    most = max(known) or 1
    rows = "".join(
        f'<tr><td style="{_CELL.format(align="left")}">depth {t.depth}</td>'
        f'<td style="{_CELL.format(align="right")}">{t.nodes:,} node{"" if t.nodes == 1 else "s"}</td>'
        f'<td style="{_CELL.format(align="right")}">{t.own.calls:,} call{"" if t.own.calls == 1 else "s"}</td>'
        f'<td style="{_CELL.format(align="right")}">{escape(counted(t.own))}</td>'
        f'<td style="{_CELL.format(align="right")}">{t.model_seconds:.1f} s of models</td>'
        f'<td style="{_CELL.format(align="left")};width:10em"><div style="background:rgba(31,119,180,.6);height:.7em;'
        f'width:{100 * tokens / most:.1f}%"></div></td></tr>'
        for t, tokens in zip(totals, known, strict=True)
    )
    return f'<table style="border-collapse:collapse;margin:0 0 .4em 0"><tbody>{rows}</tbody></table>'
