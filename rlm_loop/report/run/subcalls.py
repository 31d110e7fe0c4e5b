"""The tree of sub-calls, each line a link to where the call is shown; and the calls that one turn made."""

from __future__ import annotations

from collections.abc import Callable

from rlm_loop.accounting.tree import FOLD, Fold, Node, folded
from rlm_loop.accounting.tree.fold import head, status
from rlm_loop.accounting.tree.nodes import ROOT
from rlm_loop.report.run.marked import plain_text, safe
from rlm_loop.report.run.view import RunView

#: Depth up to which the tree is open at first, and nodes of one fold that are listed.
_OPEN, _MEMBERS = 2, 1_000
_SIGN = {"ok": "✓", "failed": "✗", "open": "…"}
_WORD = {"ok": "ended well", "failed": "failed", "open": "not ended"}


def tree_of_calls(view: RunView) -> str:
    """The whole tree, nested; empty where there are no sub-calls."""
    tree = view.tree
    if len(tree) < 2:
        return ""
    parts: list[str] = []
    stack: list[Node | Fold | str] = [tree.root]
    while stack:
        item = stack.pop()
        if isinstance(item, str):  # what closes a node whose children are done
            parts.append(item)
            continue
        below = list(item.members[:_MEMBERS]) if isinstance(item, Fold) else folded(tree, item.node, FOLD)
        line = _line(view, item)
        if not below:
            parts.append(f"<li>{line}</li>")
            continue
        depth = item.members[0].depth if isinstance(item, Fold) else item.depth
        opened = " open" if depth < _OPEN and not isinstance(item, Fold) else ""
        left = len(item.members) - len(below) if isinstance(item, Fold) else 0
        parts.append(f"<li><details{opened}><summary>{line}</summary><ul>")
        stack += [f"{f'<li>and {left:,} more</li>' if left else ''}</ul></details></li>", *reversed(below)]
    return f'<ul class="tree">{"".join(parts)}</ul>'


def _line(view: RunView, item: Node | Fold) -> str:
    state = status(item)
    text = f'<span class="{state}" title="{_WORD[state]}">{_SIGN[state]}</span> '
    said = safe(head(view.tree, item))
    if isinstance(item, Fold):
        return text + said
    name, _, rest = said.partition(" ")
    link = view.prefix.text + "steps" if item.node == ROOT else view.prefix.node(item.node)
    asked = f'<div class="asked">{safe(item.title)}</div>' if item.title and item.node != ROOT else ""
    return f'{text}<a href="#{link}">{name}</a> {rest}{asked}'


def call_list(view: RunView, node: str, turn: int, steps: Callable[[str], str]) -> str:
    """The sub-calls of one turn: what was asked, what came back, and the steps of sub-agents."""
    calls = view.asked_in.get((node, turn), ())
    if not calls:
        return ""
    items = "".join(_call(view, call, steps) for call in calls)
    failed = sum(call.ok is False for call in calls)
    bad = f', <span class="failed">{failed} failed</span>' if failed else ""
    plural = "" if len(calls) == 1 else "s"
    opened = " open" if len(calls) <= FOLD else ""
    return (
        f'<details class="calls"{opened}><summary>{len(calls):,} sub-call{plural}{bad}</summary>'
        f"<ol>{items}</ol></details>"
    )


def _call(view: RunView, call: Node, steps: Callable[[str], str]) -> str:
    state = status(call)
    asked = view.asked.get(call.node)
    body: list[str] = []
    if asked is not None:
        body.append(f'<div class="block code"><h4>Asked</h4><pre>{plain_text(asked, view.limit)}</pre></div>')
    if call.kind == "agent" or view.tree.children(call.node):
        body.append(f'<ol class="steps inner">{steps(call.node)}</ol>')
    if call.kind != "agent" and call.node in view.answers:
        answer = plain_text(view.answers[call.node], view.limit)
        body.append(f'<div class="block output"><h4>Answer</h4><pre>{answer}</pre></div>')
    if call.error:
        body.append(f'<div class="block error"><h4>Error</h4><pre>{plain_text(call.error, view.limit)}</pre></div>')
    return (
        f'<li id="{view.prefix.node(call.node)}"><details class="call"><summary>'
        f'<span class="{state}" title="{_WORD[state]}">{_SIGN[state]}</span> {safe(head(view.tree, call))}'
        f'<span class="asked">{safe(call.title)}</span></summary>{"".join(body)}</details></li>'
    )
