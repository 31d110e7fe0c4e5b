"""The call tree of a run: who asked whom, and what each node and its subtree cost (`tree_of`)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rlm_loop.messages import Usage
from rlm_loop.traces.reader import RunRecord, whole
from rlm_loop.traces.values import drawing

ROOT = "0"
_TITLE = 80  # characters


@dataclass(frozen=True)
class Node:
    """A caller of models: the root run, a sub-agent, or a single sub-call.

    `node` is its path ("0" is the root, "0.3" the third sub-call that the root started), `turn` the turn of the
    parent that asked (1-based, `None` for the root).  `kind` is `agent`, `completion` or `denied` (refused, an error
    for the cell).  `own` is the usage of the node's own model calls, without its children; `None` figures are not
    known.  `seconds` is the node's wall time with its subtree (`None` as long as it has not ended).  `ok` is `None`
    for a node that never ended.  `title` is the beginning of its question, where the trace holds it.
    """

    node: str
    kind: str = "completion"
    model: str | None = None
    turn: int | None = None
    batch: str | None = None
    own: Usage = Usage.NOTHING
    seconds: float | None = None
    ok: bool | None = None
    error: str | None = None
    stop: str | None = None
    steps: int = 0
    title: str = ""

    @property
    def parent(self) -> str | None:
        return self.node.rpartition(".")[0] or None


@dataclass(frozen=True, repr=False)
class TraceTree:
    """All nodes of a run, each parent before its children, siblings in the order in which they were started."""

    nodes: tuple[Node, ...]

    @cached_property
    def subtrees(self) -> Mapping[str, list[Node]]:
        """Each path with its node and all below it."""
        subtrees: dict[str, list[Node]] = {}
        for node in self.nodes:
            for path in itertools.accumulate(node.node.split("."), "{}.{}".format):
                subtrees.setdefault(path, []).append(node)
        return subtrees

    def children(self, node: str) -> tuple[Node, ...]:
        """Return the sub-calls that a node started, in order."""
        return tuple(child for child in self.subtrees.get(node, ()) if child.parent == node)

    def total(self, node: str = ROOT) -> Usage:
        """Return the usage of a node and everything below it; of the whole run by default."""
        return sum((n.own for n in self.subtrees[node]), Usage.NOTHING)

    def text(self) -> str:
        """Return the tree as lines; a run of more than 8 siblings alike is one line."""
        return drawing("rlm_loop.report.call_tree.tree_text")(self)

    __str__ = __repr__ = text

    def _repr_html_(self) -> str:
        return drawing("rlm_loop.report.notebook.html.tree_html")(self)


def sort_key(node: str) -> tuple[int, ...]:
    """Return the sort key of a path that puts parents before children and siblings in order."""
    return tuple(int(part) for part in node.split("."))


def node_of(event: Mapping[str, Any]) -> str:
    """Return the path of the node that an event belongs to; events about the whole run are the root's."""
    return str(event.get("node", ROOT))


def tree_of(record: RunRecord) -> TraceTree:
    """Return the call tree of a recorded run.  Raises `TraceError` for a damaged event."""
    nodes: dict[str, Node] = {}
    titles: dict[str, str] = {}
    for event in record.events:
        with whole(event):
            node = nodes.get(node_of(event)) or Node(node_of(event))
            if changes := _changes(event, node, titles):
                nodes[node.node] = replace(node, **changes)
    ordered = sorted(nodes.values(), key=lambda node: sort_key(node.node))
    return TraceTree(tuple(ordered))


def _changes(event: Mapping[str, Any], node: Node, titles: dict[str, str]) -> dict[str, Any]:
    """Return the fields of a node that an event states; `titles` are the questions by the hash of their message."""
    match event["event"]:
        case "run_start":
            return {"kind": "agent", "model": event.get("model"), "title": shortened(event.get("question"), _TITLE)}
        case "message" if event["message"]["role"] == "user":
            texts = (span["text"] for span in event["message"]["spans"] if span["cause"] == "task")
            titles[event["hash"]] = shortened(next(texts, ""), _TITLE)
        case "subcall_start":
            stated = {name: event.get(name) for name in ("model", "turn", "batch")}
            return {**stated, "kind": event.get("kind") or node.kind}
        case "subcall_end":
            error = event.get("error")
            if isinstance(error, Mapping):
                error = f"{error.get('kind', 'error')}: {error.get('message', '')}"
            return {"seconds": event.get("seconds"), "stop": event.get("stop"), "ok": bool(event["ok"]), "error": error}
        case "request":
            asked = (title for key in event["added"] if (title := titles.get(key)))
            return {"model": event.get("model") or node.model, "title": node.title or next(asked, "")}
        case "reply":
            usage = event["reply"].get("usage")
            return {"own": node.own + (Usage() if usage is None else Usage.of(usage))}
        case "model_error":  # with a number it was written off: a call of unknown tokens
            spent = Usage() if "call" in event else Usage.NOTHING
            return {"error": str(event.get("error", "")), "own": node.own + spent}
        case "turn":
            return {"steps": node.steps + 1}
        case "run_end" if node.node == ROOT:
            stop, reason = str(event.get("stop", "")), str(event.get("reason", ""))
            error = reason if stop in ("failed", "interrupted") else None
            return {"ok": stop == "answered", "stop": stop, "seconds": event.get("seconds"), "error": error}
        case _:
            pass
    return {}


def shortened(text: Any, most: int) -> str:
    """Return a text in one line of at most so many characters; "" for what is no text."""
    line = " ".join(text[: 4 * most].split()) if isinstance(text, str) else ""
    return line if len(line) <= most else f"{line[: most - 1]}…"
