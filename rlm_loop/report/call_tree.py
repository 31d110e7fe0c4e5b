"""A call tree as lines, with long runs of siblings alike folded into one: a batch of 200 stays readable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from rlm_loop.accounting.tree import Node, TraceTree, shortened
from rlm_loop.messages import Usage
from rlm_loop.report.notebook.formatting import counted, plural

#: Runs of more siblings than this are one line.
FOLD = 8
#: Members of a folded run with lines of their own: the first that failed, and the dearest with children.
SHOWN = 3

Status = Literal["ok", "failed", "open"]


@dataclass(frozen=True)
class Fold:
    """Siblings of one batch (or, outside batches, alike in kind, model and turn) that are shown as one line.

    `shown` are the members that deserve lines of their own.
    """

    members: tuple[Node, ...]
    shown: tuple[Node, ...]
    total: Usage

    @property
    def failed(self) -> int:
        return sum(n.ok is False for n in self.members)

    @property
    def open(self) -> int:
        """The number of members that have not ended."""
        return sum(n.ok is None for n in self.members)


@dataclass(frozen=True)
class Line:
    """One line of the tree: its text with the branches drawn in front, and its status."""

    text: str
    status: Status


def folded(tree: TraceTree, node: str, fold: int = FOLD) -> list[Node | Fold]:
    """The children of a node in order, runs of more than `fold` alike as a `Fold`; 0 never folds."""
    items: list[Node | Fold] = []
    for _, run in groupby(tree.children(node), key=_alike):
        members = tuple(run)
        if not fold or len(members) <= fold:
            items += members
            continue
        failed = [n for n in members if n.ok is False]
        deep = sorted(filter(lambda n: tree.children(n.node), members), key=lambda n: -_tokens(tree, n))
        chosen = {n.node for n in (*failed[:SHOWN], *deep[:SHOWN])}
        total = sum((tree.total(n.node) for n in members), Usage.nothing())
        items.append(Fold(members, tuple(n for n in members if n.node in chosen), total))
    return items


def _alike(node: Node) -> tuple[object, ...]:
    return (node.batch,) if node.batch else (None, node.kind, node.model, node.turn)


def _tokens(tree: TraceTree, node: Node) -> int:
    return tree.total(node.node).total_tokens or 0


def lines(tree: TraceTree, fold: int = FOLD) -> Iterator[Line]:
    """The lines of a tree, root first."""
    stack: list[tuple[Node | Fold, str, str]] = [(tree.root, "", "")]
    while stack:
        item, branch, indent = stack.pop()
        yield Line(branch + head(tree, item), status(item))
        below = item.shown if isinstance(item, Fold) else folded(tree, item.node, fold)
        for number, child in reversed(list(enumerate(below))):
            last = number == len(below) - 1
            stack.append((child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  ")))


def status(item: Node | Fold) -> Status:
    """Return "failed" where something failed, "open" where something has not ended, else "ok"."""
    if isinstance(item, Fold):
        return "failed" if item.failed else "open" if item.open else "ok"
    return "open" if item.ok is None else "ok" if item.ok else "failed"


def head(tree: TraceTree, item: Node | Fold) -> str:
    """The text of a line: caller, turn, cost, and how it ended."""
    parts = _fold_parts(item) if isinstance(item, Fold) else _node_parts(tree, item)
    return " · ".join(part for part in parts if part)


def _node_parts(tree: TraceTree, node: Node) -> Iterator[str]:
    yield " ".join(filter(None, (node.node, node.kind, node.model)))
    if node.turn:
        yield f"turn {node.turn}"
    if node.steps:
        yield plural(node.steps, "turn") + (" of its own" if node.parent else "")
    if children := tree.size(node.node) - 1:
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


def _fold_parts(item: Fold) -> Iterator[str]:
    first, last = item.members[0], item.members[-1]
    kinds = Counter(n.kind for n in item.members)
    called = ", ".join(f"{count} {kind}{'' if kind in ('cached', 'denied') else 's'}" for kind, count in kinds.items())
    models = sorted({n.model for n in item.members if n.model})
    yield f"{first.node} … {last.node} {called} {', '.join(models)}".rstrip()
    if first.batch:
        yield f"batch {first.batch}"
    if first.turn:
        yield f"turn {first.turn}"
    done = len(item.members) - item.failed - item.open
    counts = {"ok": done, "failed": item.failed, "not ended": item.open}
    yield ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    if item.total.calls:
        yield counted(item.total)
    if seconds := sorted(n.seconds for n in item.members if n.seconds is not None):
        yield f"{seconds[len(seconds) // 2]:.1f} s each (median; longest {seconds[-1]:.1f} s)"


def tree_text(tree: TraceTree, fold: int | None = None) -> str:
    """The text of `TraceTree.text`."""
    return "\n".join(line.text for line in lines(tree, FOLD if fold is None else fold))
