"""A loop's overhead by turn: tokens in the window, and tokens billed.

Two questions that are easily taken for one.  *In the window*: how much of the latest prompt is overhead, and so not
there for the work.  *Billed*: the overhead of all prompts together, since every turn sends the earlier ones again.
Text that is added in every turn grows with the turns in the window, and with their square on the bill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.rows import wanted_arms
from rlm_loop.report.tables.study_tables import count
from rlm_loop.report.tables.table import Table
from rlm_loop.study import StudyError

if TYPE_CHECKING:
    import pandas as pd

#: Causes that are the work itself: what was asked, said, found, and kept of it.  All others are overhead.
WORK = ("task", "assistant", "tool_result", "repl_output", "error", "summary")
#: What a re-sent token costs where the provider has it in its cache, as a share of the price (0.1 is common).
CACHED_PRICE = 0.1
#: The window that the claim of 3.4 % is about, in tokens.
WINDOW = 32_000

Selects = Callable[[str], bool]


def injected(cause: str) -> bool:
    """Text that the strategy adds in words: its system text and its injectors (`Ledger.scaffold_tokens`)."""
    return cause == "system" or cause.startswith("scaffold:")


def overhead(cause: str) -> bool:
    """All that is not the work itself: injected text, tool schemas, and the chat template's markers."""
    return cause not in WORK


@dataclass(frozen=True)
class TurnTokens:
    """Tokens of one cause in one turn: in the window, sent in all its calls, and the part of it sent before."""

    window: int = 0
    sent: int = 0
    resent: int = 0

    def __add__(self, other: TurnTokens) -> TurnTokens:
        return TurnTokens(self.window + other.window, self.sent + other.sent, self.resent + other.resent)


@dataclass(frozen=True)
class Growth:
    """One arm: for each cause its tokens by turn; `turns[0]` is turn 1."""

    arm: str
    turns: int
    causes: Mapping[str, Sequence[TurnTokens]]

    def by_turn(self, chosen: Selects = overhead) -> list[TurnTokens]:
        """The chosen causes together, turn by turn."""
        picked = [turns for cause, turns in self.causes.items() if chosen(cause)]
        return [sum((turns[t] for turns in picked), TurnTokens()) for t in range(self.turns)]

    def window(self, chosen: Selects = overhead) -> list[int]:
        """Tokens in the window, turn by turn."""
        return [turn.window for turn in self.by_turn(chosen)]

    def billed(self, chosen: Selects = overhead, *, cached_price: float = 1.0) -> list[float]:
        """Tokens sent up to and including each turn; a token sent before counts as `cached_price` of one.

        1 is a bill without prompt caching.  Less is the bill where every token sent before is a hit, which is the most
        that caching can do: providers cache from a minimum length on, in blocks, and some ask a surcharge for writing.
        """
        total, found = 0.0, list[float]()
        for turn in self.by_turn(chosen):
            total += turn.sent - turn.resent + cached_price * turn.resent
            found.append(total)
        return found


def growths(frame: pd.DataFrame, arms: Iterable[str] | None = None) -> list[Growth]:
    """The arms of a frame with one row a call, cause and turn of origin, as `Ledger.frame()` has it.

    It needs the columns `turn`, `cause`, `tokens` and `resent`; `arm` (else there is one arm without a name) and `call`
    (else each turn is one call) are used where they are there.  Rows of sub-calls (`depth` above 0) are left out.
    Raises `StudyError` where a column or one of the `arms` is missing or there are no rows.
    """
    missing = [name for name in ("turn", "cause", "tokens", "resent") if name not in frame.columns]
    if missing:
        raise StudyError(f"the frame has no column {', '.join(missing)}; give one like Ledger.frame()")
    rows: list[dict[str, Any]] = [r for r in frame.to_dict("records") if not r.get("depth")]
    if not rows:
        raise StudyError("the frame has no rows, so there is no turn to show")
    by_arm: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_arm.setdefault(str(row.get("arm", "")), []).append(row)
    return [_growth(arm, by_arm[arm]) for arm in wanted_arms(arms, by_arm)]


def _growth(arm: str, rows: Sequence[Mapping[str, Any]]) -> Growth:
    turns = max(int(r["turn"]) for r in rows)
    causes: dict[str, list[TurnTokens]] = {str(r["cause"]): [TurnTokens()] * turns for r in rows}
    last = {int(r["turn"]): r.get("call", r["turn"]) for r in rows}  # rows are in the order of the calls
    for row in rows:
        at, tokens = int(row["turn"]), int(row["tokens"])
        here = tokens if row.get("call", row["turn"]) == last[at] else 0
        causes[str(row["cause"])][at - 1] += TurnTokens(here, tokens, int(row["resent"]))
    return Growth(arm, turns, causes)


def overhead_table(
    frame: pd.DataFrame,
    *,
    arms: Iterable[str] | None = None,
    window: int = WINDOW,
    cached_price: float = CACHED_PRICE,
) -> Table:
    """Two rows an arm: the text that it injects, and all overhead (tool schemas and the template's markers too)."""
    rows: list[list[str]] = []
    for growth in growths(frame, arms):
        everything = growth.billed(lambda _: True)[-1]
        for what, chosen in (("injected text", injected), ("all overhead", overhead)):
            present, billed = growth.window(chosen), growth.billed(chosen)[-1]
            cached = growth.billed(chosen, cached_price=cached_price)[-1]
            slope = (present[-1] - present[0]) / max(1, len(present) - 1)
            share = f"{billed / everything:.0%}" if everything else "-"
            figures = [count(n) for n in (present[0], slope, present[-1])]
            rows.append(
                [growth.arm, what, *figures, f"{present[-1] / window:.1%}", count(billed), count(cached), share]
            )
    heads = ["loop", "tokens of", "turn 1", "a turn", "last turn", "of window", "billed", "cached", "of bill"]
    notes = [
        "Last turn: tokens present in the last prompt, also as a share of a window of "
        f"{window:,} tokens. Billed: the sum over all prompts, without a prompt cache.",
        f"Cached: the bill if every token that was sent before is a cache hit, at {cached_price:.0%} of the price.",
        "Of bill: share of all input tokens billed without a cache.",
    ]
    return Table("Overhead", heads, rows, notes, labels=2)
