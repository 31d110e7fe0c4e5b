"""Where the tokens went: every model call of a run, split by cause and by the turn that wrote the text.

The law of this module: the rows of a call sum to the prompt tokens which that call reported (see `attribution`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlm_loop.accounting.attribution import UNATTRIBUTED, Again, Part, Row, apportion, attribute, reconcile, rows_of
from rlm_loop.accounting.calls import Cached, Call
from rlm_loop.accounting.later import Later
from rlm_loop.accounting.own_lock import OwnLock
from rlm_loop.messages import Usage
from rlm_loop.traces.display import drawing

if TYPE_CHECKING:
    import pandas as pd

    from rlm_loop.accounting.pivot import Values

__all__ = ["UNATTRIBUTED", "Cached", "Call", "Ledger", "Part", "Row", "apportion", "attribute", "rows_of"]


#: Counted by the model's own tokenizer; by another one; or known as a sum only, of which each text has a share.
COUNTING = ("exact", "counted with another tokenizer", "shared out by length")


@dataclass
class Ledger:
    """Append-only account of the model calls of a run, sub-calls included.  Safe to charge from threads."""

    calls: list[Call] = field(default_factory=list["Call"])
    cached: list[Cached] = field(default_factory=list["Cached"])
    """Sub-calls that cost nothing, because an identical one was answered before."""
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
        again: Collection[Again] = (),
        exact: bool = True,
        seconds: float = 0.0,
        waited: float = 0.0,
        counted: int | None = None,
        usage_warning: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Call:
        """Add one call.

        `sent_messages` is how many leading messages the caller's call before had, `again` what else it had sent
        earlier, `tools` those of the request.  Parts that do not sum to the usage are made to, with an `unattributed`
        one, and the call is not exact then.
        """
        reported, cached, again = usage.input_tokens, usage.cache_read_tokens, tuple(again)
        parts = parts if isinstance(parts, Later) else tuple(parts)
        exact = exact and reported is not None and sum([p.tokens for p in parts]) == reported
        with self._lock:
            number = len(self.calls) + 1
            who = (number, turn, depth, purpose)
            more = (sent_messages, cached, again, usage.cache_write_tokens, tools)
            rows = Later(lambda: rows_of(reconcile(parts, reported), *who, *more))
            call = Call(number, turn, depth, purpose, usage, rows, exact, seconds, waited, node, counted, usage_warning)
            self.calls.append(call)
            return call

    def reuse(self, cached: Cached) -> None:
        """Note a sub-call that was answered from an earlier one."""
        with self._lock:
            self.cached.append(cached)

    @property
    def usage(self) -> Usage:
        """The sum over all calls."""
        return sum([c.usage for c in list(self.calls)], Usage.nothing())

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

    @property
    def unattributed(self) -> int:
        """Reported input tokens, over all calls, that no counted text accounts for."""
        return sum(call.unattributed for call in list(self.calls))

    @property
    def exact(self) -> bool:
        """Every call's tokens were counted, and are those that the provider reported."""
        return all(call.exact for call in list(self.calls))

    @property
    def counting(self) -> str:
        """How the tokens of the rows were found, in words for a reader: one of `COUNTING`; empty without a call.

        What they sum to is the provider's own number all the same.  Where calls differ, the least sure of them.
        """
        calls = list(self.calls)
        if not calls:
            return ""
        return COUNTING[max(0 if c.exact else 2 if c.counted is None else 1 for c in calls)]

    def usage_warnings(self) -> list[str]:
        """One line for each call whose provider reported no usage, or one that cannot be."""
        return [f"call {call.call}: {call.usage_warning}" for call in list(self.calls) if call.usage_warning]

    def frame(self) -> pd.DataFrame:
        """A tidy frame, one row per call x cause x turn of origin; `tokens` sums to `usage.input_tokens`."""
        from dataclasses import asdict, fields

        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows], columns=[f.name for f in fields(Row)])

    def pivot(self, values: Values = "tokens", *, depth: int | None = None) -> pd.DataFrame:
        """Input tokens as a table: one row a turn of the root agent, one column a cause.

        A sub-call is counted to the root's turn that made it; `depth` keeps one level of the tree only.  `values` are
        all `tokens`, those sent for the first time (`first_sent`), `resent`, or `cached` ones; a cell in which a call
        does not say what was cached is missing.  All cells of `tokens` sum to `usage.input_tokens`.
        """
        from rlm_loop.accounting.pivot import pivot

        return pivot(list(self.calls), values, depth)

    def _repr_html_(self) -> str:
        return drawing("rlm_loop.report.notebook.html.ledger_html")(self)
