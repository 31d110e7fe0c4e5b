"""What a smaller budget would have given: the share of tasks resolved within it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.agents.attempts.anytime import Anytime
from rlm_loop.report.figures.cells import Measure, cells, measure_of, wanted_arms
from rlm_loop.report.figures.style import (
    PAGE,
    ArmStyle,
    caption,
    finish,
    legend_above,
    marks,
    percent_axis,
    sheet,
    style,
)
from rlm_loop.study import statistics
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: The columns of `Anytime.frame()` that say what was spent until a state.
_OF_STATES = {"steps": "step", "input_tokens": "prompt_tokens", "total_tokens": "tokens", "seconds": "seconds"}


@dataclass(frozen=True)
class Ends:
    """Runs of an arm: what each had spent when it was right or wrong from then on (`resolved`), in order.

    `tasks` says which task each is of: runs of one task belong together.
    """

    arm: str
    runs: Sequence[Sequence[tuple[float, bool]]]
    tasks: Sequence[Hashable]

    @property
    def right(self) -> list[bool]:
        """Which runs are right in the end."""
        return [run[-1][1] for run in self.runs if run]

    def curve(self) -> list[tuple[float, int, int]]:
        """For each budget at which anything changes: how many runs are right with what they had within it, and how
        many were right at some time until then."""
        changes = sorted((spent, number, place) for number, run in enumerate(self.runs)
                         for place, (spent, _) in enumerate(run))  # fmt: skip
        now, ever = [False] * len(self.runs), [False] * len(self.runs)
        found: dict[float, tuple[float, int, int]] = {}
        right = once = 0
        for spent, number, place in changes:
            said = self.runs[number][place][1]
            right += said - now[number]
            once += said and not ever[number]
            now[number], ever[number] = said, said or ever[number]
            found[spent] = (spent, right, once)
        return list(found.values())


def anytime_curves(
    results: Results | pd.DataFrame | Mapping[str, Sequence[Anytime]],
    *,
    by: Sequence[str] = ("steps", "total_tokens"),
    arms: Iterable[str] | None = None,
    note: str = "",
) -> Figure:
    """One panel a kind of budget: the share of tasks that each arm has resolved within so much of it.

    `results` are a study's, or its `frame()`: a task counts from what its whole run took, since what it would have
    answered earlier is not known.  Or scored runs by arm (`anytime_of`), or a frame of their states (`Anytime.frame()`
    of each run with a column `arm`): then from the state that was right, until one that is not; a thin dotted line
    says how many were right at some time until then, where that is more.  `note` begins the caption.  `by` are
    `steps`, `input_tokens`, `total_tokens`, `seconds`, `cost` ... Runs of which it is not known are left out.  At the
    right is the 95 % Wilson interval of the whole.  Raises `StudyError` where there is nothing to draw, or matplotlib
    is missing.
    """
    drawable = _states(results) if isinstance(results, Mapping) else results
    read = {column: _read(drawable, column, arms) for column in by}
    panels = {column: [e for e in found if e.runs] for column, (found, _) in read.items()}
    panels = {column: found for column, found in panels.items() if found}
    if not panels:
        raise StudyError(f"{', '.join(by)} are not known of any run, so there is nothing to draw")
    drawn = marks(list(dict.fromkeys(e.arm for found, _ in read.values() for e in found)))
    with style():
        made = sheet(PAGE, 3.3)
        row: Any = made.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for number, (axes, (column, found)) in enumerate(zip(row, panels.items(), strict=True)):
            asked = measure_of(column)
            _panel(axes, found, drawn, asked)
            finish(axes, f"{chr(97 + number)}   Resolved within so many {asked.title.lower()}", f"{asked.name} a task")
        percent_axis(row[0].yaxis)
        legend_above(made, _handles(drawn), across=5)
        said = next(words for _, words in read.values())
        caption(made, f"{note}; {said}" if note else said)
    made.set_label(_told(panels))
    return made


def _handles(drawn: Mapping[str, ArmStyle]) -> list[Any]:
    """The line of an arm with the mark that its interval has."""
    from matplotlib.lines import Line2D

    return [Line2D([], [], markersize=5, label=arm, **mark.look) for arm, mark in drawn.items()]


def _panel(axes: Any, found: Sequence[Ends], drawn: Mapping[str, ArmStyle], asked: Measure) -> None:
    curves = [ends.curve() for ends in found]
    longest = max(curve[-1][0] for curve in curves)
    top = 0.0
    for number, (ends, curve) in enumerate(zip(found, curves, strict=True)):
        mark, n = drawn[ends.arm], len(ends.runs)
        at = [budget for budget, *_ in curve]
        rates = [100 * right / n for _, right, _ in curve]
        look = {"color": mark.colour, "linestyle": mark.line}
        axes.step([0, *at, longest], [0, *rates, rates[-1]], where="post", linewidth=1.6, label=ends.arm, **look)
        low, high = (100 * v for v in statistics.wilson_by_cluster([float(r) for r in ends.right], ends.tasks))
        ever = [100 * once / n for *_, once in curve]
        if ever != rates:
            look = {"color": mark.colour, "linestyle": ":", "linewidth": 1.0}
            axes.step([0, *at, longest], [0, *ever, ever[-1]], where="post", **look)
        x = longest * (1.03 + 0.035 * number)
        bars = [[rates[-1] - low], [high - rates[-1]]]
        axes.errorbar(x, rates[-1], yerr=bars, fmt=mark.marker, color=mark.colour, markersize=4, capsize=2, linewidth=1)
        top = max(top, high)
    axes.set_xlim(0, longest * (1.05 + 0.035 * len(found)))
    axes.set_ylim(0, max(axes.get_ylim()[1] if axes.get_ylim()[1] <= 100 else 0, min(100.0, top * 1.05)))
    axes.xaxis.set_major_formatter(asked.tick)
    if longest <= 12 and longest == int(longest):
        axes.set_xticks(range(int(longest) + 1))


def _read(results: Results | pd.DataFrame, column: str, arms: Iterable[str] | None) -> tuple[list[Ends], str]:
    if not isinstance(results, Results) and {"step", "prompt_tokens", "resolved"} <= set(results.columns):
        return _of_states(results, column, arms)
    found, asked = cells(results, arms), measure_of(column)
    ends: list[Ends] = []
    for arm in found.arms:
        known = asked.values(arm)
        told = {u: right for u, r in arm.rows.items() if u in known and (right := is_resolved(r)) is not None}
        ends.append(Ends(arm.label, [[(known[u], right)] for u, right in told.items()], [u[:3] for u in told]))
    words = "A task counts from what its whole run took. At the right: 95 % Wilson intervals of the whole."
    return ends, f"{found.note()}. {words}"


def _states(runs: Mapping[str, Sequence[Anytime]]) -> pd.DataFrame:
    import pandas

    frames = [run.frame().assign(arm=arm, seed=seed) for arm, of in runs.items() for seed, run in enumerate(of)]
    if not frames:
        raise StudyError("there is no run to draw; score some with patching.anytime first")
    return pandas.concat(frames, ignore_index=True)


def _of_states(frame: pd.DataFrame, column: str, arms: Iterable[str] | None) -> tuple[list[Ends], str]:
    if column not in _OF_STATES:
        raise StudyError(f"states are counted in {', '.join(_OF_STATES)}, not in {column}")
    runs: dict[str, dict[tuple[str, ...], list[tuple[float, bool]]]] = {}
    unknown: set[tuple[str, ...]] = set()
    for row in frame.to_dict("records"):
        arm = str(row.get("arm", "all runs"))
        name = (arm, *(str(row.get(part, "")) for part in ("model", "suite", "task", "seed")))
        spent = row[_OF_STATES[column]]
        if spent is None or spent != spent:
            unknown.add(name)
            continue
        runs.setdefault(arm, {}).setdefault(name, []).append((float(spent), row["resolved"] is True))
    wanted = wanted_arms(arms, runs)
    there = {arm: {name: states for name, states in runs[arm].items() if name not in unknown} for arm in wanted}
    ends = [Ends(arm, list(of.values()), [name[:4] for name in of]) for arm, of in there.items()]
    many = max((len(e.runs) for e in ends), default=0)
    words = "At the right: 95 % Wilson intervals at the end. Dotted: right at some time until then."
    return ends, f"{many} runs an arm, every state of them scored. {words}"


def _told(panels: Mapping[str, Sequence[Ends]]) -> str:
    lines: list[str] = []
    for column, found in panels.items():
        name = measure_of(column).name
        for ends in found:
            curve = ends.curve()
            whole, n = curve[-1][1], len(ends.runs)
            half = next((budget for budget, right, _ in curve if whole and 2 * right >= whole), None)
            middle = (
                f", half of them within {half:,.0f} {name if half != 1 else name.removesuffix('s')}"
                if half is not None
                else ""
            )
            lines.append(f"{ends.arm}: {whole} of {n}{middle}")
    return f"Share of tasks resolved within a budget. {'; '.join(lines)}."
