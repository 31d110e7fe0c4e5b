"""One model call, and one sub-call that needed none: the values that a ledger holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlm_loop.accounting.attribution import UNATTRIBUTED, Row
from rlm_loop.messages import Usage


@dataclass(frozen=True)
class Call:
    """One model call: who made it and why, what it cost, and the rows that its input splits into.

    `exact`: a tokenizer counted the very number that the provider reported.  Otherwise the rows are an account that
    sums to the reported number all the same; `counted` is what the tokenizer found (`None`: none was at hand), and
    `usage_warning` says in one line what is missing or impossible in the provider's report.
    `node` is the caller's place in the tree of calls ("0" is the root, see `call_tree`).
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
    """A sub-call that was answered from an earlier one: who asked, and what it would have cost again."""

    node: str
    depth: int
    turn: int
    saved: Usage
