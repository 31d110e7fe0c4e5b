"""A loop's overhead: by turn in the window and on the bill, and by cause over whole runs.

Two questions that are easily taken for one.  *In the window*: how much of the latest prompt is overhead, and so not
there for the work.  *Billed*: the overhead of all prompts together, since every turn sends the earlier ones again.
Text that is added in every turn grows with the turns in the window, and with their square on the bill."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.agents.past_run import ledger_of
from rlm_loop.report.figures.rows import Arm, arms_of
from rlm_loop.report.figures.style import (
    HATCHES,
    PAGE,
    SMALL,
    cause_colour,
    cause_place,
    finish,
    marks,
    panels,
    style,
)
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


def _by_turn(frame: pd.DataFrame) -> dict[str, Any]:
    """Of each arm the overhead by turn and cause: tokens in the window, sent in all calls, and of them sent before."""
    if missing := [name for name in ("turn", "cause", "tokens", "resent") if name not in frame.columns]:
        raise StudyError(f"the frame has no column {', '.join(missing)}; give one like Ledger.frame()")
    known: dict[str, Any] = {"arm": "", "call": frame["turn"], "depth": 0}
    rows: Any = frame.assign(**{name: value for name, value in known.items() if name not in frame.columns})
    rows = rows[rows["depth"] == 0]
    if rows.empty:
        raise StudyError("the frame has no rows, so there is no turn to show")
    last = rows.groupby(["arm", "turn"])["call"].transform("last")  # rows are in the order of the calls
    rows = rows.assign(window=rows["tokens"].where(rows["call"] == last, 0))
    rows.loc[rows["cause"].isin(WORK), ["window", "tokens", "resent"]] = 0
    sums = ["window", "tokens", "resent"]
    return {arm: of.groupby(["turn", "cause"])[sums].sum() for arm, of in rows.groupby("arm", sort=False)}


def overhead(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each arm and turn: the tokens that are not the work itself, in the window and on the bill.

    `window` are those in the turn's last prompt, `billed` those of all prompts so far, `cached` the same bill if every
    token that was sent before counts as a tenth.  That is the most that prompt caching can do: providers cache from a
    minimum length on, in blocks, and some ask a surcharge for writing.

    `frame` has one row a call, cause and turn of origin, as `Ledger.frame()` has it.  It needs the columns `turn`,
    `cause`, `tokens` and `resent`; `arm` (else there is one arm without a name) and `call` (else each turn is one call)
    are used where they are there.  Rows of sub-calls (`depth` above 0) are left out.  Raises `StudyError` where a
    column is missing or there are no rows.
    """
    import pandas

    return pandas.concat({arm: _totals(of) for arm, of in _by_turn(frame).items()}, names=["arm"])


def _totals(of: Any) -> Any:
    sums = of.groupby("turn").sum()
    cached = sums["tokens"] - (1 - CACHED_PRICE) * sums["resent"]
    return sums.assign(billed=sums["tokens"].cumsum(), cached=cached.cumsum())[["window", "billed", "cached"]]


#: Panels in a row.
_ACROSS = 3


def overhead_by_turn(frame: pd.DataFrame, axes: Any = None) -> Figure:
    """Draw a panel for each arm (overhead in the window by turn, its causes stacked), and below what was billed so far.

    `frame` is as for `overhead`; `axes` are those of matplotlib for the panels, the bill's last.  Raises `StudyError`
    where there is nothing to draw, or matplotlib is missing.
    """
    found = _by_turn(frame)
    totals = {arm: _totals(of) for arm, of in found.items()}
    order = sorted({c for of in found.values() for _, c in of.index[of["tokens"] > 0]}, key=cause_place)
    across = 2 if len(found) == 4 else min(len(found), _ACROSS)
    down = -(-len(found) // across)
    longest = max(2, *(of.index.max() for of in totals.values()))
    top = max(1, *(of["window"].max() for of in totals.values())) * 1.08
    places = [*range(len(found)), *[-1] * (down * across - len(found)), *[len(found)] * across]
    with style():
        made = panels(axes, [places[i : i + across] for i in range(0, len(places), across)], 2.45 * down + 3.0)
        *turns, bill = made.axes
        for number, ((arm, of), panel) in enumerate(zip(found.items(), turns, strict=True)):
            _stack(panel, of["window"].unstack(fill_value=0).reindex(columns=order, fill_value=0), order)
            panel.set_ylim(0, top)
            name = textwrap.fill(arm, max(8, int((PAGE - 2.4) / across / 0.085) - 4))
            _finish(panel, f"{chr(97 + number % 26)}   {name}", longest)
            if number % across == 0:
                panel.set_ylabel("overhead tokens in prompt")
        for (arm, of), mark in zip(totals.items(), marks(list(totals)).values(), strict=True):
            look: dict[str, Any] = {"color": mark.colour, "marker": mark.marker, "markersize": 4, "linewidth": 1.6}
            look |= {"markevery": max(1, len(of) // 6), "clip_on": False}
            bill.plot(of.index, of["billed"], "-", label=arm or "this run", **look)
            bill.plot(of.index, of["cached"], "--", **look)
        bill.set_ylim(0, 1.08 * bill.get_ylim()[1])
        bill.set_ylabel("tokens of overhead so far")
        letter = chr(97 + len(found) % 26)
        _finish(bill, f"{letter}   Billed so far; dashed: what was sent before at {CACHED_PRICE:.0%}", longest)
        bill.legend(loc="upper left", frameon=False, fontsize=SMALL)
        lines = ["Overhead by turn, as stacked areas by cause and as lines of what was billed so far."]
        for arm, of in totals.items():
            first, last = of.iloc[0], of.iloc[-1]
            lines.append(
                f"{arm}: {first.window:,.0f} tokens of overhead in the prompt of turn 1, {last.window:,.0f} in that of "
                f"turn {of.index[-1]}; {last.billed:,.0f} billed in total, {last.cached:,.0f} if all that was sent "
                f"before is cached at {CACHED_PRICE:.0%}."
            )
        return made.finished(" ".join(lines), handles=turns[0].get_legend_handles_labels()[0][::-1])


def _stack(axes: Any, window: Any, order: Sequence[str]) -> None:
    turns: list[float] = list(window.index)
    heights = [list(window[cause]) for cause in order]
    if len(turns) == 1:  # an area of one point cannot be seen
        turns, heights = [1, 1.12], [[*height, *height] for height in heights]
    labels = [c.removeprefix("scaffold:").replace("_", " ") for c in order]
    colours = [cause_colour(c) for c in order]
    bands = axes.stackplot(turns, *heights, colors=colours, labels=labels, linewidth=0.5, edgecolor="white")
    for number, band in enumerate(bands):  # neighbours differ in grey too
        band.set_hatch(HATCHES[number % len(HATCHES)])


def _finish(axes: Any, title: str, turns: int) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(1, turns)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    finish(axes, title, "turn")


def mean_session(results: Results, *, tasks: int | None = None) -> pd.DataFrame:
    """The frame of a study for `overhead_by_turn` and `overhead`: mean tokens of each turn and cause.

    The columns are `arm, turn, cause, tokens, resent`.  A turn's means are over the tasks that reach it, as long as at
    least a third of the arm's tasks do; only tasks that every arm was tried on, and of sub-calls nothing.  `tasks`
    takes the first so many of them, since every trace has to be read.  Raises `StudyError` where a trace is missing.
    """
    import pandas

    wanted = {str(r["trace"]): arm.label for arm in arms_of(results).arms for r in list(arm.rows)[:tasks]}
    found = {name: _session(name, path) for name, path in trace_files(results, wanted)}
    if gone := [name for name in wanted if name not in found]:
        raise _unreadable(gone[0], "it is not there")
    means = [_means([found[n] for n in wanted if wanted[n] == arm], arm) for arm in dict.fromkeys(wanted.values())]
    return pandas.concat(means, ignore_index=True)


def _unreadable(trace: str, why: object) -> StudyError:
    return StudyError(f"the trace {trace} cannot be read ({why}); a figure by turn needs all traces")


def _session(name: str, path: Path) -> Any:
    """The tokens of a run by turn and cause; without the calls, so that each turn counts as one."""
    try:
        rows: Any = ledger_of(read(path)).frame()
    except (TraceError, OSError) as error:
        raise _unreadable(name, error) from None
    return rows[rows["depth"] == 0].groupby(["turn", "cause"])[["tokens", "resent"]].sum()


def _means(sessions: Sequence[Any], arm: str) -> Any:
    import pandas

    rows: Any = pandas.concat(sessions)
    sums = rows.groupby(level=["turn", "cause"], sort=False).sum().reset_index()
    last = [max(of.index.get_level_values("turn"), default=0) for of in sessions]
    running = pandas.Series([sum(turn <= end for end in last) for turn in sums["turn"]])
    for name in ("tokens", "resent"):
        sums[name] = (sums[name] / running).round().astype(int)
    return sums[3 * running >= len(sessions)].assign(arm=arm)


def stacked_causes(results: Results | pd.DataFrame, axes: Any = None) -> Figure:
    """Mean prompt tokens a task of each arm, stacked by cause.

    `results` are a study's, or its `frame()`, whose column `by_cause` is used; `axes` are as in `resolve_rates`.
    Re-sent and cached tokens count each time they were sent; sub-calls are included.  Neighbours in a bar differ in
    hatch as well as in colour.  Raises `StudyError` where there is nothing to draw, or matplotlib is missing.
    """
    found = arms_of(results)
    means = {arm.label: _cause_means(arm) for arm in found.arms}
    order = sorted({c for of in means.values() for c in of}, key=cause_place)
    names = {cause: cause.replace("scaffold:", "added: ").replace("_", " ") for cause in order}
    if not order:
        raise StudyError("no task of this study says where its tokens went, so there is nothing to draw")
    with style():
        made = panels(axes, [[0]], 1.5 + 0.42 * len(means))
        (axes,) = made.axes
        sums = {arm: sum(of.values()) for arm, of in means.items()}
        ends = [0.0 for _ in means]
        for number, cause in enumerate(order):
            widths = [of.get(cause, 0.0) for of in means.values()]
            look = {"color": cause_colour(cause), "edgecolor": "white", "hatch": HATCHES[number % len(HATCHES)]}
            axes.barh(list(means), widths, left=ends, height=0.72, label=names[cause], linewidth=0.6, **look)
            ends = [end + width for end, width in zip(ends, widths, strict=True)]
        for place, total in enumerate(sums.values()):
            axes.text(total + 0.008 * max(ends), place, f"{total:,.0f}", va="center", fontsize=SMALL)
        axes.set_ylim(len(means) - 0.4, -0.6)
        axes.set_xlim(0, max(ends) * 1.1)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.tick_params(axis="y", length=0)
        finish(axes, "Where the prompt tokens go", "prompt tokens a task, mean", grid="x")
        lines: list[str] = []
        for arm, of in means.items():
            parts = [f"{names[c]} {of[c] / sums[arm]:.0%}" for c in sorted(of, key=lambda c: -of[c])]
            lines.append(f"{arm}: {sums[arm]:,.0f} ({', '.join(parts)})")
        words = f"Stacked bars of the mean prompt tokens a task, by cause. {'; '.join(lines)}."
        note = f"{found.note()}. Tokens that are re-sent or cached count each time; sub-calls are included."
        return made.finished(words, note, axes.get_legend_handles_labels()[0])


def _cause_means(arm: Arm) -> dict[str, float]:
    known = [r["by_cause"] for r in arm.rows if r.get("by_cause") is not None]
    causes = dict.fromkeys(cause for row in known for cause in row)
    means = {cause: sum(row.get(cause, 0) for row in known) / len(known) for cause in causes}
    return {cause: mean for cause, mean in means.items() if mean}
