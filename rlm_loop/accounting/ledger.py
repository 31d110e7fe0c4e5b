"""Every model call of a run, split by cause and by the turn that wrote the text.

The law of this module: the rows of a call sum to the prompt tokens which that call reported (see `attribution`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rlm_loop.accounting.attribution import UNATTRIBUTED, Part, Resent, Row, reconcile, rows_of
from rlm_loop.accounting.later import Later
from rlm_loop.accounting.own_lock import OwnLock
from rlm_loop.messages import Usage
from rlm_loop.traces.display import drawing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COUNTING", "Cached", "Call", "Ledger", "Part", "Row"]

#: Counted by the model's own tokenizer; by another one; or known as a sum only, of which each text has a share.
COUNTING = ("exact", "counted with another tokenizer", "shared out by length")

_FIRST = ("template", "system", "tool_schema", "task")  # in the order in which a prompt begins


@dataclass(frozen=True)
class Call:
    """A model call: its caller and purpose, its cost, and the rows that its input splits into.

    `exact`: a tokenizer counted the very number that the provider reported.  Otherwise the rows are an account that
    sums to the reported number all the same; `counted` is the tokenizer's number (`None`: none was at hand), and
    `usage_warning` says in one line what is missing or impossible in the provider's report.
    `node` is the caller's path in the tree of calls ("0" is the root, see `call_tree`).
    """

    call: int
    turn: int
    depth: int
    purpose: str
    usage: Usage
    rows: Sequence[Row]
    exact: bool
    seconds: float = 0.0
    waited: float = 0.0
    node: str = "0"
    counted: int | None = None
    usage_warning: str = ""

    @property
    def unattributed(self) -> int:
        """Reported prompt tokens that no counted text accounts for."""
        return sum(row.tokens for row in self.rows if row.cause == UNATTRIBUTED)


@dataclass(frozen=True)
class Cached:
    """A sub-call that was answered from an earlier one: its node, and what it would have cost again."""

    node: str
    depth: int
    turn: int
    saved: Usage


@dataclass
class Ledger:
    """Append-only account of the model calls of a run, sub-calls included.  Safe to charge from threads.

    `cached` are sub-calls that cost nothing, because an identical one was answered before.
    """

    calls: list[Call] = field(default_factory=list["Call"])
    cached: list[Cached] = field(default_factory=list["Cached"])
    _lock: OwnLock = field(default_factory=OwnLock, repr=False, compare=False)

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
        again: Collection[Resent] = (),
        exact: bool = True,
        seconds: float = 0.0,
        waited: float = 0.0,
        counted: int | None = None,
        usage_warning: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Call:
        """Add one call.

        `sent_messages` is the number of leading messages that the caller's call before had, `again` what else it had
        sent earlier, `tools` those of the request.  Parts that do not sum to the usage are made to, with an
        `unattributed` one, and the call is not exact then.
        """
        reported, cache, again = usage.input_tokens, (usage.cache_read_tokens, usage.cache_write_tokens), tuple(again)
        parts = parts if isinstance(parts, Later) else tuple(parts)
        exact = exact and reported is not None and sum(map(attrgetter("tokens"), parts)) == reported
        with self._lock:
            who = (len(self.calls) + 1, turn, depth, purpose)
            rows = Later(lambda: rows_of(reconcile(parts, reported), *who, sent_messages, *cache, again, tools))
            call = Call(*who, usage, rows, exact, seconds, waited, node, counted, usage_warning)
            self.calls.append(call)
            return call

    def reuse(self, cached: Cached) -> None:
        """Note a sub-call that was answered from an earlier one."""
        with self._lock:
            self.cached.append(cached)

    @property
    def usage(self) -> Usage:
        """Sum of all calls."""
        return sum(map(attrgetter("usage"), list(self.calls)), Usage.NOTHING)

    @property
    def rows(self) -> list[Row]:
        return [row for call in list(self.calls) for row in call.rows]

    def by_cause(self) -> dict[str, int]:
        """Input tokens by cause, over all calls."""
        total: Counter[str] = Counter()
        for row in self.rows:
            total[row.cause] += row.tokens
        return dict(total)

    @property
    def scaffold_tokens(self) -> int:
        """Input tokens that a strategy added: system text and injectors, each time they were sent."""
        return sum(n for cause, n in self.by_cause().items() if cause == "system" or cause.startswith("scaffold:"))

    @property
    def unattributed(self) -> int:
        """Reported input tokens, over all calls, that no counted text accounts for."""
        return self.by_cause().get(UNATTRIBUTED, 0)

    @property
    def counting(self) -> str:
        """The least sure way in which tokens were counted, one of `COUNTING`; empty without a call.

        They sum to the provider's own number all the same.
        """
        ways = [0 if c.exact else 2 if c.counted is None else 1 for c in list(self.calls)]
        return COUNTING[max(ways)] if ways else ""

    def usage_warnings(self) -> list[str]:
        """Return a line for each call whose provider reported no usage, or one that cannot be."""
        return [f"call {call.call}: {call.usage_warning}" for call in list(self.calls) if call.usage_warning]

    def frame(self) -> pd.DataFrame:
        """A tidy frame, one row per call x cause x turn of origin; `tokens` sums to `usage.input_tokens`."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows], columns=[f.name for f in fields(Row)])

    def _repr_html_(self) -> str:
        return drawing("rlm_loop.report.notebook.html.ledger_html")(self)


def in_order(causes: Iterable[str]) -> list[str]:
    """Causes as tables and figures show them: the beginning of a prompt, the injectors, the rest, the unattributed."""

    def place(cause: str) -> tuple[bool, int, str]:
        first = _FIRST.index(cause) if cause in _FIRST else len(_FIRST) + (not cause.startswith("scaffold:"))
        return cause == UNATTRIBUTED, first, cause

    return sorted(set(causes), key=place)
