"""A node of the call tree, and the tree with its sums: values, computed once from a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rlm_loop.messages import Usage
from rlm_loop.traces.display import drawing

if TYPE_CHECKING:
    import pandas as pd

ROOT = "0"


@dataclass(frozen=True)
class Node:
    """One caller of models: the root run, a sub-agent, or a single sub-call.

    `node` is its path ("0" is the root, "0.3" the third sub-call that the root started), `turn` the turn of the
    parent that asked (1-based, `None` for the root).  `kind` is `agent`, `completion`, `cached` (an answer had
    before, no call), `fallback` (a fixed text beyond the depth limit) or `denied` (refused, an error for the cell).
    `own` is the usage of the node's own model calls, without its children; `None` figures are not known.
    `seconds` is the node's wall time with its subtree (`None` as long as it has not ended), `model_seconds` the sum
    over its own model calls.  `ok` is `None` for a node that never ended.  `title` is the beginning of what it was
    asked, where the trace holds it.
    """

    node: str
    parent: str | None = None
    kind: str = "completion"
    model: str | None = None
    turn: int | None = None
    batch: str | None = None
    index: int | None = None
    own: Usage = field(default_factory=Usage.nothing)
    seconds: float | None = None
    model_seconds: float = 0.0
    ok: bool | None = None
    error: str | None = None
    stop: str | None = None
    steps: int = 0
    title: str = ""

    @property
    def depth(self) -> int:
        return self.node.count(".")


@dataclass(frozen=True)
class DepthTotal:
    """All nodes of one depth: how many, how many failed, and their own usage and model time in sum."""

    depth: int
    nodes: int
    failed: int
    own: Usage
    model_seconds: float


#: The columns of `TraceTree.frame`.
COLUMNS = (
    *("node", "parent", "depth", "kind", "model", "turn", "batch", "index", "steps"),
    *("calls", "input_tokens", "output_tokens", "cost"),
    *("subtree_nodes", "subtree_calls", "subtree_input_tokens", "subtree_output_tokens", "subtree_cost"),
    *("seconds", "model_seconds", "ok", "stop", "error", "title"),
)


@dataclass(frozen=True)
class TraceTree:
    """All nodes of a run, each parent before its children, siblings in the order in which they were started."""

    nodes: tuple[Node, ...]

    def __getitem__(self, node: str) -> Node:
        return self._by_path[node]

    def __contains__(self, node: object) -> bool:
        return node in self._by_path

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def _by_path(self) -> Mapping[str, Node]:
        return {n.node: n for n in self.nodes}

    @cached_property
    def _children(self) -> Mapping[str | None, tuple[Node, ...]]:
        found: dict[str | None, list[Node]] = {}
        for node in self.nodes:
            found.setdefault(node.parent, []).append(node)
        return {parent: tuple(nodes) for parent, nodes in found.items()}

    @cached_property
    def _totals(self) -> Mapping[str, tuple[Usage, int]]:
        """Usage and number of nodes of every subtree, from the leaves up."""
        totals: dict[str, tuple[Usage, int]] = {}
        for node in reversed(self.nodes):
            usage, count = node.own, 1
            for child in self.children(node.node):
                usage, count = usage + totals[child.node][0], count + totals[child.node][1]
            totals[node.node] = usage, count
        return totals

    @property
    def root(self) -> Node:
        return self.nodes[0]

    def children(self, node: str) -> tuple[Node, ...]:
        """The sub-calls that a node started, in order."""
        return self._children.get(node, ())

    def total(self, node: str = ROOT) -> Usage:
        """The usage of a node and everything below it; of the whole run by default."""
        return self._totals[node][0]

    def size(self, node: str = ROOT) -> int:
        """How many nodes a subtree has, its own root included."""
        return self._totals[node][1]

    def by_depth(self) -> list[DepthTotal]:
        """What each depth cost: the sum over depths is the whole run."""
        by: dict[int, list[Node]] = {}
        for node in self.nodes:
            by.setdefault(node.depth, []).append(node)
        return [
            DepthTotal(
                depth, len(here), sum(n.ok is False for n in here), summed(here), sum(n.model_seconds for n in here)
            )
            for depth, here in sorted(by.items())
        ]

    def rows(self) -> list[dict[str, Any]]:
        """One plain row per node, with the columns of `frame`."""
        return [self._row(node) for node in self.nodes]

    def _row(self, node: Node) -> dict[str, Any]:
        below, count = self._totals[node.node]
        figures = {
            **vars(node),
            "depth": node.depth,
            "calls": node.own.calls,
            "input_tokens": node.own.input_tokens,
            "output_tokens": node.own.output_tokens,
            "cost": node.own.cost,
            "subtree_nodes": count,
            "subtree_calls": below.calls,
            "subtree_input_tokens": below.input_tokens,
            "subtree_output_tokens": below.output_tokens,
            "subtree_cost": below.cost,
        }
        return {name: figures[name] for name in COLUMNS}

    def frame(self) -> pd.DataFrame:
        """A tidy frame, one row per node: `input_tokens` and the like are the node's own, `subtree_...` with all below.

        The sum of `input_tokens` is the run's.  `seconds` is wall time, which for concurrent siblings does not add up.
        """
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=list(COLUMNS))

    def text(self, *, fold: int | None = None) -> str:
        """The tree as lines; runs of more than `fold` siblings alike are one line (8 by default, 0 never folds)."""
        return drawing("rlm_loop.accounting.tree.fold.tree_text")(self, fold)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        depth = max(n.depth for n in self.nodes)
        return f"<TraceTree of {len(self.nodes)} nodes, depth {depth}, {self.total().calls} calls>"

    def _repr_html_(self) -> str:
        return drawing("rlm_loop.report.notebook.html.tree_html")(self)


def summed(nodes: Iterable[Node]) -> Usage:
    """The own usage of some nodes in sum."""
    return sum((n.own for n in nodes), Usage.nothing())
