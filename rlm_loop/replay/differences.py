"""What a replay found: how a request of today differs from the recorded one, and where the record was changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from rlm_loop.messages import Message, Prompt, digest
from rlm_loop.outcome import Outcome
from rlm_loop.traces.reader import RunRecord, message_of
from rlm_loop.traces.trace import body_of

REDACTED = "[redacted]"
_SHOWN = 60


@dataclass(frozen=True)
class Difference:
    """The first difference: in which turn, in which message of its request (from 0), and what is there."""

    turn: int
    what: str
    recorded: str
    today: str
    message: int | None = None

    @property
    def where(self) -> str:
        return f"turn {self.turn}, {self.what}"

    def __str__(self) -> str:
        return f"{self.where}: recorded {self.recorded[: 3 * _SHOWN]}, today {self.today[: 3 * _SHOWN]}"


def between(recorded: Prompt, today: Prompt, turn: int) -> Difference | None:
    """The first difference of two requests, in the order in which a model reads them."""
    if recorded.tools != today.tools:
        pairs = zip_longest(recorded.tools, today.tools)
        old, new = next((a, b) for a, b in pairs if a != b)
        return Difference(turn, "tools", *_shown(str(old), str(new)))
    for index, (before, now) in enumerate(zip_longest(recorded.messages, today.messages)):
        old, new = _sent(before), _sent(now)
        if old != new:
            return Difference(turn, f"message {index} ({(before or now).role})", *_shown(old, new), message=index)
    for name in ("stop", "reply_schema"):
        old, new = getattr(recorded, name), getattr(today, name)
        if old != new:
            return Difference(turn, name, repr(old), repr(new))
    return None


def _sent(message: Message | None) -> str:
    """All of a message that a model reads."""
    if message is None:
        return ""
    calls = [str(message.tool_calls)] if message.tool_calls else []
    return "\n".join([message.text, *calls, message.tool_call_id or ""]) + f"\n{message.role}"


def _shown(old: str, new: str) -> tuple[str, str]:
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return repr(old[at : at + _SHOWN]), repr(new[at : at + _SHOWN])


@dataclass(frozen=True)
class Replayed:
    """A recorded run, driven again by today's loop.

    `same`: every request of the root was equal byte for byte, and there were as many; `difference` is the first that
    was not.  `requests` were compared, `equal` of them were the same.  `complete` is whether the record has an end (not
    so where the run was killed, or the file was cut).  `damage` are bodies that were changed after they were written,
    one line each, `notes` what could not be checked.  `outcome` is today's; `None` where the record ended before the
    run did.
    """

    requests: int
    equal: int
    turns: int
    difference: Difference | None = None
    damage: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    complete: bool = True
    outcome: Outcome | None = None

    @property
    def same(self) -> bool:
        return self.difference is None and not self.damage

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        """Readable, a line for each thing to say."""
        counts = f"{self.equal} of {self.requests} requests equal byte for byte, {self.turns} turns"
        if self.same:
            lines = [f"same: {counts}"]
        elif self.difference is None:
            lines = [f"same, but the record was changed: {counts}"]
        else:
            lines = [f"differs: {self.difference}", counts]
        lines += [f"damaged: {line}" for line in self.damage]
        if not self.complete:
            lines.append("the record has no end: the run was killed, or the file was cut")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def damage(record: RunRecord) -> Iterator[str]:
    """One line for each body whose hash is another; text that was redacted when it was written cannot be checked."""
    for number, event in enumerate(record.events, 1):
        kind = event["event"]
        stated = event.get("sha256" if kind == "text" else "hash")
        if kind == "message":
            found, text = digest(body_of(message_of(event["message"]))), str(event["message"])
        elif kind == "settings":
            rest = {name: event[name] for name in ("tools", "stop", "reply_schema")}
            found, text = digest(rest), str(rest)
        elif kind == "tools":
            found, text = digest({"event": kind, "tools": event["tools"]}), str(event["tools"])
        elif kind == "text":
            text = str(event["text"])
            found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        else:
            continue
        if stated != found and REDACTED not in text:
            yield f"event {number} of the run ({kind} {str(stated)[:12]}) was changed after it was written"
