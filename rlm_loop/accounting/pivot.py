"""A ledger as a table of turns and causes.

A sub-call belongs to the turn of the root agent that made it: its own turns are counted anew from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from rlm_loop.accounting.attribution import UNATTRIBUTED, Row
from rlm_loop.accounting.calls import Call

if TYPE_CHECKING:
    import pandas as pd

#: What a table may be of.
Values = Literal["tokens", "first_sent", "resent", "cached"]

_READ: Mapping[str, Callable[[Row], int | None]] = {
    "tokens": lambda row: row.tokens,
    "first_sent": lambda row: row.tokens - row.resent,
    "resent": lambda row: row.resent,
    "cached": lambda row: row.cached,
}
_FIRST = ("template", "system", "tool_schema", "task")  # in the order in which a prompt begins


def root_turns(calls: Iterable[Call]) -> Iterator[tuple[int, Call]]:
    """Each call with the turn of the root agent in which it was made."""
    turn = 0
    for call in sorted(calls, key=lambda c: c.call):
        turn = call.turn if call.depth == 0 else turn
        yield turn, call


def in_order(causes: Iterable[str]) -> list[str]:
    """Causes as tables and figures show them: what a prompt begins with, the injectors, the rest, the unattributed."""
    return sorted(
        set(causes),
        key=lambda c: (
            c == UNATTRIBUTED,
            _FIRST.index(c) if c in _FIRST else len(_FIRST) + (not c.startswith("scaffold:")),
            c,
        ),
    )


def pivot(calls: Iterable[Call], values: Values = "tokens", depth: int | None = None) -> pd.DataFrame:
    """See `Ledger.pivot`.  Raises `ValueError` for a name that is none of `Values`."""
    import pandas as pd

    if values not in _READ:
        raise ValueError(f"values={values!r} is none of {', '.join(_READ)}")
    cells: dict[int, dict[str, int | None]] = {}
    for turn, call in root_turns(calls):
        if depth is not None and call.depth != depth:
            continue
        line = cells.setdefault(turn, {})
        for row in call.rows:
            before, value = line.get(row.cause, 0), _READ[values](row)
            line[row.cause] = None if before is None or value is None else before + value
    causes = in_order(cause for line in cells.values() for cause in line)
    table = [[line.get(cause, 0) for cause in causes] for line in cells.values()]
    frame = pd.DataFrame(
        table, index=pd.Index(list(cells), name="turn"), columns=pd.Index(causes, name="cause"), dtype="Int64"
    )
    return frame.sort_index()
