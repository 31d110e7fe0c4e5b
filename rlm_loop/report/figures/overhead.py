"""A loop's overhead: by turn in the window and on the bill, and by cause over whole runs.

Two questions that are easily taken for one.  *In the window*: how much of the latest prompt is overhead, and so not
there for the work.  *Billed*: the overhead of all prompts together, since every turn sends the earlier ones again.
Text that is added in every turn grows with the turns in the window, and with their square on the bill."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.agents.past_run import ledger_of
from rlm_loop.report.figures.rows import Arm, arms_of, wanted_arms
from rlm_loop.report.figures.style import (
    HATCHES,
    PAGE,
    SMALL,
    caption,
    cause_colour,
    cause_place,
    finish,
    marks,
    sheet,
    style,
)
from rlm_loop.report.tables.study_tables import count
from rlm_loop.report.tables.table import Table
from rlm_loop.report.trace_files import trace_files
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results
from rlm_loop.traces.reader import read
from rlm_loop.traces.trace import TraceError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


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
class Growth:
    """Tokens of one arm by (turn, cause): in the window, sent in all calls of the turn, and those sent before."""

    arm: str
    turns: int
    tokens: Mapping[tuple[int, str], tuple[int, int, int]]

    def window(self, chosen: Selects = overhead) -> list[int]:
        """Tokens of the chosen causes in the window, turn by turn."""
        return [self._sums(turn, chosen)[0] for turn in range(1, self.turns + 1)]

    def billed(self, chosen: Selects = overhead, *, cached_price: float = 1.0) -> list[float]:
        """Tokens sent up to and including each turn; a token sent before counts as `cached_price` of one.

        1 is a bill without prompt caching.  Less is the bill where every token sent before is a hit, which is the most
        that caching can do: providers cache from a minimum length on, in blocks, and some ask a surcharge for writing.
        """
        sums = (self._sums(turn, chosen) for turn in range(1, self.turns + 1))
        return [*accumulate(sent - resent + cached_price * resent for _, sent, resent in sums)]

    def _sums(self, turn: int, chosen: Selects) -> tuple[int, ...]:
        found = [tokens for (at, cause), tokens in self.tokens.items() if at == turn and chosen(cause)]
        return tuple(map(sum, zip((0, 0, 0), *found, strict=True)))


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
    last = {int(r["turn"]): r.get("call", r["turn"]) for r in rows}  # rows are in the order of the calls
    tokens: dict[tuple[int, str], tuple[int, int, int]] = {}
    for row in rows:
        turn, cause, sent = int(row["turn"]), str(row["cause"]), int(row["tokens"])
        present = sent if row.get("call", row["turn"]) == last[turn] else 0
        before = tokens.get((turn, cause), (0, 0, 0))
        tokens[turn, cause] = before[0] + present, before[1] + sent, before[2] + int(row["resent"])
    return Growth(arm, max(last), tokens)


def overhead_table(frame: pd.DataFrame, *, arms: Iterable[str] | None = None) -> Table:
    """Two rows an arm: the text that it injects, and all overhead (tool schemas and the template's markers too)."""
    rows: list[list[str]] = []
    for growth in growths(frame, arms):
        everything = growth.billed(lambda _: True)[-1]
        for what, chosen in (("injected text", injected), ("all overhead", overhead)):
            present, billed = growth.window(chosen), growth.billed(chosen)[-1]
            cached = growth.billed(chosen, cached_price=CACHED_PRICE)[-1]
            slope = (present[-1] - present[0]) / max(1, len(present) - 1)
            share = f"{billed / everything:.0%}" if everything else "-"
            figures = [count(n) for n in (present[0], slope, present[-1])]
            rows.append(
                [growth.arm, what, *figures, f"{present[-1] / WINDOW:.1%}", count(billed), count(cached), share]
            )
    heads = ["loop", "tokens of", "turn 1", "a turn", "last turn", "of window", "billed", "cached", "of bill"]
    notes = [
        "Last turn: tokens present in the last prompt, also as a share of a window of "
        f"{WINDOW:,} tokens. Billed: the sum over all prompts, without a prompt cache.",
        f"Cached: the bill if every token that was sent before is a cache hit, at {CACHED_PRICE:.0%} of the price.",
        "Of bill: share of all input tokens billed without a cache.",
    ]
    return Table("Overhead", heads, rows, notes, labels=2)


#: Panels in a row.
_ACROSS = 3


def overhead_by_turn(frame: pd.DataFrame, *, arms: Iterable[str] | None = None) -> Figure:
    """Draw a panel for each arm (overhead in the window by turn, its causes stacked), and below what was billed so far.

    `frame` is as for `growths`, `arms` are those to show in their order (default: all).  Raises `StudyError` where
    there is nothing to draw, or matplotlib is missing.
    """
    found = growths(frame, arms)
    order = sorted({c for g in found for _, c in g.tokens if overhead(c)}, key=cause_place)
    across = 2 if len(found) == 4 else min(len(found), _ACROSS)
    down = -(-len(found) // across)
    longest = max(growth.turns for growth in found)
    top = max(1, *(n for growth in found for n in growth.window())) * 1.08
    with style():
        made = sheet(PAGE, 2.45 * down + 3.0)
        grid = made.add_gridspec(down + 1, across)
        for number, growth in enumerate(found):
            panel: Any = made.add_subplot(grid[number // across, number % across])
            _stack(panel, growth, order)
            panel.set_xlim(1, max(2, longest))
            panel.set_ylim(0, top)
            name = textwrap.fill(growth.arm, max(8, int((PAGE - 2.4) / across / 0.085) - 4))
            _finish(panel, f"{chr(97 + number % 26)}   {name}")
            if number % across == 0:
                panel.set_ylabel("overhead tokens in prompt")
        bill: Any = made.add_subplot(grid[down, :])
        for growth, mark in zip(found, marks([g.arm for g in found]).values(), strict=True):
            turns = range(1, growth.turns + 1)
            look: dict[str, Any] = {"color": mark.colour, "marker": mark.marker, "markersize": 4, "linewidth": 1.6}
            look["markevery"] = max(1, growth.turns // 6)
            bill.plot(turns, growth.billed(), "-", label=growth.arm or "this run", **look)
            bill.plot(turns, growth.billed(cached_price=CACHED_PRICE), "--", **look)
        bill.set_xlim(1, max(2, longest))
        bill.set_ylim(0, 1.08 * bill.get_ylim()[1])
        bill.set_ylabel("tokens of overhead so far")
        letter = chr(97 + len(found) % 26)
        _finish(bill, f"{letter}   Billed so far; dashed: what was sent before at {CACHED_PRICE:.0%}")
        handles, names = made.axes[0].get_legend_handles_labels()
        made.legend(handles[::-1], names[::-1], loc="outside upper left", ncols=4, frameon=False, fontsize=SMALL)
        bill.legend(loc="upper left", frameon=False, fontsize=SMALL)
    lines = [
        f"{g.arm}: {g.window()[0]:,} tokens of overhead in the prompt of turn 1, {g.window()[-1]:,} in that of turn "
        f"{g.turns} ({g.window()[-1] / WINDOW:.1%} of a window of {WINDOW:,}); {g.billed()[-1]:,.0f} billed in total, "
        f"{g.billed(cached_price=CACHED_PRICE)[-1]:,.0f} if all that was sent before is cached at {CACHED_PRICE:.0%}."
        for g in found
    ]
    about = "Overhead by turn, as stacked areas by cause and as lines of what was billed so far."
    made.set_label(" ".join([about, *lines]))
    return made


def _stack(axes: Any, growth: Growth, order: Sequence[str]) -> None:
    turns: list[float] = [*range(1, growth.turns + 1)]
    heights = [growth.window(lambda cause, this=cause: cause == this) for cause in order]
    if growth.turns == 1:  # an area of one point cannot be seen
        turns, heights = [1, 1.12], [[*height, *height] for height in heights]
    labels = [c.removeprefix("scaffold:").replace("_", " ") for c in order]
    colours = [cause_colour(c) for c in order]
    bands = axes.stackplot(turns, *heights, colors=colours, labels=labels, linewidth=0.5, edgecolor="white")
    for number, band in enumerate(bands):  # neighbours differ in grey too
        band.set_hatch(HATCHES[number % len(HATCHES)])


def _finish(axes: Any, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    finish(axes, title, "turn")


def mean_session(results: Results, *, arms: Iterable[str] | None = None, tasks: int | None = None) -> pd.DataFrame:
    """The frame of a study for `overhead_by_turn` and `overhead_table`: mean tokens of each turn and cause.

    The columns are `arm, turn, cause, tokens, resent, running`.  A turn's means are over the tasks that reach it
    (`running`), as long as at least a third of the arm's tasks do; only tasks that every arm was tried on, and of
    sub-calls nothing.  `tasks` takes the first so many of them, since every trace has to be read.  Raises
    `StudyError` where a trace is missing.
    """
    import pandas

    chosen = arms_of(results, arms).arms
    wanted = {arm.label: [str(r["trace"]) for r in list(arm.rows.values())[:tasks]] for arm in chosen}
    every = [name for names in wanted.values() for name in names]
    found = {name: _session(name, path) for name, path in trace_files(results, every)}
    if gone := [name for name in every if name not in found]:
        raise _unreadable(gone[0], "it is not there")
    means = {label: _turn_means([found[name] for name in names]) for label, names in wanted.items()}
    rows = [{"arm": label, **row} for label, of in means.items() for row in of]
    return pandas.DataFrame(rows, columns=["arm", "turn", "cause", "tokens", "resent", "running"])


def _unreadable(trace: str, why: object) -> StudyError:
    return StudyError(f"the trace {trace} cannot be read ({why}); a figure by turn needs all traces")


def _session(name: str, path: Path) -> Growth:
    try:
        ledger = ledger_of(read(path))
    except (TraceError, OSError) as error:
        raise _unreadable(name, error) from None
    parts = ("turn", "cause", "tokens", "resent")  # without the calls: each turn counts as one
    rows = [{part: getattr(r, part) for part in parts} for r in ledger.rows if not r.depth]
    return _growth(name, rows) if rows else Growth(name, 0, {})


def _turn_means(sessions: Sequence[Growth]) -> Iterator[dict[str, object]]:
    causes = list(dict.fromkeys(cause for session in sessions for _, cause in session.tokens))
    for turn in range(1, max((s.turns for s in sessions), default=0) + 1):
        running = [s for s in sessions if s.turns >= turn]
        if 3 * len(running) < len(sessions):
            return
        for cause in causes:
            each = [s.tokens.get((turn, cause), (0, 0, 0)) for s in running]
            if any(sent for _, sent, _ in each):
                _, tokens, resent = (round(sum(of) / len(running)) for of in zip(*each, strict=True))
                yield {"turn": turn, "cause": cause, "tokens": tokens, "resent": resent, "running": len(running)}


def stacked_causes(results: Results | pd.DataFrame, *, arms: Iterable[str] | None = None) -> Figure:
    """Mean prompt tokens a task of each arm, stacked by cause.

    `results` are a study's, or its `frame()`; the column `by_cause` is used.  Re-sent and cached tokens count each time
    they were sent; sub-calls are included.  Neighbours in a bar differ in hatch as well as in colour.  Raises
    `StudyError` where there is nothing to draw, or matplotlib is missing.
    """
    found = arms_of(results, arms, ["by_cause"])
    means = {arm.label: _cause_means(arm) for arm in found.arms}
    order = sorted({c for of in means.values() for c in of}, key=cause_place)
    names = {cause: cause.replace("scaffold:", "added: ").replace("_", " ") for cause in order}
    if not order:
        raise StudyError("no task of this study says where its tokens went, so there is nothing to draw")
    with style():
        made = sheet(PAGE, 1.5 + 0.42 * len(means))
        axes: Any = made.subplots()
        sums = {arm: sum(of.values()) for arm, of in means.items()}
        ends = [0.0 for _ in means]
        for number, cause in enumerate(order):
            widths = [of.get(cause, 0.0) for of in means.values()]
            look = {"color": cause_colour(cause), "edgecolor": "white", "hatch": HATCHES[number % len(HATCHES)]}
            axes.barh(list(means), widths, left=ends, height=0.72, label=names[cause], linewidth=0.6, **look)
            ends = [end + width for end, width in zip(ends, widths, strict=True)]
        for place, total in enumerate(sums.values()):
            axes.text(total + 0.008 * max(ends), place, f"{total:,.0f}", va="center", fontsize=SMALL)
        axes.invert_yaxis()
        axes.set_xlim(0, max(ends) * 1.1)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.tick_params(axis="y", length=0)
        finish(axes, "Where the prompt tokens go", "prompt tokens a task, mean", grid="x")
        made.legend(loc="outside right upper", frameon=False, fontsize=SMALL)
        caption(made, f"{found.note()}. Tokens that are re-sent or cached count each time; sub-calls are included.")
    lines: list[str] = []
    for arm, of in means.items():
        parts = [f"{names[c]} {of[c] / sums[arm]:.0%}" for c in sorted(of, key=lambda c: -of[c])]
        lines.append(f"{arm}: {sums[arm]:,.0f} ({', '.join(parts)})")
    made.set_label(f"Stacked bars of the mean prompt tokens a task, by cause. {'; '.join(lines)}.")
    return made


def _cause_means(arm: Arm) -> dict[str, float]:
    known = [r["by_cause"] for r in arm.rows.values() if isinstance(r.get("by_cause"), Mapping)]
    sums: Counter[str] = Counter()
    for row in known:
        sums.update(row)
    return {cause: total / len(known) for cause, total in sums.items() if total}
