"""A call tree as lines, with long runs of siblings alike folded into one: a batch of 200 stays readable."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Literal

from rlm_loop.accounting.tree import Node, TraceTree, shortened
from rlm_loop.messages import Usage
from rlm_loop.report.notebook.formatting import counted, plural

#: Runs of more siblings than this are one line.
FOLD = 8
#: Members of a folded run with lines of their own, those that failed.
SHOWN = 3

Status = Literal["ok", "failed", "open"]
Fold = tuple[Node, ...]
"""Siblings of one batch (or, outside batches, alike in kind, model and turn) that are shown as one line."""


def lines(tree: TraceTree) -> Iterator[tuple[str, Status]]:
    """The lines of a tree, root first, each with its branches drawn in front and with its status."""
    stack: list[tuple[Node | Fold, str, str]] = [(tree.nodes[0], "", "")]
    while stack:
        item, branch, indent = stack.pop()
        yield branch + head(tree, item), status(item)
        below = [n for n in item if n.ok is False][:SHOWN] if isinstance(item, tuple) else _folded(tree, item)
        for number, child in reversed(list(enumerate(below))):
            last = number == len(below) - 1
            stack.append((child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  ")))


def _folded(tree: TraceTree, node: Node) -> list[Node | Fold]:
    items: list[Node | Fold] = []
    alike = groupby(tree.children(node.node), key=lambda n: (n.batch,) if n.batch else (None, n.kind, n.model, n.turn))
    for members in (tuple(run) for _, run in alike):
        items += [members] if len(members) > FOLD else members
    return items


def status(item: Node | Fold) -> Status:
    """Return "failed" where something failed, "open" where something has not ended, else "ok"."""
    ends = [node.ok for node in (item if isinstance(item, tuple) else [item])]
    return "failed" if False in ends else "open" if None in ends else "ok"


def head(tree: TraceTree, item: Node | Fold) -> str:
    """The text of a line: caller, turn, cost, and how it ended."""
    return " · ".join(filter(None, _fold_parts(tree, item) if isinstance(item, tuple) else _node_parts(tree, item)))


def _node_parts(tree: TraceTree, node: Node) -> Iterator[str]:
    yield " ".join(filter(None, (node.node, node.kind, node.model)))
    if node.turn:
        yield f"turn {node.turn}"
    if node.steps:
        yield plural(node.steps, "turn") + (" of its own" if node.parent else "")
    if children := len(tree.subtrees[node.node]) - 1:
        yield f"{plural(children, 'call')} below"
        yield f"{counted(tree.total(node.node))} in all, {counted(node.own)} itself"
    elif node.own.calls:
        yield counted(node.own)
    if node.seconds is not None:
        yield f"{node.seconds:.1f} s"
    if node.ok is None:
        yield "not ended"
    elif node.ok:
        yield "" if node.stop == "answered" else node.stop or ""
    else:
        reason = shortened(node.error, 120) if node.error else node.stop
        yield f"failed: {reason}" if reason else "failed"


def _fold_parts(tree: TraceTree, members: Fold) -> Iterator[str]:
    first, ends = members[0], [n.ok for n in members]
    kind = first.kind if len({n.kind for n in members}) == 1 else "call"
    yield f"{first.node} … {members[-1].node} {plural(len(members), kind)}"
    if first.batch:
        yield f"batch {first.batch}"
    if first.turn:
        yield f"turn {first.turn}"
    counts = {"ok": ends.count(True), "failed": ends.count(False), "not ended": ends.count(None)}
    yield ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    yield counted(sum((tree.total(n.node) for n in members), Usage.NOTHING))


def tree_text(tree: TraceTree) -> str:
    """The text of `TraceTree.text`."""
    return "\n".join(text for text, _ in lines(tree))
