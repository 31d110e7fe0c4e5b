"""The limits of a run and its cost: budget, ledger, attribution of tokens to causes, prices, the tree of calls."""

from rlm_loop.accounting.attribution import Part
from rlm_loop.accounting.budget import Account, Budget, BudgetSpent, UnknownPrice
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.accounting.prices import Price, known_price
from rlm_loop.accounting.scope import Cancelled, Scope, call_scope, cell_scope
from rlm_loop.accounting.tree import TraceTree, tree_of

__all__ = ["Account", "Budget", "BudgetSpent", "Cancelled", "Ledger", "Part", "Price", "Scope"]
__all__ += ["TraceTree", "UnknownPrice", "call_scope", "cell_scope", "known_price", "tree_of"]
