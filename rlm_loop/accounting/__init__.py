"""What a run may spend and what it cost: budget, ledger, attribution of tokens to causes, prices, the tree of calls."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlm_loop.accounting.attribution import Part
    from rlm_loop.accounting.budget import Account, Budget, BudgetSpent, UnknownPrice
    from rlm_loop.accounting.ledger import Ledger
    from rlm_loop.accounting.prices import Price, known_price
    from rlm_loop.accounting.scope import Cancelled, Scope, call_scope, cell_scope
    from rlm_loop.accounting.tree import TraceTree, read_tree, tree_of

_WHERE = {
    **dict.fromkeys(("Account", "Budget", "BudgetSpent", "UnknownPrice"), "budget"),
    **dict.fromkeys(("Cancelled", "Scope", "call_scope", "cell_scope"), "scope"),
    **dict.fromkeys(("Price", "known_price"), "prices"),
    **dict.fromkeys(("TraceTree", "read_tree", "tree_of"), "tree"),
    "Ledger": "ledger",
    "Part": "attribution",
}

__all__ = [
    "Account",
    "Budget",
    "BudgetSpent",
    "Cancelled",
    "Ledger",
    "Part",
    "Price",
    "Scope",
    "TraceTree",
    "UnknownPrice",
    "call_scope",
    "cell_scope",
    "known_price",
    "read_tree",
    "tree_of",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rlm_loop.accounting.{_WHERE[name]}"), name)
