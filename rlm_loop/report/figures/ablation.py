"""A heat map of an ablation: every combination of two factors, with its number written in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.cells import cells, factors_of, measure_of, value_of
from rlm_loop.report.figures.style import PAGE, SMALL, caption, sheet, style
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: From light to dark in one hue, so that grey paper shows the same order.
_SHADES = ("#f3f7fb", "#86b6d6", "#0072B2", "#00314d")


@dataclass(frozen=True)
class Square:
    """One combination: its value (a share in percent, or a mean), and the text that is written in."""

    value: float
    text: str


def ablation_heatmap(
    results: Results | pd.DataFrame,
    *,
    rows: str | None = None,
    columns: str | None = None,
    value: str = "resolved",
    arms: Iterable[str] | None = None,
) -> Figure:
    """What each combination of two factors comes to: the darker the more, with the number in it.

    `results` are a study's, or its `frame()`.  `rows` and `columns` name an ablation factor, a column or a fact.  By
    default: the study's first two factors, a panel for each base arm; with one factor the base arms by its values; with
    none the arms by the suites.  All else is pooled, and the caption says what.  `value` is `resolved` (percent) or a
    measure such as `input_tokens` (its mean a task).  Raises `StudyError` where there is nothing to draw, or
    matplotlib is missing.
    """
    found = cells(results, arms)
    every = [r for a in found.arms for r in a.rows.values()]
    down, across = _asked(every, rows, columns)
    pooled = [f for f in _factors(every) if f not in (down, across)]
    panels = _panels(every, down, across)
    tables = {name: _table(of, down, across, value) for name, of in panels.items()}
    shown = [s.value for squares in tables.values() for s in squares.values()]
    if not shown:
        raise StudyError(f"nothing is known of {value} for {down} by {across}; choose other rows or columns")
    ys = values_of(every, down)
    xs = values_of(every, across)
    unit = "%" if value == "resolved" else measure_of(value).name
    with style():
        from matplotlib.colors import LinearSegmentedColormap, Normalize

        made = sheet(min(PAGE, 1.6 + len(panels) * (0.5 + 0.85 * len(xs))), 1.3 + 0.46 * len(ys))
        grid: Any = made.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        scale = Normalize(0, 100 if value == "resolved" else max(shown) or 1)
        shades = LinearSegmentedColormap.from_list("ablation", _SHADES)
        for axes, (name, squares) in zip(grid, tables.items(), strict=True):
            for y, this in enumerate(ys):
                for x, that in enumerate(xs):
                    _square(axes, x, y, squares.get((this, that)), shades, scale)
            axes.set_xlim(-0.5, len(xs) - 0.5)
            axes.set_ylim(len(ys) - 0.5, -0.5)
            axes.set_xticks(range(len(xs)), [_say(v) for v in xs], rotation=30 if _long(xs) else 0,
                            ha="right" if _long(xs) else "center", rotation_mode="anchor")  # fmt: skip
            axes.set_yticks(range(len(ys)), [_say(v) for v in ys])
            axes.tick_params(length=0, labelcolor="black", labelsize=SMALL)
            for side in axes.spines.values():
                side.set_visible(False)
            axes.set_xlabel(_axis(across))
            if name:
                axes.set_title(name, loc="left", fontsize=9, fontweight="bold")
        grid[0].set_ylabel(_axis(down))
        what = "tasks resolved" if value == "resolved" else f"mean {unit} a task"
        over = f" Pooled over {', '.join(pooled)}." if pooled else ""
        caption(made, f"{what[0].upper()}{what[1:]}. {found.note()}.{over}")
    made.set_label(_told(tables, down, across, what))
    return made


def _asked(every: Sequence[Mapping[str, Any]], rows: str | None, columns: str | None) -> tuple[str, str]:
    known = _factors(every)
    if len(known) >= 2:
        defaults = (known[0], known[1])
    elif known:
        defaults = ("arm_base" if any("arm_base" in r for r in every) else "arm", known[0])
    else:
        defaults = ("arm", "suite")
    down = rows or next(d for d in defaults if d != columns)
    across = columns or next(d for d in reversed(defaults) if d != down)
    for name in (down, across):
        if all(value_of(r, name) is None for r in every):
            raise StudyError(f"no row has a {name}; use one of {', '.join([*known, 'arm', 'suite', 'level'])}")
    return down, across


def _factors(every: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for r in every for name in factors_of(r)))


def _panels(every: Sequence[Mapping[str, Any]], down: str, across: str) -> dict[str, list[Mapping[str, Any]]]:
    """A panel a base arm and model, where there are several and neither axis tells them apart."""
    apart = [
        name
        for name in ("arm_base", "model")
        if name not in (down, across)
        and not (name == "arm_base" and "arm" in (down, across))
        and len({value_of(r, name) for r in every}) > 1
    ]
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in every:
        found.setdefault(", ".join(str(value_of(row, name)) for name in apart), []).append(row)
    return found


def _table(every: Sequence[Mapping[str, Any]], down: str, across: str, value: str) -> dict[tuple[Any, Any], Square]:
    groups: dict[tuple[Any, Any], list[Mapping[str, Any]]] = {}
    for row in every:
        groups.setdefault((_key(value_of(row, down)), _key(value_of(row, across))), []).append(row)
    made = {place: _value(of, value) for place, of in groups.items()}
    return {place: square for place, square in made.items() if square is not None}


def _value(rows: Sequence[Mapping[str, Any]], value: str) -> Square | None:
    if value == "resolved":
        judged = [v for r in rows if (v := is_resolved(r)) is not None]
        share = 100 * sum(judged) / len(judged) if judged else 0.0
        return Square(share, f"{share:.0f} %\n{sum(judged)}/{len(judged)}") if judged else None
    asked = measure_of(value)
    numbers = [total_tokens(r) if value == "total_tokens" else r.get(value) for r in rows]
    known = [float(n) for n in numbers if n is not None]
    if not known or len(known) < len(rows):
        return None
    middle = sum(known) / len(known)
    return Square(middle, asked.format.format(x=middle))


def values_of(every: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Numbers ascending; everything else in the order of the study."""
    found = list(dict.fromkeys(_key(value_of(r, name)) for r in every))
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in found)
    return sorted(found) if numbers else found


def _key(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _square(axes: Any, x: int, y: int, square: Square | None, shades: Any, scale: Any) -> None:
    from matplotlib.patches import Rectangle

    place = (x - 0.5, y - 0.5)
    if square is None:
        axes.add_patch(Rectangle(place, 1, 1, facecolor="white", edgecolor="#bdbdbd", hatch="///", linewidth=0))
        return
    at = float(scale(square.value)) if scale.vmax > scale.vmin else 0.5
    axes.add_patch(Rectangle(place, 1, 1, facecolor=shades(at), edgecolor="white", linewidth=1.5))
    axes.text(x, y, square.text, ha="center", va="center", fontsize=SMALL, color=_ink(shades(at)))


def _ink(fill: Sequence[float]) -> str:
    """Black or white, whichever stands out more (relative luminance, WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in fill[:3]]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else "white"


def _say(value: Any) -> str:
    return "none" if value is None or value == "" else f"{value:,}" if isinstance(value, int) else str(value)


def _axis(name: str) -> str:
    return {"arm_base": "arm"}.get(name, name.replace("_", " "))


def _long(values: Sequence[Any]) -> bool:
    return max(len(_say(v)) for v in values) > 9


def _told(tables: Mapping[str, Mapping[tuple[Any, Any], Square]], down: str, across: str, what: str) -> str:
    lines = [
        f"{f'{name}, ' if name else ''}{_axis(down)} {_say(y)}, {_axis(across)} {_say(x)}: "
        + s.text.replace("\n", ", ")
        for name, squares in tables.items()
        for (y, x), s in squares.items()
    ]
    return f"Heat map of {what} by {_axis(down)} and {_axis(across)}. {'; '.join(lines)}."
