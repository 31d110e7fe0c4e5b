"""The texts of a run: its context, taken again, and what each call was shown or gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from rlm_loop.accounting.tree.build import node_of
from rlm_loop.repl.contexts.fingerprint import context_fingerprint
from rlm_loop.traces.reader import RunRecord


class CoverageError(Exception):
    """Coverage cannot be had; the message is one line that says what to do."""


def text_of(context: Any) -> str:
    """The text in which ranges are counted.

    A str as it is; a `Path` as the UTF-8 text of that file; bytes as one character a byte; the strings of a list or
    tuple, and the values of a mapping, joined by newlines.  Raises `CoverageError` for anything else.
    """
    if isinstance(context, str):
        return context
    if isinstance(context, Path):
        try:
            return context.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CoverageError(f"cannot read the context {context} as UTF-8 text: {error}") from error
    if isinstance(context, (bytes, bytearray)):
        return bytes(context).decode("latin-1")
    if isinstance(context, Mapping):
        return text_of(list(cast("Mapping[Any, Any]", context).values()))
    if isinstance(context, Sequence):
        items = cast("Sequence[Any]", context)
        if all(isinstance(item, str) for item in items):
            return "\n".join(items)
    kind = type(context).__name__
    raise CoverageError(f"coverage counts characters of text, and the context is a {kind}: hand in text=... for it")


def check(context: Any, record: RunRecord) -> None:
    """Raises `CoverageError` where the trace is of a run on another context, or on none."""
    stored = record.start.get("context")
    if stored is None:
        raise CoverageError("this run had no context, so there is nothing to cover")
    found = [context_fingerprint(context)]
    if isinstance(context, Path):
        found.append(context_fingerprint(text_of(context)))
    late = [e for e in record.of("context") if e["type"] == stored["type"] and "sha256" in e]  # hashed beside the run
    stored = stored if "sha256" in stored else late[0] if late else {**stored, "sha256": ""}
    if not stored["sha256"]:
        raise CoverageError("this run ended before its context was hashed, so that it cannot be told which it was")
    if stored["sha256"] not in [f["sha256"] for f in found if f is not None]:
        size = stored.get("bytes", stored.get("size")) or 0
        raise CoverageError(
            f"this is not the context of the run: its trace says {stored['type']} of {size:,} bytes, SHA-256 "
            f"{stored['sha256'][:12]}...; hand in that one"
        )


Channel = Literal["printed", "prompt", "child_context", "answer"]

#: Channels by which text of the context reached a model.
READ: tuple[Channel, ...] = ("printed", "prompt")


@dataclass(frozen=True)
class RunText:
    """One text, the node it belongs to, and by which channel.

    `printed` is an observation that the node's model was sent (what a cell printed after which no call followed was
    read by nobody, and is left out).  `prompt` is what the node was asked with, `answer` what it gave back.
    `turn` is the node's own, 1-based, 0 for what came before its first.
    """

    node: str
    channel: Channel
    turn: int
    text: str


def texts_of(record: RunRecord) -> list[RunText]:
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


def _shown(record: RunRecord) -> Iterator[RunText]:
    bodies = {e["hash"]: e["message"] for e in record.of("message")}
    stored = {e["sha256"]: str(e["text"]) for e in record.of("text")}
    asked: set[str] = set()
    for event in record.events:
        match event["event"]:
            case "request":
                node = node_of(event)
                if node not in asked:
                    asked.add(node)
                    yield from (RunText(node, "prompt", 0, t) for h in event["added"] for t in _asked_text(bodies[h]))
            case "reply":
                node = node_of(event)
                if not event["turn"]:  # one completion; what an agent wrote in between is no answer
                    yield RunText(node, "answer", 0, event["reply"]["text"])
            case "turn":
                node = node_of(event)
                for observation in event["observations"]:
                    yield RunText(node, "printed", event["turn"], observation["text"])
            case "subcall_start" if event["kind"] == "cached":
                yield RunText(event["node"], "prompt", 0, stored.get(event.get("prompt_sha256", ""), ""))
            case "run_end":
                yield RunText(node_of(event), "answer", 0, answer_text(event.get("answer")))
            case _:
                pass


def _asked_text(message: Mapping[str, Any]) -> Iterator[str]:
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
