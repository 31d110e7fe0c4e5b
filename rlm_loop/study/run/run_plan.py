"""The scheduler of one run of a study: what is left of its grid, where it is run, and what is noted in its folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlm_loop.study.errors import StudyError, StudyInterrupted, StudyWarning
from rlm_loop.study.plan.analysis import Analysis
from rlm_loop.study.plan.analysis import agreed as agreed_analysis
from rlm_loop.study.plan.analysis import planned as planned_pairs
from rlm_loop.study.plan.fairness import FairnessCheck
from rlm_loop.study.plan.fairness_check import unequal
from rlm_loop.study.plan.grid import Episode, StudyAgent
from rlm_loop.study.plan.identity import Versions, extended, mark_of, mixture, session
from rlm_loop.study.results import Results, results_of
from rlm_loop.study.run.episode import agent_of, can_be_scored, run_episodes
from rlm_loop.study.run.progress import Bar, Lines, Progress, Silent, Tally, to_stderr, watching
from rlm_loop.study.run.run_on import run_on, workers_of
from rlm_loop.study.run.scheduler import Scheduler, utc_now
from rlm_loop.study.run.spending import limits_of
from rlm_loop.study.store.folder import Store
from rlm_loop.study.store.reading import every_row, latest, read_lock
from rlm_loop.study.store.rows import key, to_run


@dataclass(frozen=True)
class RunPlan:
    """A study made ready: the names of its arms, the agents, the episodes in their order, and what identifies it."""

    name: str
    question: str
    arms: Sequence[str]
    agents: Mapping[tuple[str, int], Mapping[str, StudyAgent]]
    grid: Sequence[Episode]
    identity: dict[str, Any]
    order_seed: int | None
    analysis: Analysis | None = None
    varied: tuple[str, ...] = ()
    planned: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arms, models, tasks and seeds of the whole study, whatever this run is limited to."""


def run_plan(
    study: RunPlan,
    folder: str | Path,
    agreed: Callable[[], FairnessCheck],
    *,
    progress: bool | Progress,
    seconds: float | None,
    jobs: int | None,
    executor: Executor | None,
    retry_failed: bool,
    max_cost: float | None,
    max_tokens: int | None,
    mixed: bool = False,
    share: tuple[int, int] | None = None,
) -> Results:
    """Run what is not finished yet; arguments and errors as `Study.run` has them.

    A `share` (i, n) is every n-th episode of the grid from the i-th on, for a job of an array: its rows go into a file
    of its own, and what describes the study is there already and only compared.

    `agreed` gives the fairness check of the arms, or raises where they differ in what is not declared; it is asked only
    where there is something to run.
    """
    find = agent_of(study.agents)
    with Store(folder, study.name, None if share is None else share[0]) as store, ExitStack() as opened:
        old = read_lock(folder)
        if share is not None and old is None:
            raise StudyError(f"{folder} has no study.json: rlm-loop study submit writes it before its jobs begin")
        every = list(every_row(folder))
        known = {key(r): r for r in latest(every)}
        todo = [
            replace(c, unscored=known[c.key]) if can_be_scored(known.get(c.key)) else c
            for c in (study.grid if share is None else study.grid[share[0] :: share[1]])
            if can_be_scored(known.get(c.key)) or to_run(known.get(c.key), retry_failed=retry_failed)
        ]
        lock = extended(old, study.identity, folder, more=bool(todo), mixed=mixed)
        lock |= agreed_analysis(old, study.analysis, bool(every), folder) | planned_pairs(
            old, study.planned, bool(every)
        )
        _refuse_shared_traces(todo, every, folder)
        if todo and share is None:
            found = agreed()
            for line in unequal(found, study.varied):
                warnings.warn(line, StudyWarning, stacklevel=4)
            store.write_fairness_check(found)
            _begin(study, lock, old)
        versions = Versions(every)
        noted = {**lock, "question": study.question, "identity": mark_of(lock)}
        if share is None:
            store.write_lock({**noted, **versions.noted()})
        planned = {c.key for c in study.grid} - {c.key for c in todo}
        done = [row for episode, row in known.items() if episode in planned]
        spending = limits_of(max_cost, max_tokens, find, every)
        for limit in spending:
            limit.check(todo)
        jobs = jobs or (1 if executor is None else workers_of(executor))
        if executor is None and jobs > 1:
            executor = opened.enter_context(ThreadPoolExecutor(jobs, thread_name_prefix="episode"))
        shown = _progress(progress, Tally(done), len(study.grid), study.name)
        with closing(shown):
            scheduler = Scheduler(todo, store, shown, seconds=seconds, spending=spending, versions=versions, rows=every)
            try:
                if executor is not None:
                    run_on(executor, study.name, scheduler, find, store.folder, jobs)
                else:
                    run_episodes(study.name, scheduler, find, store.folder)
            except StudyInterrupted as stopped:
                message = f"{stopped.message} (results: {folder})"
                raise StudyInterrupted(message, len(done) + stopped.finished, len(study.grid)) from None
            finally:
                if versions.learned and share is None:
                    store.write_lock({**noted, **versions.noted()})
    if scheduler.stopped and scheduler.left:
        raise StudyError(
            f"{study.name} ended with {scheduler.left} episodes to go: {scheduler.stopped} (results: {folder}); mend "
            "the arm and run with retry_failed, or run the same again to go on all the same"
        )
    if scheduler.left:
        for limit in spending:
            if limit.stopped:
                warnings.warn(limit.ended(study.name, scheduler.left), StudyWarning, stacklevel=3)
    results = results_of(folder, recorded=False)
    for arm in results.arms:
        kinds = sorted({str(r["isolation"]) for r in results.rows if r["arm"] == arm and r.get("isolation")})
        if todo and len(kinds) > 1:
            where = f"{arm}: cells ran as {' and as '.join(map(repr, kinds))} in this folder"
            warnings.warn(f"{where}; every row says which, and see `rlm-loop doctor`", StudyWarning, stacklevel=3)
    return results


def _refuse_shared_traces(todo: Iterable[Episode], rows: Iterable[Mapping[str, Any]], folder: str | Path) -> None:
    """Raise `StudyError` where an episode would append to the trace of another one, since their names differ only in
    marks that file names leave out."""
    taken = {row["trace"]: key(row) for row in rows}
    for episode in todo:
        if taken.get(episode.trace, episode.key) != episode.key:
            raise StudyError(
                f"{episode.key} would share the trace {episode.trace} with {taken[episode.trace]} of {folder}; "
                "rename one of them, or choose another folder"
            )


def _begin(study: RunPlan, lock: dict[str, Any], old: Mapping[str, Any] | None) -> None:
    """Note in the lock that a session begins, unless one like it is there."""
    # the lock's own mappings are sorted, and the rows of several jobs come in any order
    now = {**session(utc_now(), local=bool(lock["local_models"])), "arms": study.arms, "order_seed": study.order_seed}
    if old is not None and (other := mixture(old, study.identity)):
        now["mixed"] = other
        warnings.warn(f"{study.name}: the rows of this folder are a mixture: {other}", StudyWarning, stacklevel=4)
    if now["command"] not in [s["command"] for s in lock["sessions"] if _same(s, now)]:
        lock["sessions"].append(now)


def _same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return all(old.get(k) == new.get(k) for k in ("machine", "packages", "package", "mixed"))


def _progress(wanted: bool | Progress, tally: Tally, planned: int, name: str) -> Progress:
    if not isinstance(wanted, bool):
        return wanted
    if not wanted:
        return Silent()
    return Bar(tally, planned, name) if watching() else Lines(tally, planned, to_stderr)
