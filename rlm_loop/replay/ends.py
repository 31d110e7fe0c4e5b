"""What differs beside the requests: ends, sub-calls, compactions, the ledger's rows, and bodies that were changed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from rlm_loop.accounting.ledger import Call, Ledger
from rlm_loop.agents.past_run import ledger_of
from rlm_loop.messages import digest
from rlm_loop.replay.differences import Difference, changes
from rlm_loop.replay.recorded import ROOT, NodeRecord, Recorded
from rlm_loop.replay.replies import REDACTED
from rlm_loop.traces.reader import RunRecord, message_of
from rlm_loop.traces.trace import body_of

_END = ("stop", "reason", "answer", "answer_form", "steps", "over_budget")
_COMPACTION = (
    "turn", "policy", "asked", "due", "fallback", "tokens_before", "tokens", "messages_before", "messages", "left_out",
    "shortened", "over",
)  # fmt: skip
_START = ("turn", "depth", "kind", "model", "policy", "prompt_chars", "batch", "index")


def compare_ends(recorded: Recorded, today: Recorded) -> Iterator[Difference]:
    """Differences of the ends, in the order of the nodes; a node that came to no end in the record is left out."""
    for path, node in sorted(recorded.nodes.items(), key=lambda pair: [int(p) for p in pair[0].split(".")]):
        again = today.node(path)
        yield from _compactions(node, again)
        if node.start is not None and again.start is not None:
            yield from _fields(node.start, again.start, _START, "sub-call", f"sub-call {path}", path)
        if node.end is not None and again.end is not None:
            names = {n for n in _END if path == ROOT or n != "over_budget"}
            if "answer_from" not in node.end and node.end["stop"] != "answered":
                names -= {"answer", "answer_form"}  # until then the text of any last reply was taken for one
            yield from _fields(node.end, again.end, [n for n in _END if n in names], "end", _whose(path), path)


def compare_ledgers(recorded: Recorded, today: Ledger) -> Iterator[Difference]:
    """The rows of each call, by the node that made it; numbers of calls made at the same time may differ."""
    old, new = ledger_of(recorded.record), today
    skipped = {path for path, node in recorded.nodes.items() if any(c.written_off for c in node.calls)}
    ours, theirs = _by_node(old, skipped), _by_node(new, skipped)
    for path in ours | theirs:
        left, right = ours.get(path, []), theirs.get(path, [])
        if len(left) != len(right):
            yield Difference("ledger", f"ledger of {path}", f"{len(left)} calls", f"{len(right)} calls", path)
        for before, now in zip(left, right, strict=False):
            for name, one, other in changes(_facts(before), _facts(now)):
                if not _close(one, other):
                    where = f"ledger, call {before.call}, {name}"
                    yield Difference("ledger", where, str(one), str(other), path, before.call)


def _by_node(ledger: Ledger, skipped: set[str]) -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    for call in ledger.calls:
        if call.node not in skipped:
            found.setdefault(call.node, []).append(call)
    return found


def _facts(call: Call) -> dict[str, Any]:
    rows = {
        f"{r.cause} of turn {r.origin_turn}": {k: v for k, v in asdict(r).items() if k != "call"} for r in call.rows
    }
    return {**{k: v for k, v in asdict(call).items() if k not in ("call", "rows")}, "rows": rows}


def _compactions(node: NodeRecord, again: NodeRecord) -> Iterator[Difference]:
    path, old, new = node.path, node.compactions, again.compactions
    if len(old) > len(new):
        missing = f"after turn {old[len(new)]['turn']}: {old[len(new)]['policy']}"
        yield Difference("compaction", _whose(path), missing, "none", path)
    elif len(new) > len(old) and node.end is not None:
        more = f"after turn {new[len(old)]['turn']}: {new[len(old)]['policy']}"
        yield Difference("compaction", _whose(path), "none", more, path)
    for before, now in zip(old, new, strict=False):
        where = f"compaction after turn {before['turn']}"
        yield from _fields(before, now, _COMPACTION, "compaction", where, path)


def _fields(
    old: Mapping[str, Any], new: Mapping[str, Any], names: Sequence[str], kind: Any, where: str, path: str
) -> Iterator[Difference]:
    for name in names:
        left, right = _known(old.get(name)), _known(new.get(name))
        if name in old and not _close(left, right):
            yield Difference(kind, f"{where}, {name}", repr(left), repr(right), path)


def _known(value: Any) -> Any:
    """A value that was kept as its `repr` came back as that text, and was recorded so again."""
    if isinstance(value, dict) and set(cast("dict[str, Any]", value)) == {"repr"}:
        return cast("dict[str, Any]", value)["repr"]
    if isinstance(value, list):
        return [_known(item) for item in cast("list[Any]", value)]
    return value


def _close(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, (int, float)):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return left == right


def _whose(path: str) -> str:
    return "the run" if path == ROOT else f"sub-agent {path}"


def damage(record: RunRecord) -> Iterator[str]:
    """One line for each body whose hash is another; text that was redacted when it was written cannot be checked."""
    for number, event in enumerate(record.events, 1):
        kind = event["event"]
        if kind == "message":
            stated, found, text = event["hash"], digest(body_of(message_of(event["message"]))), str(event["message"])
        elif kind == "settings":
            rest = {name: event[name] for name in ("tools", "stop", "reply_schema")}
            stated, found, text = event["hash"], digest(rest), str(rest)
        elif kind == "tools":
            stated, found = event["hash"], digest({"event": kind, "tools": event["tools"]})
            text = str(event["tools"])
        elif kind == "text":
            text = str(event["text"])
            stated, found = event["sha256"], hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        else:
            continue
        if stated != found and REDACTED not in text:
            yield f"event {number} of the run ({kind} {stated[:12]}) was changed after it was written{_begin(event)}"


def _begin(event: Mapping[str, Any]) -> str:
    text = "".join(s["text"] for s in event["message"]["spans"]) if event["event"] == "message" else ""
    return f": it begins {text[:40]!r}" if text else ""
