"""The call tree read out of a trace's events, all at once or as they happen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlm_loop.accounting.amounts import shortened
from rlm_loop.accounting.ledger import Call
from rlm_loop.accounting.tree.nodes import ROOT, Node, TraceTree
from rlm_loop.messages import Usage
from rlm_loop.traces.reader import RunRecord, read, whole
from rlm_loop.traces.runs import Run

_TITLE = 80


def read_tree(path: str | Path, *, run: Run = None) -> TraceTree:
    """The call tree of one run of a trace file (the last by default).  Raises `TraceError` as `read` does."""
    return tree_of(read(path, run=run))


def tree_of(record: RunRecord) -> TraceTree:
    """The call tree of a recorded run.  Raises `TraceError` for a damaged event."""
    builder = TreeBuilder()
    for event in record.events:
        with whole(event):
            builder.add(event)
    return builder.tree()


def tree_of_calls(calls: Iterable[Call]) -> TraceTree:
    """The tree as the ledger of an outcome knows it: who called a model, and for how much.

    Sub-calls that reached no model (cached, refused) and how each ended are only in the trace.
    """
    nodes: dict[str, Node] = {ROOT: Node(ROOT, None, "agent", ok=True)}
    for call in calls:
        path = str(getattr(call, "node", ROOT))
        parts = path.split(".")
        for end in range(1, len(parts) + 1):  # a sub-agent may have children in the ledger before itself
            here = ".".join(parts[:end])
            nodes.setdefault(here, Node(here, here.rpartition(".")[0] or None, ok=True))
        node = nodes[path]
        nodes[path] = replace(
            node,
            kind="agent" if call.turn else node.kind,
            own=node.own + call.usage,
            model_seconds=node.model_seconds + call.seconds,
            steps=node.steps + bool(call.turn),
        )
    return _tree(nodes)


def _tree(nodes: Mapping[str, Node]) -> TraceTree:
    return TraceTree(tuple(sorted(nodes.values(), key=lambda n: place(n.node))) or (Node(ROOT, kind="agent"),))


@dataclass
class TreeBuilder:
    """Takes events in the order in which they were recorded; `tree()` is the tree so far, at any moment."""

    _nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    _titles: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, event: Mapping[str, Any]) -> None:
        """Take one event; kinds that say nothing of the tree are passed over."""
        match event["event"]:
            case "run_start":
                self._nodes = {ROOT: Node(ROOT, None, "agent", event.get("model"), title=_title(event.get("question")))}
            case "message":
                self._titles[event["hash"]] = _asked(event["message"])
            case "text":
                self._titles[event["sha256"]] = _title(event["text"])
            case "subcall_start" | "attempt_start":
                self._start(event)
            case "subcall_end" | "attempt_end":
                error = event.get("error")
                if isinstance(error, Mapping):
                    error = f"{error.get('kind', 'error')}: {error.get('message', '')}"
                ended = {"seconds": event.get("seconds"), "stop": event.get("stop")}
                self._change(event, ok=bool(event["ok"]), error=error, **ended)
            case "request":
                node = self._at(event)
                titles = (title for key in event["added"] if (title := self._titles.get(key)))
                self._change(event, model=event.get("model") or node.model, title=node.title or next(titles, ""))
            case "reply":
                self._reply(event)
            case "model_error":  # of a call that was written off nobody knows what it cost
                cost = Usage(None, None) if "call" in event else Usage.nothing()
                self._change(event, error=str(event.get("error", "")), own=self._at(event).own + cost)
            case "turn":
                self._change(event, steps=self._at(event).steps + 1)
            case "run_end" if node_of(event) == ROOT:
                stop, reason = str(event.get("stop", "")), str(event.get("reason", ""))
                error = reason if stop in ("failed", "interrupted") else None
                self._change(event, ok=stop == "answered", stop=stop, seconds=event.get("seconds"), error=error)
            case _:
                pass

    def tree(self) -> TraceTree:
        """The tree of the events so far."""
        return _tree(self._nodes)

    def _start(self, event: Mapping[str, Any]) -> None:
        known = {name: event.get(name) for name in ("kind", "model", "turn", "batch", "index")}
        before = self._at(event)
        known["kind"] = known["kind"] or before.kind
        self._change(event, **known, title=before.title or self._titles.get(event.get("prompt_sha256", ""), ""))

    def _reply(self, event: Mapping[str, Any]) -> None:
        node, reply = self._at(event), event["reply"]
        usage = reply.get("usage")
        spent = Usage(None, None) if usage is None else Usage.of(usage)
        self._change(event, own=node.own + spent, model_seconds=node.model_seconds + reply.get("seconds", 0.0))

    def _at(self, event: Mapping[str, Any]) -> Node:
        path = node_of(event)
        return self._nodes.get(path) or Node(path, path.rpartition(".")[0] or None)

    def _change(self, event: Mapping[str, Any], **changes: Any) -> None:
        self._nodes[node_of(event)] = replace(self._at(event), **changes)


def node_of(event: Mapping[str, Any]) -> str:
    """The path of the node that an event belongs to; events about the whole run are the root's."""
    return str(event.get("node", ROOT))


def place(node: str) -> tuple[int, ...]:
    """The sort key that puts parents before children and siblings in order."""
    return tuple(int(part) for part in node.split("."))


def _asked(message: Mapping[str, Any]) -> str:
    """The beginning of the question in a user's message, if it puts one."""
    texts = [s["text"] for s in message["spans"] if message["role"] == "user" and s["cause"] == "task"]
    return _title(texts[0]) if texts else ""


def _title(text: Any) -> str:
    return shortened(text, _TITLE) if isinstance(text, str) else ""
