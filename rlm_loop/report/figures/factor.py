"""The figure of one ablation factor: what is resolved, and what is spent, by its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.rates import rate_of
from rlm_loop.report.figures.rows import Arm, arms_of, factors_of, mean_between, measure_of
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
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_TOKENS = measure_of("total_tokens")
_Rows = Sequence[Mapping[str, Any]]


def factor_response(results: Results | pd.DataFrame, factor: str | None = None) -> Figure:
    """Two panels by the values of a factor, a line for each base arm; other factors are pooled.

    Raises `StudyError` where the factor is not there, has one value only, or has to be named.
    """
    found = arms_of(results)
    every = [r for a in found.arms for r in a.rows.values()]
    known = list(dict.fromkeys(name for r in every for name in factors_of(r)))
    if factor is None and len(known) > 1:
        raise StudyError(f"the study has the factors {', '.join(known)}; choose one: factor={known[0]!r}")
    chosen = factor or next(iter(known), "")
    if chosen not in known:
        raise StudyError(f"there is no factor {chosen!r}; there are {', '.join(known) or 'none'}")
    values = _values([_key(r, chosen) for r in every if chosen in factors_of(r)])
    if len(values) < 2:
        raise StudyError(f"the factor {chosen} has one value only, so there is no response to draw")
    groups = _groups(found.arms, chosen)
    drawn = marks(list(groups))
    with style():
        made = sheet(PAGE, 3.4)
        left, right = made.subplots(1, 2)
        for number, (name, of) in enumerate(groups.items()):
            at = [p + 0.06 * (number - (len(groups) - 1) / 2) for p in range(len(values))]
            rates = [rate_of(of.get(v, ())) for v in values]
            _line(left, at, [None if r.percent is None else (r.percent, *r.interval) for r in rates], drawn[name], name)
            _line(right, at, [_spent(of.get(v, ())) for v in values], drawn[name])
        for axes, title in ((left, "a   Tasks resolved"), (right, f"b   {_TOKENS.name.capitalize()} a task")):
            axes.set_xticks(range(len(values)), [str(v) for v in values])
            axes.set_xlim(-0.4, len(values) - 0.6)
            finish(axes, title, chosen.replace("_", " "))
        left.set_ylim(0, 100)
        percent_axis(left.yaxis)
        right.set_ylim(0, None)
        right.yaxis.set_major_formatter("{x:,.0f}")
        legend_above(made, left.get_legend_handles_labels()[0])
        pooled = [f for f in known if f != chosen]
        over = f" Pooled over {', '.join(pooled)}." if pooled else ""
        caption(made, f"{found.note()}. Bars: 95 % intervals by task (Wilson; bootstrap of the mean).{over}")
    lines = [
        f"{name}, {chosen} {value}: {rate_of(of[value])}, {_mean(of[value])}"
        for name, of in groups.items()
        for value in values
        if value in of
    ]
    made.set_label(f"Resolve rate and tokens a task by {chosen.replace('_', ' ')}. {'; '.join(lines)}.")
    return made


def _values(every: Iterable[Any]) -> list[Any]:
    """Numbers ascending; everything else in the order of the study."""
    found = list(dict.fromkeys(every))
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in found)
    return sorted(found) if numbers else found


def _key(row: Mapping[str, Any], factor: str) -> Any:
    value = factors_of(row)[factor]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _groups(arms: Sequence[Arm], factor: str) -> dict[str, dict[Any, list[Mapping[str, Any]]]]:
    """Rows by base arm (and model, where there are several) and value of the factor."""
    several = len({a.model for a in arms}) > 1
    found: dict[str, dict[Any, list[Mapping[str, Any]]]] = {}
    for arm in arms:
        for row in arm.rows.values():
            if factor in factors_of(row):
                base = str(row.get("arm_base") or arm.name)
                of = found.setdefault(f"{base}, {arm.model}" if several else base, {})
                of.setdefault(_key(row, factor), []).append(row)
    return found


def _spent(rows: _Rows) -> tuple[float, ...] | None:
    """The mean tokens of a task with its interval; `None` where they are not known of every row."""
    by_task: dict[tuple[str, str], list[float]] = {}  # the other factors' levels, and seeds, of one task are one
    for row in rows:
        by_task.setdefault((row["suite"], row["task"]), []).extend(_TOKENS.values([row]))
    every = [value for of in by_task.values() for value in of]
    return mean_between(every, list(by_task.values())) if every and len(every) == len(rows) else None


def _mean(rows: _Rows) -> str:
    spent = _spent(rows)
    return "tokens not known" if spent is None else f"{spent[0]:,.0f} tokens a task"


def _line(
    axes: Any, at: Sequence[float], found: Sequence[tuple[float, ...] | None], mark: ArmStyle, name: str = ""
) -> None:
    """The known of a line's points, each with the low and the high end of its interval."""
    known = [(x, *of) for x, of in zip(at, found, strict=True) if of is not None]
    bars = [[y - low for _, y, low, _ in known], [high - y for _, y, _, high in known]]
    look = {"color": mark.colour, "marker": mark.marker, "linestyle": mark.line, "markeredgecolor": "white"}
    axes.errorbar([x for x, *_ in known], [y for _, y, *_ in known], yerr=bars, label=name or None, capsize=3, **look)
