"""The call tree of a run: who asked whom, and what each node and its subtree cost.

>>> from rlm_loop.accounting.tree import read_tree                                        # doctest: +SKIP
>>> read_tree("run.jsonl")            # a notebook shows the tree, print() its text    # doctest: +SKIP
>>> read_tree("run.jsonl").frame()    # one row per node                               # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.accounting.tree.build import TreeBuilder, read_tree, tree_of, tree_of_calls
from rlm_loop.accounting.tree.fold import FOLD, Fold, Line, folded, lines
from rlm_loop.accounting.tree.nodes import DepthTotal, Node, TraceTree, summed

__all__ = [
    "FOLD",
    "DepthTotal",
    "Fold",
    "Line",
    "Node",
    "TraceTree",
    "TreeBuilder",
    "folded",
    "lines",
    "read_tree",
    "summed",
    "tree_of",
    "tree_of_calls",
]
