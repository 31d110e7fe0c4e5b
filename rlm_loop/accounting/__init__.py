"""The limits of a run and its cost: budget, ledger, attribution of tokens to causes, prices, the tree of calls."""

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

_MODULES = {
    "attribution": ("Part",),
    "budget": ("Account", "Budget", "BudgetSpent", "UnknownPrice"),
    "ledger": ("Ledger",),
    "prices": ("Price", "known_price"),
    "scope": ("Cancelled", "Scope", "call_scope", "cell_scope"),
    "tree": ("TraceTree", "read_tree", "tree_of"),
}

__all__ = ["Account", "Budget", "BudgetSpent", "Cancelled", "Ledger", "Part", "Price", "Scope", "TraceTree"]
__all__ += ["UnknownPrice", "call_scope", "cell_scope", "known_price", "read_tree", "tree_of"]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"rlm_loop.accounting.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
