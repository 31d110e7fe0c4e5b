"""Where the tokens went: every model call of a run, split by cause and by the turn that wrote the text.

The law of this module: the rows of a call sum to the prompt tokens which that call reported.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlm_loop.messages import Prompt, Usage

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Part:
    """A stretch of a prompt: its cause, the turn that wrote it, the index of its message, and its tokens.

    `message` is -1 for text before the first message (tool schemas, the template's head) and the number of
    messages for text after the last one (the marker that asks for a reply).
    """

    cause: str
    origin_turn: int
    message: int
    tokens: int


@dataclass(frozen=True)
class Row:
    """Input tokens of one call charged to one cause and one turn of origin.

    `resent` is the part of `tokens` that an earlier call of the same agent had already sent, `cached` the
    part that the provider took from its cache (`None` where it does not say).
    """

    call: int
    turn: int
    depth: int
    purpose: str
    cause: str
    origin_turn: int
    tokens: int
    resent: int
    cached: int | None


@dataclass(frozen=True)
class Call:
    """One model call: who made it and why, what it cost, and the rows that its input splits into.

    `node` is the caller's place in the tree of calls ("0" is the root, see `call_tree`).
    """

    call: int
    turn: int
    depth: int
    purpose: str
    usage: Usage
    rows: tuple[Row, ...]
    exact: bool
    seconds: float = 0.0
    waited: float = 0.0
    node: str = "0"


@dataclass(frozen=True)
class Cached:
    """A sub-call that was answered from an earlier one: who asked, and what it would have cost again."""

    node: str
    depth: int
    turn: int
    saved: Usage


def apportion(prompt: Prompt, tokens: int) -> list[Part]:
    """Split a reported number of prompt tokens over the prompt by its characters.

    For models whose tokenizer is not at hand.  Markers count as four tokens a message (charged to
    `template`); what is left goes to the texts by length, largest remainder first, so the sum is exact.
    """
    pieces: list[tuple[str, int, int, float]] = []
    if prompt.tools:
        pieces.append(("tool_schema", 0, -1, float(sum(len(str(dict(t))) for t in prompt.tools))))
    for index, message in enumerate(prompt.messages):
        pieces.append(("template", message.turn, index, 16.0))
        pieces += [(s.cause, message.turn, index, float(len(s.text))) for s in message.spans]
        called = sum(len(c.name) + len(c.arguments) + 20 for c in message.tool_calls)
        if called:
            pieces.append(("assistant", message.turn, index, float(called)))
    pieces.append(("template", 0, len(prompt.messages), 12.0))
    weight = sum(p[3] for p in pieces) or 1.0
    shares = [p[3] * tokens / weight for p in pieces]
    whole = [int(s) for s in shares]
    order = sorted(range(len(pieces)), key=lambda i: whole[i] - shares[i])
    for i in order[: tokens - sum(whole)]:
        whole[i] += 1
    return [Part(c, t, m, n) for (c, t, m, _), n in zip(pieces, whole, strict=True)]


@dataclass
class Ledger:
    """Append-only account of the model calls of a run, sub-calls included.  Safe to charge from threads."""

    calls: list[Call] = field(default_factory=list["Call"])
    cached: list[Cached] = field(default_factory=list["Cached"])
    """Sub-calls that cost nothing, because an identical one was answered before."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def charge(
        self,
        parts: Sequence[Part],
        usage: Usage,
        *,
        turn: int,
        depth: int = 0,
        purpose: str = "agent",
        node: str = "0",
        sent_messages: int = 0,
        exact: bool = True,
        seconds: float = 0.0,
        waited: float = 0.0,
    ) -> Call:
        """Add one call.  `sent_messages` is how many leading messages an earlier call had already sent."""
        with self._lock:
            number = len(self.calls) + 1
            rows = rows_of(parts, number, turn, depth, purpose, sent_messages, usage.cached_tokens)
            call = Call(number, turn, depth, purpose, usage, rows, exact, seconds, waited, node)
            self.calls.append(call)
            return call

    def reuse(self, cached: Cached) -> None:
        """Note a sub-call that was answered from an earlier one."""
        with self._lock:
            self.cached.append(cached)

    @property
    def usage(self) -> Usage:
        """The sum over all calls."""
        return sum((c.usage for c in list(self.calls)), Usage.nothing())

    @property
    def rows(self) -> list[Row]:
        return [row for call in list(self.calls) for row in call.rows]

    def by_cause(self) -> dict[str, int]:
        """Input tokens by cause, over all calls."""
        total: dict[str, int] = {}
        for row in self.rows:
            total[row.cause] = total.get(row.cause, 0) + row.tokens
        return total

    @property
    def scaffold_tokens(self) -> int:
        """Input tokens that a strategy added: system text and injectors, each time they were sent."""
        return sum(n for cause, n in self.by_cause().items() if cause == "system" or cause.startswith("scaffold:"))

    def frame(self) -> pd.DataFrame:
        """A tidy frame, one row per call x cause x turn of origin; `tokens` sums to `usage.input_tokens`."""
        from dataclasses import asdict, fields

        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows], columns=[f.name for f in fields(Row)])


def rows_of(
    parts: Iterable[Part], call: int, turn: int, depth: int, purpose: str, sent: int, cached: int | None
) -> tuple[Row, ...]:
    """The parts of one call in sum by cause and turn of origin.

    `sent` is how many leading messages the caller had sent before, `cached` how many leading tokens the provider
    took from its cache.
    """
    totals: dict[tuple[str, int], list[int]] = {}
    left = cached or 0
    for part in parts:
        entry = totals.setdefault((part.cause, part.origin_turn), [0, 0, 0])
        entry[0] += part.tokens
        entry[1] += part.tokens if sent and part.message < sent else 0
        hit = min(left, part.tokens)
        left -= hit
        entry[2] += hit
    return tuple(
        Row(call, turn, depth, purpose, cause, origin, tokens, resent, None if cached is None else hit)
        for (cause, origin), (tokens, resent, hit) in totals.items()
    )
