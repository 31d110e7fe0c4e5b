"""The tree of sub-calls, each line a link to where the call is shown; and the calls that one turn made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from markupsafe import Markup

from rlm_loop.accounting.tree import ROOT, Node
from rlm_loop.report.call_tree import FOLD, Fold, folded, head, status
from rlm_loop.report.notebook.formatting import plural
from rlm_loop.report.run.marked import parts, plain_text
from rlm_loop.report.run.view import RunView

#: Depth up to which the tree is open at first, and nodes of one fold that are listed.
_OPEN, _MEMBERS = 2, 1_000


def tree_of_calls(view: RunView) -> str:
    """The whole tree, nested; empty where there are no sub-calls."""
    return parts().tree(list(_lines(view))) if len(view.tree) > 1 else ""


def _lines(view: RunView) -> Iterator[dict[str, Any]]:
    """The lines of the tree; one with only `left` (how many members are not listed) closes a nested line."""
    stack: list[Node | Fold | int] = [view.tree.root]
    while stack:
        item = stack.pop()
        if isinstance(item, int):
            yield {"left": f"{item:,}" if item else ""}
            continue
        below = list(item.members[:_MEMBERS]) if isinstance(item, Fold) else folded(view.tree, item.node, FOLD)
        name, _, rest = head(view.tree, item).partition(" ")
        line = {"state": status(item), "nested": bool(below), "opened": False, "link": "", "name": "", "title": ""}
        if isinstance(item, Fold):
            yield {**line, "text": f"{name} {rest}"}
        else:
            link = view.prefix.text + "steps" if item.node == ROOT else view.prefix.node(item.node)
            title = "" if item.node == ROOT else item.title
            opened = item.depth < _OPEN
            yield {**line, "text": rest, "name": name, "link": link, "title": title, "opened": opened}
        if below:
            stack += [len(item.members) - len(below) if isinstance(item, Fold) else 0, *reversed(below)]


def call_list(view: RunView, node: str, turn: int, steps: Callable[[str], Markup]) -> str:
    """The sub-calls of one turn: what was asked, what came back, and the steps of sub-agents."""
    calls = view.asked_in.get((node, turn), ())
    if not calls:
        return ""
    failed = sum(call.ok is False for call in calls)
    items = [_call(view, call, steps) for call in calls]
    return parts().calls(plural(len(calls), "sub-call"), failed, len(calls) <= FOLD, items)


def _call(view: RunView, call: Node, steps: Callable[[str], Markup]) -> str:
    block, body = parts().block, list[str]()
    if (asked := view.asked.get(call.node)) is not None:
        body.append(block("Asked", plain_text(asked, view.limit), "code"))
    if call.kind == "agent" or view.tree.children(call.node):
        body.append(parts().steps(steps(call.node), " inner"))
    if call.kind != "agent" and call.node in view.answers:
        body.append(block("Answer", plain_text(view.answers[call.node], view.limit), "output"))
    if call.error:
        body.append(block("Error", plain_text(call.error, view.limit), "error"))
    return parts().call(view.prefix.node(call.node), status(call), head(view.tree, call), call.title, body)
