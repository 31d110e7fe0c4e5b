"""The rows of a study as figures need them: by arm, on the units that every arm was tried on; and the measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.study import statistics
from rlm_loop.study.compare.pair_keys import by_episode, complete_and_incomplete
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd

Unit = tuple[str, str, int]
_NEEDED = ("arm", "model", "suite", "task", "seed", "resolved")


@dataclass(frozen=True)
class Arm:
    """An arm (with one model): its row of each unit (suite, task, seed) that every arm was tried on."""

    name: str
    model: str
    label: str
    rows: Mapping[Unit, Mapping[str, Any]]


@dataclass(frozen=True)
class Arms:
    """`left_out` counts the units that are not there because an arm was not tried on them yet."""

    arms: Sequence[Arm]
    models: Sequence[str]
    left_out: int

    def note(self) -> str:
        """Say which model, how many tasks, and how many are left out: the beginning of a caption."""
        sizes = sorted({len(a.rows) for a in self.arms})
        many = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        seeds = {u[2] for a in self.arms for u in a.rows}
        what = "tasks" if len(seeds) < 2 else f"tasks x seeds ({len(seeds)} seeds)"
        left = f"; {self.left_out} left out, since not every arm was tried on them" if self.left_out else ""
        models = "".join(f"{model}, " for model in self.models if model)
        return f"{models}{many} {what} an arm, every arm on the same{left}"


def arms_of(results: Results | pd.DataFrame, arms: Iterable[str] | None = None, columns: Iterable[str] = ()) -> Arms:
    """The arms of results or of their `frame()`, on the units that every arm was tried on.

    `arms` are those to use, in their order: by default all, in the order of the study, or of their first row in a
    frame.  Where there are several models, each arm is there once a model.  Raises `StudyError` where a column is
    missing, for an unknown arm, for a unit with two rows, and where there is no unit that every arm was tried on.
    """
    rows = rows_of(results)
    missing = [c for c in dict.fromkeys((*_NEEDED, *columns)) if not any(c in r for r in rows)]
    if rows and missing:
        raise StudyError(f"the frame has no column {', '.join(missing)}; give results.frame() of a study")
    there = results.arms if isinstance(results, Results) else list(dict.fromkeys(str(r["arm"]) for r in rows))
    wanted = wanted_arms(arms, there)
    models = list(dict.fromkeys(str(r["model"]) for r in rows))
    mine = [r for r in rows if r["arm"] in wanted]
    of_episode = by_episode(mine)
    units, left = complete_and_incomplete(mine)
    found: list[Arm] = []
    for model in models:
        whole = [u for u in units if u[0] == model]
        for arm in wanted:
            label = f"{arm}, {model}" if len(models) > 1 else arm
            found.append(Arm(arm, model, label, {u[1:]: of_episode[arm, u] for u in whole if (arm, u) in of_episode}))
    if not any(a.rows for a in found):
        raise StudyError("there is no task that every arm was tried on, so there is nothing to draw yet")
    return Arms(found, models, len(left))


def wanted_arms(arms: Iterable[str] | None, there: Iterable[str]) -> list[str]:
    """The arms that are asked for, by default all that are there.  Raises `StudyError` for one that is not there."""
    known = list(dict.fromkeys(there))
    wanted = known if arms is None else list(arms)
    if unknown := [arm for arm in wanted if arm not in known]:
        raise StudyError(f"there is no arm {unknown[0]!r}; there are {', '.join(known)}")
    return wanted


def mean_between(values: Sequence[float], groups: Sequence[Sequence[float]] | None = None) -> tuple[float, ...]:
    """The mean of values, and the ends of its 95 % bootstrap interval.

    Values of one of the `groups` belong together; by default each stands for itself.
    """
    middle = sum(values) / len(values)
    each = values if groups is None else [sum(of) / len(of) for of in groups]
    low, high = statistics.bootstrap(each) or (middle, middle)
    return middle, min(low, middle), max(high, middle)


def rows_of(results: Results | pd.DataFrame) -> list[Mapping[str, Any]]:
    """The rows of results or of a frame, with `None` where pandas has NaN, and `error` where a frame was cut."""
    if isinstance(results, Results):
        return list(results.rows)
    rows: list[Mapping[str, Any]] = []
    for row in results.to_dict("records"):
        clean = {str(name): None if isinstance(v, float) and v != v else v for name, v in row.items()}
        rows.append({"error": None, **clean})
    return rows


def factors_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ablation factors of a row; none where the study has none."""
    found = row.get("factors")
    return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True)
class Measure:
    """A `column` of a study's rows (`total_tokens`: input plus output), its name, and the format of a mean."""

    column: str
    name: str
    format: str

    def values(self, rows: Iterable[Mapping[str, Any]]) -> list[float]:
        """The known figures of some rows."""
        found = [total_tokens(r) if self.column == "total_tokens" else r.get(self.column) for r in rows]
        return [float(n) for n in found if n is not None]


_MEASURES = {
    column: Measure(column, name, form)
    for column, name, form in (
        ("total_tokens", "tokens (in + out)", "{x:,.0f}"),
        ("input_tokens", "prompt tokens", "{x:,.0f}"),
        ("output_tokens", "output tokens", "{x:,.0f}"),
        ("new_tokens", "prompt tokens not cached", "{x:,.0f}"),
        ("scaffold_tokens", "scaffold tokens", "{x:,.0f}"),
        ("steps", "steps", "{x:,.1f}"),
        ("calls", "model calls", "{x:,.1f}"),
        ("seconds", "seconds", "{x:,.1f}"),
        ("cost", "$", "{x:.4g}"),
    )
}


def measure_of(column: str) -> Measure:
    """Raises `StudyError` for one that is not known."""
    if column not in _MEASURES:
        raise StudyError(f"there is no measure {column!r}; there are {', '.join(_MEASURES)}")
    return _MEASURES[column]
