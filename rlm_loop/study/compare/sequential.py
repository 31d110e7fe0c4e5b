"""Reading a study while it runs: an interval after every task that stays honest however often one looks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rlm_loop.study.compare.pair_keys import PairKey, by_episode, complete_and_incomplete, is_resolved, pair_key
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.analysis import Analysis, read
from rlm_loop.study.results import Results
from rlm_loop.study.statistics.descriptive import mean
from rlm_loop.study.store.rows import frame_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("model", "arm", "baseline", "tasks", "task", "estimate", "low", "high", "decision")


def sequential(
    results: Results, arm: str, baseline: str | None = None, *, margin: float | None = None, alpha: float = 0.05
) -> pd.DataFrame:
    """Return a row after each task, in the order of running: the difference of the resolve rates, its always-valid
    interval, and the decision.

    Baseline and `margin` are as the study declared them (`Analysis`), where they are not given.  A study may be stopped
    at the first row whose `decision` is not "go on", and the interval of that row reported.  The price is width.  An
    observation is one task, the mean over its seeds (`bounded_sequence`); it counts once both arms were tried on every
    seed that any task has.  `estimate` is that of the pairs that are known, and the interval covers the worst and the
    best case of missing ones, so that nothing is decided by them.  Tasks count as independent and are taken to come in
    an order that has nothing to do with how they turn out.

    Ratios have none: no interval was found that holds at every look where some runs use many times as much as others
    (of 100 studies 16 were decided wrongly).  Raises `StudyError` for an unknown arm.
    """
    plan = read(results.lock) or Analysis()
    margin = plan.margin if margin is None else margin
    base = baseline or results.baseline
    for name in (arm, base):
        if name not in results.arms:
            raise StudyError(f"there is no arm {name!r}; there are {', '.join(results.arms)}")
    rows = [r for model in results.models for r in _of_model(results, model, arm, base, margin, alpha)]
    return frame_of(rows, COLUMNS)


def _of_model(
    results: Results, model: str, arm: str, base: str, margin: float, alpha: float
) -> Iterator[dict[str, Any]]:
    from rlm_loop.study.statistics import bounded_sequence

    of_episode, tasks = by_episode(results.rows), _tasks(results, model, arm, base)
    if not tasks:
        return
    worst: list[float | None] = []
    best: list[float | None] = []
    known: list[float] = []
    means: list[float | None] = []
    for units in tasks.values():
        pairs = [(is_resolved(of_episode[arm, u]), is_resolved(of_episode[base, u])) for u in units]
        worst.append(mean((h or False) - (t is not False) for h, t in pairs))
        best.append(mean((h is not False) - (t or False) for h, t in pairs))
        differences = [h - t for h, t in pairs if h is not None and t is not None]
        known += [sum(differences) / len(differences)] if differences else []
        means.append(mean(known))
    lows, highs = bounded_sequence(worst, alpha)[0].tolist(), bounded_sequence(best, alpha)[1].tolist()
    for n, (_, task) in enumerate(tasks, 1):
        low, high = max(lows[:n]), min(highs[:n])
        decision = _decision(low, high, margin)
        yield dict(zip(COLUMNS, (model, arm, base, n, task, means[n - 1], low, high, decision), strict=True))


def _tasks(results: Results, model: str, arm: str, base: str) -> dict[tuple[str, str], list[PairKey]]:
    """The units of each task that has all its seeds of both arms, in the order in which the tasks were completed."""
    there = {u for u in complete_and_incomplete(results.rows, (arm, base))[0] if u[0] == model}
    rows = sorted(
        (r for r in results.rows if r["arm"] in (arm, base) and pair_key(r) in there), key=lambda r: str(r["started"])
    )
    last: dict[tuple[str, str], dict[PairKey, None]] = {}
    for row in rows:
        of = last.pop((row["suite"], row["task"]), {})
        last[row["suite"], row["task"]] = {**of, pair_key(row): None}
    most = max((len(of) for of in last.values()), default=0)
    return {t: list(of) for t, of in last.items() if len(of) == most}


def _decision(low: float, high: float, margin: float) -> str:
    if margin:
        points = f"{100 * margin:g} points fewer"
        return f"no more than {points}" if low > -margin else f"more than {points}" if high < -margin else "go on"
    return "more" if low > 0 else "less" if high < 0 else "go on"
