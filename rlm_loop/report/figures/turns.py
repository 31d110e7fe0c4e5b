"""The figure of one run's prompt tokens: a bar a turn, stacked by cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rlm_loop.accounting.attribution import UNATTRIBUTED
from rlm_loop.accounting.pivot import in_order
from rlm_loop.report.figures.colours import cause_colour
from rlm_loop.report.figures.style import finish, matplotlib_or_say, sheet, style
from rlm_loop.study import StudyError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: The band of what sub-calls sent, whatever its cause was there.
SUBCALLS = "sub-calls"
_COLUMNS = ("turn", "cause", "tokens")
_HATCHES = ("", "///", "...", "xxx")
_PALE = "#c8c8c8"

Bands = Mapping[str, Mapping[int, int]]


def tokens_by_turn(frame: pd.DataFrame, *, title: str = "Prompt tokens by turn and cause") -> Figure:
    """Prompt tokens of each turn, stacked by cause, of a ledger's frame (`outcome.ledger.frame()`) or the meter's.

    What sub-calls sent is one band, in the turn of the root agent that made them.  The alternative text is the
    figure's label (`get_label()`), and goes into saved files.  Raises `StudyError` for a frame without tokens or
    without the columns, and where matplotlib is missing.
    """
    matplotlib_or_say()
    from matplotlib.ticker import MaxNLocator

    bands = _bands(frame)
    turns = sorted({turn for band in bands.values() for turn in band})
    with style():
        made = sheet(9.0, 3.9)
        axes: Any = made.subplots()
        floor = dict.fromkeys(turns, 0)
        for name, look in zip(bands, _styles(list(bands)), strict=True):
            heights = [bands[name].get(turn, 0) for turn in turns]
            axes.bar(turns, heights, bottom=[floor[t] for t in turns], width=0.8, label=name, linewidth=0.4, **look)
            for turn, height in zip(turns, heights, strict=True):
                floor[turn] += height
        axes.set_xlim(min(turns) - 0.6, max(turns) + 0.6)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
        axes.yaxis.set_major_formatter("{x:,.0f}")
        finish(axes, f"{title}: {sum(floor.values()):,}", "turn")
        handles, labels = axes.get_legend_handles_labels()
        # in the order in which the bands lie above each other
        axes.legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
        made.set_label(_text(title, bands, turns))
    return made


def turns_text(frame: pd.DataFrame, *, title: str = "Prompt tokens by turn and cause") -> str:
    """The alternative text of `tokens_by_turn`: what a reader who cannot see the figure needs of it."""
    bands = _bands(frame)
    return _text(title, bands, sorted({turn for band in bands.values() for turn in band}))


def _bands(frame: pd.DataFrame) -> Bands:
    if missing := [column for column in _COLUMNS if column not in frame.columns]:
        raise StudyError(f"the frame has no column {', '.join(missing)}: give a ledger's frame()")
    rows = cast("list[dict[str, Any]]", frame.to_dict("records"))
    if "call" in frame.columns and "session" not in frame.columns:
        rows.sort(key=lambda row: row["call"])  # so that a sub-call comes after the call of the root that made it
    found: dict[str, dict[int, int]] = {}
    turn = 0
    for row in rows:
        below = bool(row.get("depth", 0))
        turn = turn if below else int(row["turn"])
        band = found.setdefault(SUBCALLS if below else str(row["cause"]), {})
        band[turn] = band.get(turn, 0) + int(row["tokens"])
    kept = {name: band for name, band in found.items() if any(band.values())}
    if not kept:
        raise StudyError("the frame holds no tokens, so there is nothing to draw")
    order = [name for name in in_order(kept) if name not in (SUBCALLS, UNATTRIBUTED)]
    return {name: kept[name] for name in [*order, SUBCALLS, UNATTRIBUTED] if name in kept}


def _styles(names: Sequence[str]) -> list[dict[str, Any]]:
    """The colour of each cause, with a hatch where two have the same; what is not attributed is white."""
    styles: list[dict[str, Any]] = []
    used: Counter[str] = Counter()
    for name in names:
        if name == UNATTRIBUTED:
            styles.append({"color": "white", "edgecolor": "#555555", "hatch": "\\\\\\"})
        elif name == SUBCALLS:
            styles.append({"color": _PALE, "edgecolor": "white"})
        else:
            colour = cause_colour(name)
            styles.append({"color": colour, "edgecolor": "white", "hatch": _HATCHES[used[colour] % len(_HATCHES)]})
            used[colour] += 1
    return styles


def _text(title: str, bands: Bands, turns: Sequence[int]) -> str:
    sums = {name: sum(band.values()) for name, band in bands.items()}
    total = sum(sums.values())
    first, last = (sum(band.get(turn, 0) for band in bands.values()) for turn in (turns[0], turns[-1]))
    shares = ", ".join(f"{name} {n:,} ({n / total:.0%})" for name, n in sorted(sums.items(), key=lambda i: -i[1]))
    return (
        f"{title}. Stacked bars for {len(turns)} turns, {total:,} prompt tokens in all: {first:,} in turn {turns[0]}, "
        f"{last:,} in turn {turns[-1]}. By cause: {shares}."
    )
