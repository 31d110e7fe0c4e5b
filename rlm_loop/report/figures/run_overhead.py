"""What a loop adds to the prompts of a run: present in the window, and billed.

Two questions that are easily taken for one.  *In the window*: how much of the latest prompt is overhead, and so not
there for the work.  *Billed*: the overhead of all prompts together, since every turn sends the earlier ones again.
Text that is added in every turn grows with the turns in the window, and with their square on the bill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.cells import wanted_arms
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


def growths(frame: pd.DataFrame) -> list[Growth]:
    """The arms of a frame with one row a call, cause and turn of origin, as `Ledger.frame()` has it.

    It needs the columns `turn`, `cause`, `tokens` and `resent`; `arm` (else there is one arm without a name) and `call`
    (else each turn is one call) are used where they are there.  Rows of sub-calls (`depth` above 0) are left out.
    Raises `StudyError` where a column is missing or there are no rows.
    """
    missing = [name for name in ("turn", "cause", "tokens", "resent") if name not in frame.columns]
    if missing:
        raise StudyError(f"the frame has no column {', '.join(missing)}; give one like Ledger.frame()")
    rows: list[dict[str, Any]] = [r for r in frame.to_dict("records") if not r.get("depth")]
    if not rows:
        raise StudyError("the frame has no rows, so there is no turn to show")
    arms = list(dict.fromkeys(str(r.get("arm", "")) for r in rows))
    return [_growth(arm, [r for r in rows if str(r.get("arm", "")) == arm]) for arm in arms]


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
    for growth in chosen_arms(frame, arms):
        everything = growth.billed(lambda _: True)[-1]
        for what, chosen in (("injected text", injected), ("all overhead", overhead)):
            sums = _sums([growth], chosen, cached_price)
            share = f"{sums[1][-1] / everything:.0%}" if everything else "-"
            rows.append([growth.arm, what, *_figures(sums, window), share])
    notes = [*_notes(window, cached_price), "Of bill: share of all input tokens billed without a cache."]
    return Table("Overhead", ["loop", "tokens of", *_COLUMNS, "of bill"], rows, notes, labels=2)


def cause_table(
    frame: pd.DataFrame,
    arm: str,
    *,
    beyond: str | None = None,
    window: int = WINDOW,
    cached_price: float = CACHED_PRICE,
) -> Table:
    """The overhead of one arm by cause; with `beyond`, what it has more of than that arm after as many turns.

    Raises `StudyError` where one of the arms is not there, or they did not take the same number of turns.
    """
    found = chosen_arms(frame, [arm, *([beyond] if beyond else [])])
    if len({growth.turns for growth in found}) > 1:
        raise StudyError(f"{arm} took {found[0].turns} turns and {beyond} {found[1].turns}; compare as many")
    causes = [c for c in dict.fromkeys(c for g in found for c in g.causes) if overhead(c)]
    rows: list[list[str]] = []
    for label, mine in [*((c, [c]) for c in sorted(causes)), ("all overhead", causes)]:
        sums = _sums(found, frozenset(mine).__contains__, cached_price)
        if any(any(values) for values in sums):
            rows.append([label, *_figures(sums, window)])
    title = f"Overhead of {arm}" + (f" beyond that of {beyond}" if beyond else "")
    return Table(title, ["cause", *_COLUMNS], rows, _notes(window, cached_price))


_COLUMNS = ("turn 1", "a turn", "last turn", "of window", "billed", "cached")


def _figures(sums: Sequence[Sequence[float]], window: int) -> list[str]:
    present, billed, cached = sums
    slope = (present[-1] - present[0]) / max(1, len(present) - 1)
    share = f"{present[-1] / window:.1%}"
    return [count(present[0]), count(slope), count(present[-1]), share, count(billed[-1]), count(cached[-1])]


def _sums(found: Sequence[Growth], chosen: Selects, cached_price: float) -> tuple[list[float], ...]:
    """Tokens in the window, billed, and billed with a cache, by turn: of the first arm, less those of the second."""
    each = [(g.window(chosen), g.billed(chosen), g.billed(chosen, cached_price=cached_price)) for g in found]
    return tuple([first - sum(others) for first, *others in zip(*of, strict=True)] for of in zip(*each, strict=True))


def _notes(window: int, cached_price: float) -> list[str]:
    return [
        "Last turn: tokens present in the last prompt, also as a share of a window of "
        f"{window:,} tokens. Billed: the sum over all prompts, without a prompt cache.",
        f"Cached: the bill if every token that was sent before is a cache hit, at {cached_price:.0%} of the price.",
    ]


def chosen_arms(frame: pd.DataFrame, arms: Iterable[str] | None) -> list[Growth]:
    """The arms of a frame that are wanted, in that order.  Raises `StudyError` for one that is not there."""
    found = {growth.arm: growth for growth in growths(frame)}
    return [found[arm] for arm in wanted_arms(arms, found)]
