"""Whether a trace is as it was written: bodies that are named by their hash have it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from rlm_loop.messages import digest
from rlm_loop.replay.replies import REDACTED
from rlm_loop.traces.reader import RunRecord, message_of
from rlm_loop.traces.trace import body_of


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
