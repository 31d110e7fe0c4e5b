"""Where the spread of outcomes comes from: tasks, wordings, runs, loops."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rlm_loop.errors import install_line
from rlm_loop.study.errors import StudyError
from rlm_loop.study.statistics.clusters import Floats
from rlm_loop.study.statistics.ratios import expanded_tail

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("component", "variance", "share", "low", "high", "note")
GROUPS = ("task", "wording", "run", "loop")
#: Where a frame of `Results` has a group under another name, the likeliest first.
_ALSO = {"run": ("seed",), "loop": ("arm_base", "arm")}
#: A variance below this part of the whole is none: the search has ended where there is none.
_NONE = 1e-5
_SINGULAR = "none was found (a singular fit): it is no larger than chance would make it"


def variance_components(
    frame: pd.DataFrame,
    outcome: str = "resolved",
    groups: Sequence[str] = GROUPS,
    *,
    alpha: float = 0.05,
    resamples: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """One row for each component: its variance, its share of their sum, and the interval of the variance.

    `frame` is `Results.frame()`, or any with a column for each group; a run may be called `seed`, a loop `arm`.  Tasks
    are a sample, so the task is a random effect.  Loops, wordings and groups of other names are what they are: each of
    their levels has an effect of its own, and their component is the variance of these effects without what chance
    adds.  `interaction` is what single tasks have of their own for one loop or wording, and `run` what is left between
    runs of one task in the same way.  Where nothing was run twice these two cannot be told apart: they are `residual`.

    It is a linear model of the outcome (of `resolved`: of its chance), fitted by restricted maximum likelihood with
    statsmodels' `MixedLM`: N. M. Laird & J. H. Ware, Biometrics 38 (1982); the fixed groups after C. R. Henderson,
    Biometrics 9 (1953), method 3.  Of balanced data all this is the analysis of variance.  The interval is a percentile
    bootstrap over whole tasks, `resamples` fits.  A group that the frame has not, or has one level of, is left out, and
    a fit without variance gives 0; `note` says both.  Levels that each belong to one level of another group (wordings
    that are named after their loop) are compared within it.  A resample that cannot be fitted is left out, and `note`
    counts these.  Raises `StudyError` for fewer than 3 tasks, an outcome that is no number, data
    that no model can be fitted to, and where statsmodels is missing.
    """
    try:
        import pandas
        import statsmodels.regression.mixed_linear_model  # noqa: F401  # pyright: ignore[reportMissingTypeStubs, reportUnusedImport]
    except ModuleNotFoundError as error:
        raise StudyError(f"variance components need {error.name}: {install_line('studies')}") from None
    if "task" not in groups:
        raise StudyError("variance components are those of tasks and other groups; name 'task' among them")
    data, left_out = _data(frame, outcome, groups)
    found = _fitted(data, None)
    if found is None:
        raise StudyError("no mixed model can be fitted to so little data: more tasks, or fewer groups")
    rng, drawn = np.random.default_rng(seed), list[dict[str, float]]()
    for _ in range(resamples):
        if again := _fitted(data.of_tasks(rng.integers(0, data.tasks, data.tasks)), found.start):
            drawn.append(again.variances)
    lost = resamples - len(drawn)
    without = f"the interval is of {len(drawn)} of {resamples} resamples, the others cannot be fitted" if lost else ""
    tail = expanded_tail(data.tasks, alpha)
    total = sum(found.variances.values())
    rows: list[dict[str, Any]] = []
    for name, variance in found.variances.items():
        of = [one[name] for one in drawn if name in one]
        low, high = np.quantile(of, [tail, 1 - tail]) if of else (math.nan, math.nan)
        note = "; ".join(filter(None, [_SINGULAR if not variance else "", without]))
        rows.append(
            dict(
                zip(
                    COLUMNS,
                    (name, variance, variance / total if total else math.nan, float(low), float(high), note),
                    strict=True,
                )
            )
        )
    rows += [{"component": name, "note": f"left out: {why}"} for name, why in left_out.items()]
    return pandas.DataFrame(rows, columns=list(COLUMNS))


@dataclass(frozen=True)
class _Data:
    """An outcome a row, the rows sorted by task; `levels` has the number of each row's level of each fixed group.

    Rows of one task and `cell` were run in the same way; `again`: there are such rows.
    """

    y: Floats
    task: Any
    levels: dict[str, Any]
    cell: Any
    again: bool
    has_runs: bool

    @property
    def tasks(self) -> int:
        return int(self.task.max()) + 1

    def of_tasks(self, chosen: Any) -> _Data:
        """The rows of these tasks; one that is chosen twice is two tasks."""
        ends: list[int] = np.searchsorted(self.task, np.arange(self.tasks + 1)).tolist()
        rows = np.concatenate([np.arange(ends[t], ends[t + 1]) for t in chosen])
        task = np.repeat(np.arange(len(chosen)), [ends[t + 1] - ends[t] for t in chosen])
        levels = {name: of[rows] for name, of in self.levels.items()}
        return replace(self, y=self.y[rows], task=task, levels=levels, cell=self.cell[rows])


@dataclass(frozen=True)
class _Fit:
    variances: dict[str, float]
    start: Any


def _data(frame: pd.DataFrame, outcome: str, groups: Sequence[str]) -> tuple[_Data, dict[str, str]]:
    columns = {name: next((c for c in (name, *_ALSO.get(name, ())) if c in frame), None) for name in groups}
    if outcome not in frame or columns["task"] is None:
        missing = outcome if outcome not in frame else "task"
        raise StudyError(f"the frame has no column {missing!r}; it has {', '.join(map(str, frame.columns))}")
    try:
        known = frame[frame[outcome].notna()]
        known = known.assign(**{outcome: known[outcome].astype(float)})
    except (TypeError, ValueError):
        raise StudyError(f"{outcome!r} is no number in every row; choose another outcome") from None
    tasks = [known["suite"].astype(str) + "/" + known["task"].astype(str)] if "suite" in known else [known["task"]]
    task = _codes(tasks[0])
    order = np.argsort(task, kind="stable")
    known, task = known.iloc[order], task[order]
    if not task.size or task.max() < 2:
        raise StudyError("variance components need 3 tasks or more, each with an outcome")
    y = known[outcome].to_numpy(float)
    levels: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name in groups:
        column = columns[name]
        of = None if column is None else _codes(known[column].astype(str))
        if of is None:
            left_out[name] = f"the frame has no column {name!r}"
        elif of.max() < 1:
            left_out[name] = f"there is one {name}"
        elif name not in ("task", "run"):
            levels[name] = of
    cell = task.copy()
    for of in levels.values():
        cell = cell * (int(of.max()) + 1) + of
    again = len(np.unique(cell)) < y.size
    return _Data(y, task, levels, cell, again, "run" in groups and "run" not in left_out), left_out


def _codes(values: Any) -> Any:
    return values.astype("category").cat.codes.to_numpy().astype(int)


def _fitted(data: _Data, start: Any) -> _Fit | None:
    """The fit, searched for from `start`; `None` where there is none, as of data that has too little in it."""
    from statsmodels.regression.mixed_linear_model import (  # pyright: ignore[reportMissingTypeStubs]
        MixedLM,
        VCSpec,
    )

    exog, parts = _design(data)
    whole = float(np.var(data.y))
    if not whole:
        names = ["task", *parts, "run" if data.again and data.has_runs else "residual"]
        return _Fit(dict.fromkeys(names, 0.0), start)
    crossed = bool(data.levels) and data.again
    spec: Any = None
    if crossed:
        ends = np.searchsorted(data.task, np.arange(data.tasks + 1))
        names, matrices = list[Any](), list[Any]()
        for first, last in pairwise(ends):
            cells = np.unique(data.cell[first:last])
            matrices.append((data.cell[first:last, None] == cells).astype(float))
            names.append([str(c) for c in cells])
        spec = VCSpec(["cell"], [names], [matrices])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a variance that is 0, which `note` says
        model: Any = MixedLM(data.y, exog, data.task, exog_re=np.ones((data.y.size, 1)), exog_vc=spec)
        # gradients lead nowhere where the largest likelihood is at a variance of 0, as it often is
        try:
            fit: Any = model.fit(reml=True, start_params=start, method="powell")
        except np.linalg.LinAlgError:
            return None
    variances = {"task": float(fit.cov_re[0, 0])}
    for name, part in parts.items():
        chosen, every = part.columns, part.effects
        effects, cov = fit.fe_params[chosen], np.asarray(fit.cov_params())[np.ix_(chosen, chosen)]
        squares = float(((every @ effects) ** 2).sum() - np.trace(every @ cov @ every.T))
        variances[name] = squares / len(chosen)
    if crossed:
        variances["interaction"] = float(fit.vcomp[0])
    variances["run" if data.again and data.has_runs else "residual"] = float(fit.scale)
    kept = {name: v if v > _NONE * whole else 0.0 for name, v in variances.items()}
    return _Fit(kept, fit.params_object)


@dataclass(frozen=True)
class _Part:
    """The columns of a fixed group in a design, and how the effects of its levels follow from their coefficients."""

    columns: list[int]
    effects: Any


def _design(data: _Data) -> tuple[Floats, dict[str, _Part]]:
    """An intercept, and columns of each fixed group whose effects sum to zero: over all its levels, or within the level
    of another group that each of them belongs to (wordings of a loop)."""
    columns: list[Any] = [np.ones(data.y.size)]
    parts: dict[str, _Part] = {}
    for name, of in data.levels.items():
        blocks: list[Any] = []
        first = len(columns)
        for members in _families(of, [other for o, other in data.levels.items() if o != name]):
            *own, last = members
            columns += [(of == level).astype(float) - (of == last) for level in own]
            blocks.append(np.vstack([np.eye(len(own)), -np.ones(len(own))]))
        size = len(columns) - first
        effects = np.zeros((sum(len(b) for b in blocks), size))
        row = column = 0
        for block in blocks:
            effects[row : row + block.shape[0], column : column + block.shape[1]] = block
            row, column = row + block.shape[0], column + block.shape[1]
        parts[name] = _Part(list(range(first, len(columns))), effects)
    return np.column_stack(columns), parts


def _families(of: Any, others: Sequence[Any]) -> list[list[int]]:
    """The levels of a group that are compared with each other."""
    levels = range(int(of.max()) + 1)
    for other in others:
        home = [set(other[of == level].tolist()) for level in levels]
        if all(len(h) == 1 for h in home) and len(set.union(*home)) < len(home):
            parents = [h.pop() for h in home]
            return [[level for level in levels if parents[level] == one] for one in dict.fromkeys(parents)]
    return [list(levels)]
