"""Where a request did not go on from its caller's request before, and what stands there."""

from __future__ import annotations

from rlm_loop.accounting.prompt_cache.prefixes import shared_start, through, within
from rlm_loop.accounting.prompt_cache.report import Break
from rlm_loop.accounting.prompt_cache.requests import Sent
from rlm_loop.messages import Message

#: Characters of a text that are shown.
SHOWN = 80


def broken(earlier: Sent, now: Sent) -> Break | None:
    who = (now.call, now.turn)
    if earlier.tools != now.tools:
        other = sorted(set(earlier.names) ^ set(now.names)) or ["a schema, or the order"]
        return Break(*who, -1, "tool_schema", "changed", earlier.tokens, _short(", ".join(other)), now.node)
    same = 0
    for old, new in zip(earlier.keys, now.keys, strict=False):
        if old != new:
            break
        same += 1
    if same == len(earlier.keys):
        return None
    old = earlier.messages[same]
    new = now.messages[same] if same < len(now.messages) else None
    lost = earlier.tokens - through(earlier.parts, same)
    if new is None or now.keys[same] in earlier.keys[same:]:
        return Break(*who, same, _cause_at(old, 0), "left_out", lost, _short(old.text), now.node)
    at = shared_start(new.text, old.text)
    found = _cause_at(new, at) if at < len(new.text) else _cause_at(old, at)
    lost = max(0, lost - within(now, same, earlier.keys[same], False))  # shares by characters may come out above it
    return Break(*who, same, found, "changed", lost, _short(new.text[at:] or old.text[at:]), now.node)


def _short(text: str) -> str:
    words = " ".join(text[:400].split())
    return words if len(words) <= SHOWN else words[: SHOWN - 1] + "…"


def _cause_at(message: Message, at: int) -> str:
    """The cause of the text at a character; of the last text where there is none."""
    for span in message.spans:
        if at < len(span.text):
            return span.cause
        at -= len(span.text)
    return message.spans[-1].cause if message.spans else message.role
