"""A tree as lines, with long runs of siblings alike folded into one: a batch of 200 stays readable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from rlm_loop.accounting.amounts import counted, shortened
from rlm_loop.accounting.tree.nodes import Node, TraceTree
from rlm_loop.messages import Usage

#: Runs of more siblings than this are one line.
FOLD = 8
#: How many members of a folded run are shown for themselves: the first that failed, and the dearest with children.
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
    def going(self) -> int:
        """How many have not ended."""
        return sum(n.ok is None for n in self.members)


@dataclass(frozen=True)
class Line:
    """One line of the tree: its text with the branches drawn in front, and what it says about success."""

    text: str
    status: Status


def folded(tree: TraceTree, node: str, fold: int = FOLD) -> list[Node | Fold]:
    """The children of a node in order, runs of more than `fold` alike as a `Fold`; 0 never folds."""
    items: list[Node | Fold] = []
    for _, run in groupby(tree.children(node), key=_alike):
        members = tuple(run)
        if fold and len(members) > fold:
            items.append(Fold(members, _worth_a_line(tree, members), _total(tree, members)))
        else:
            items += members
    return items


def _alike(node: Node) -> tuple[object, ...]:
    return (node.batch,) if node.batch else (None, node.kind, node.model, node.turn)


def _worth_a_line(tree: TraceTree, members: Sequence[Node]) -> tuple[Node, ...]:
    failed = [n for n in members if n.ok is False][:SHOWN]
    deep = [n for n in members if tree.children(n.node)]
    dear = sorted(deep, key=lambda n: -(tree.total(n.node).total_tokens or 0))[:SHOWN]
    chosen = {n.node for n in (*failed, *dear)}
    return tuple(n for n in members if n.node in chosen)


def _total(tree: TraceTree, members: Sequence[Node]) -> Usage:
    return sum((tree.total(n.node) for n in members), Usage.nothing())


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
    """Whether all went well, something failed, or something has not ended."""
    if isinstance(item, Fold):
        return "failed" if item.failed else "open" if item.going else "ok"
    return "open" if item.ok is None else "ok" if item.ok else "failed"


def head(tree: TraceTree, item: Node | Fold) -> str:
    """What a line says: who, asked when, for how much, and how it ended."""
    return _fold_head(item) if isinstance(item, Fold) else _node_head(tree, item)


def _node_head(tree: TraceTree, node: Node) -> str:
    said = [f"{node.node} {node.kind}" + (f" {node.model}" if node.model else "")]
    if node.turn:
        said.append(f"turn {node.turn}")
    if node.steps:
        said.append(_many(node.steps, "turn") + (" of its own" if node.parent else ""))
    children = tree.size(node.node) - 1
    if children:
        said.append(f"{_many(children, 'call')} below")
        said.append(f"{counted(tree.total(node.node))} in all, {counted(node.own)} itself")
    elif node.own.calls:
        said.append(counted(node.own))
    if node.seconds is not None:
        said.append(f"{node.seconds:.1f} s")
    said.append(_ending(node))
    return " · ".join(part for part in said if part)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _ending(node: Node) -> str:
    if node.ok is None:
        return "not ended"
    if node.ok:
        return node.stop if node.stop and node.stop != "answered" else ""
    return "failed" + (f": {shortened(node.error, 120)}" if node.error else f": {node.stop}" if node.stop else "")


def _fold_head(item: Fold) -> str:
    first, last = item.members[0], item.members[-1]
    kinds = {n.kind: sum(m.kind == n.kind for m in item.members) for n in item.members}
    what = ", ".join(f"{count} {kind}{'' if kind in ('cached', 'denied') else 's'}" for kind, count in kinds.items())
    models = sorted({n.model for n in item.members if n.model})
    said = [f"{first.node} … {last.node} {what}" + (f" {', '.join(models)}" if models else "")]
    if first.batch:
        said.append(f"batch {first.batch}")
    if first.turn:
        said.append(f"turn {first.turn}")
    done = len(item.members) - item.failed - item.going
    counts = [f"{done} ok"] * bool(done) + [f"{item.failed} failed"] * bool(item.failed)
    said.append(", ".join([*counts, *([f"{item.going} not ended"] if item.going else [])]))
    if item.total.calls:
        said.append(counted(item.total))
    seconds = sorted(n.seconds for n in item.members if n.seconds is not None)
    if seconds:
        said.append(f"{seconds[len(seconds) // 2]:.1f} s each (median; longest {seconds[-1]:.1f} s)")
    return " · ".join(said)


def tree_text(tree: TraceTree, fold: int | None = None) -> str:
    """See `TraceTree.text`."""
    return "\n".join(line.text for line in lines(tree, FOLD if fold is None else fold))
