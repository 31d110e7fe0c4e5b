"""The sub-calls of a run as they happen, told by its hooks: how many, how they ended, what they cost so far."""

from __future__ import annotations

import threading
from dataclasses import replace

from rlm_loop.accounting.tree import Node, TraceTree, summed
from rlm_loop.messages import Usage


class SubCalls:
    """Collects the sub-calls of one turn of the root.  Hooks call it from the threads of the sub-calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nodes: dict[str, Node] = {}

    def start(self, node: str, kind: str, model: str | None, turn: int, prompt: str) -> None:
        """A sub-call began in that turn of the root."""
        title = " ".join(prompt[:200].split())[:80]
        with self._lock:
            self._nodes[node] = Node(node, node.rpartition(".")[0], kind, model, turn, title=title)

    def end(self, node: str, ok: bool, error: str | None, seconds: float, usage: Usage) -> None:
        """A sub-call ended; `usage` is that of its whole subtree, so that what its children spent is taken off."""
        with self._lock:
            known = self._nodes.get(node)
            if known is None:  # it began in an earlier turn
                return
            below = [n for path, n in self._nodes.items() if path.startswith(node + ".")]
            own = usage - summed(below)
            self._nodes[node] = replace(known, ok=ok, error=error, seconds=seconds, own=own)

    @property
    def agents(self) -> bool:
        """Whether a sub-agent is at work: the steps that happen now are its."""
        with self._lock:
            return any(n.kind == "agent" and n.ok is None for n in self._nodes.values())

    def __contains__(self, node: str) -> bool:
        return node in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def line(self) -> str:
        """How things stand, in a few words."""
        with self._lock:
            nodes = list(self._nodes.values())
        failed = sum(n.ok is False for n in nodes)
        going = sum(n.ok is None for n in nodes)
        spent = summed([n for n in nodes if n.ok is not None])
        counts = [f"{len(nodes) - failed - going} done", f"{going} running"] + [f"{failed} failed"] * bool(failed)
        known = spent.total_tokens
        return f"sub-calls: {', '.join(counts)}" + (f", {known:,} tokens" if known is not None else "")

    def taken(self) -> TraceTree:
        """The tree of the turn's sub-calls under a root without figures; the next turn begins anew."""
        with self._lock:
            nodes, self._nodes = list(self._nodes.values()), {}
        return TraceTree.of((Node("0", None, "agent"), *nodes))
