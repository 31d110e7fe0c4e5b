"""The result of a replay: how many requests are equal, and the first difference."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from rlm_loop.messages import Message, Prompt
from rlm_loop.outcome import Outcome

_SHOWN = 60


@dataclass(frozen=True)
class Difference:
    """The first difference: its turn, its place (`what`) in the request, and the text there; messages count from 0."""

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


def first_difference(recorded: Prompt, today: Prompt, turn: int) -> Difference | None:
    """Return the first message that differs, else the first setting; `None` for equal requests."""
    for index, (before, now) in enumerate(zip_longest(recorded.messages, today.messages)):
        old, new = _read(before), _read(now)
        if old != new:
            return Difference(turn, f"message {index} ({(before or now).role})", *_from_there(old, new), message=index)
    for name in ("tools", "stop", "reply_schema"):
        old, new = str(getattr(recorded, name)), str(getattr(today, name))
        if old != new:
            return Difference(turn, name, *_from_there(old, new))
    return None


def _read(message: Message | None) -> str:
    """Return all of a message that a model reads."""
    if message is None:
        return ""
    calls = [str(message.tool_calls)] if message.tool_calls else []
    return "\n".join([message.text, *calls, message.tool_call_id or "", message.role])


def _from_there(old: str, new: str) -> tuple[str, str]:
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return repr(old[at : at + _SHOWN]), repr(new[at : at + _SHOWN])


@dataclass(frozen=True)
class Replayed:
    """A recorded run, driven again by today's loop.

    `requests` of the root were compared, `equal` of them were the same byte for byte; `difference` is the first that
    was not, or that was changed in the record.  `complete` says that the record has an end (a killed run has none),
    `notes` what could not be checked.  `outcome` is today's; `None` where the record ended before the run did.
    """

    requests: int
    equal: int
    turns: int
    difference: Difference | None = None
    notes: tuple[str, ...] = ()
    complete: bool = True
    outcome: Outcome | None = None

    @property
    def same(self) -> bool:
        return self.difference is None

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        """Readable, a line for each thing to say."""
        counts = f"{self.equal} of {self.requests} requests equal byte for byte, {self.turns} turns"
        lines = [f"same: {counts}"] if self.difference is None else [f"differs: {self.difference}", counts]
        if not self.complete:
            lines.append("the record has no end: the run was killed, or the file was cut")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])
