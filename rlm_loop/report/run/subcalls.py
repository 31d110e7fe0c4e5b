"""The sub-calls that one turn made."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from rlm_loop.accounting.tree import Node
from rlm_loop.report.call_tree import FOLD, head, status
from rlm_loop.report.notebook.formatting import plural
from rlm_loop.report.run.marked import parts, plain_text
from rlm_loop.report.run.view import RunView


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
