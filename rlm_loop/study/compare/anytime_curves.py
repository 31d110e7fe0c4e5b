"""Resolve rate against budget: what runs with a smaller budget would have come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tqdm import tqdm

from rlm_loop.agents.attempts.anytime import Anytime, By, Scores, anytime
from rlm_loop.study.results import Results
from rlm_loop.study.store.rows import finished
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.traces.trace import TraceError


@dataclass(frozen=True)
class AnytimeCurve:
    """For each budget: how many of `runs` are right at its end, and how many were right at some time until then.

    The second is what an oracle that stops a run at the right moment would get; where the two part, runs broke what
    they had mended.  `by` is what the budget is counted in.
    """

    by: By
    budgets: tuple[float, ...]
    resolved: tuple[int, ...]
    ever: tuple[int, ...]
    runs: int

    @property
    def rates(self) -> tuple[float, ...]:
        return tuple(count / self.runs for count in self.resolved) if self.runs else ()


def curve(runs: Sequence[Anytime], by: By = "step", budgets: Iterable[float] | None = None) -> AnytimeCurve:
    """The curve of several runs; by default a point at every budget at which something changes.

    A run that ended earlier counts with its last state.  Runs of which the spending is not known are left out.
    """
    known = [run for run in runs if all(getattr(state, by) is not None for state in run.states)]
    at = sorted(set(budgets)) if budgets is not None else sorted(_changes(known, by))
    resolved: list[int] = []
    ever: list[int] = []
    for budget in at:
        ends = [run.within(budget, by) for run in known]
        resolved.append(sum(end is not None and bool(end.resolved) for end in ends))
        ever.append(sum(any(s.resolved and getattr(s, by) <= budget for s in run.states) for run in known))
    return AnytimeCurve(by, tuple(at), tuple(resolved), tuple(ever), len(known))


def anytime_of(
    results: Results, tasks: Suite | Sequence[Suite], *, scores: Scores | None = None, progress: bool = False
) -> dict[str, list[Anytime]]:
    """The runs of a study by arm, read from its traces and scored; on the units that every arm was tried on.

    Crashes, tasks without a workspace, and those that the suites given do not hold, are left out. `progress` shows a
    bar on standard error. Raises `TraceError` where a trace is missing.
    """
    suites = (tasks,) if isinstance(tasks, Suite) else tuple(tasks)
    known: Mapping[tuple[str, str], Task] = {(s.name, t.id): t for s in suites for t in s}
    kept: Scores = {} if scores is None else scores
    found: dict[str, list[Anytime]] = {arm: [] for arm in results.arms}
    for row in tqdm(
        [r for r in results.complete_pairs if finished(r)],
        desc="scoring",
        unit=" runs",
        disable=None if progress else True,
    ):
        task = known.get((row["suite"], row["task"]))
        if task is None or task.workspace is None:  # without a workspace there is no state to score
            continue
        try:
            found[row["arm"]].append(anytime(task, results.trace(row), scores=kept))
        except TraceError as error:
            raise TraceError(f"{row['trace']}: {error}") from None
    return found


def _changes(runs: Sequence[Anytime], by: By) -> set[float]:
    points: set[float] = set()
    for run in runs:
        before: bool | None = None
        for number, state in enumerate(run.states):
            last = number + 1 == len(run.states)
            if state.resolved is not before or not number or last:
                points.add(getattr(state, by))
            before = state.resolved
    return points
