"""Recursion: `llm_query` is a tool whose body is a model call, or the loop again; the loop knows nothing of it.

The root is depth 0.  A query made at depth d runs at depth d + 1: as an agent with a REPL of its own while
d + 1 < max_depth, as one plain completion where d + 1 == max_depth, and beyond that as `SubCalls.beyond` says.
"""

from rlm_loop.agents.meter import Meter
from rlm_loop.agents.recursion.asking import FALLBACK, SubcallRunner
from rlm_loop.agents.recursion.query_tools import query_tools
from rlm_loop.agents.recursion.settings import DepthExceeded, Recursion, SubCallError, Tree

__all__ = [
    "FALLBACK",
    "DepthExceeded",
    "Meter",
    "Recursion",
    "SubCallError",
    "SubcallRunner",
    "Tree",
    "query_tools",
]
