"""What each call of a trace was shown or gave: the texts that are looked for in the context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from rlm_loop.accounting.tree.build import node_of
from rlm_loop.traces.reader import RunRecord

Channel = Literal["printed", "prompt", "child_context", "answer"]

#: Channels by which text of the context reached a model.
READ: tuple[Channel, ...] = ("printed", "prompt")


@dataclass(frozen=True)
class Shown:
    """One text, the node it belongs to, and by which channel.

    `printed` is an observation that the node's model was sent (what a cell printed after which no call followed was
    read by nobody, and is left out).  `prompt` is what the node was asked with, `answer` what it gave back.
    `turn` is the node's own, 1-based, 0 for what came before its first.
    """

    node: str
    channel: Channel
    turn: int
    text: str

    @property
    def depth(self) -> int:
        return self.node.count(".")


def shown_in(record: RunRecord) -> list[Shown]:
    """All texts of a run, in order.  System texts, and what a model wrote on the way, are not among them."""
    last = _last_turns(record)
    return [s for s in _shown(record) if s.text and (s.channel != "printed" or s.turn < last.get(s.node, 0))]


def _last_turns(record: RunRecord) -> dict[str, int]:
    """The last turn of each node for which its model was called."""
    last: dict[str, int] = {}
    for event in record.events:
        if event["event"] == "request":
            node = node_of(event)
            last[node] = max(last.get(node, 0), int(event.get("turn", 0)))
    return last


def _shown(record: RunRecord) -> Iterator[Shown]:
    bodies = {e["hash"]: e["message"] for e in record.of("message")}
    stored = {e["sha256"]: str(e["text"]) for e in record.of("text")}
    asked: set[str] = set()
    for event in record.events:
        match event["event"]:
            case "request":
                node = node_of(event)
                if node not in asked:
                    asked.add(node)
                    yield from (Shown(node, "prompt", 0, t) for h in event["added"] for t in _brief(bodies[h]))
            case "reply":
                node = node_of(event)
                if not event["turn"]:  # one completion; what an agent wrote in between is no answer
                    yield Shown(node, "answer", 0, event["reply"]["text"])
            case "turn":
                node = node_of(event)
                for observation in event["observations"]:
                    yield Shown(node, "printed", event["turn"], observation["text"])
            case "subcall_start" if event["kind"] == "cached":
                yield Shown(event["node"], "prompt", 0, stored.get(event.get("prompt_sha256", ""), ""))
            case "run_end":
                yield Shown(node_of(event), "answer", 0, answer_text(event.get("answer")))
            case _:
                pass


def _brief(message: Mapping[str, Any]) -> Iterator[str]:
    if message["role"] != "system" and message["turn"] == 0:
        yield "".join(s["text"] for s in message["spans"] if s["cause"] != "system")


def answer_text(answer: Any) -> str:
    """An answer as text to look for: strings as they are, the texts in lists and mappings one a line."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Mapping):
        items = cast("Mapping[str, Any]", answer)
        return "\n".join(answer_text(v) for v in ([items["repr"]] if set(items) == {"repr"} else items.values()))
    if isinstance(answer, list):
        return "\n".join(answer_text(v) for v in cast("list[Any]", answer))
    return "" if answer is None else str(answer)


def unquoted(text: str) -> str | None:
    """The text as it was before `repr`: escapes undone, items of a list on lines of their own; `None` without any."""
    if "\\" not in text and "', '" not in text and '", "' not in text:
        return None
    parts = text.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r")
    parts = parts.replace("\\'", "'").replace('\\"', '"').replace("\0", "\\")
    parts = parts.replace("', '", "\n").replace('", "', "\n")
    return parts.strip().removeprefix("[").removesuffix("]").strip("'\"")
