"""A study: arms, tasks, seeds and a name; run it, stop it, go on with it, read it."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from rlm_loop.models.names import default_model, model_name
from rlm_loop.study.errors import StudyError, StudyWarning
from rlm_loop.study.plan.analysis import Analysis, StudyPower, agreed, planned, planned_power
from rlm_loop.study.plan.fairness import Unfair, declared_factors, fairness_check
from rlm_loop.study.plan.grid import (
    Agents,
    ArmFactory,
    Arms,
    DesignedArm,
    Episode,
    StudyAgent,
    Values,
    arms_for,
    by_name,
    changed,
    checked,
    episodes,
    factorial_design,
    in_turn,
    suites_of,
)
from rlm_loop.study.plan.identity import extended, identity, mark_of, mixture, session, versions_of
from rlm_loop.study.results import Results, load_study
from rlm_loop.study.run.episode import can_be_scored, correct, utc_now
from rlm_loop.study.run.progress import Progress
from rlm_loop.study.run.runner import InTurn, Runner, executor_named, workers_of
from rlm_loop.study.run.spending import Spending
from rlm_loop.study.store.folder import Store
from rlm_loop.study.store.reading import FAIRNESS, LOCK, every_row, latest, read_lock
from rlm_loop.study.store.rows import Row, key, to_run
from rlm_loop.tasks.base import Suite, Task


@dataclass(frozen=True, repr=False)
class Study:
    """A grid of arms x factors x models x tasks x seeds.

    `arms` maps names to agents, is one agent, or is a function of (model, seed) that returns such a mapping.  `tasks`
    is a suite or several, which are gone through in turn, or a list of tasks.  `model` is a name, a model object, or a
    list of them; `None` lets the agents of a mapping keep their own, and means the default one for a function.
    `question` is for reports.

    `factors` are ablations: they map a field of the agents to a list of values (or a mapping of labels to values), and
    every arm is run with each of them, under names such as `lean[max_depth=0]`.

    `differs` declares in what the arms may differ (names of `FACTORS`): before anything is run the first requests of
    all arms are compared, and any other difference is an `Unfair` error.  Where it is `None` the differences are only
    recorded.  The arms of a block (a task, model and seed) are run in an order of chance.  Question and `differs` are
    no part of what identifies a study: they can change later.

    `analysis` declares what is tested (`Analysis`); it is locked in `study.json` before the first episode, and a folder
    with episodes refuses another.

    Raises `StudyError` for an argument or a factor that cannot be.
    """

    name: str
    arms: Arms | ArmFactory
    tasks: Suite | Sequence[Suite] | Sequence[Task]
    seeds: Sequence[int] = (0,)
    model: Any = None
    differs: Sequence[str] | None = None
    question: str = ""
    factors: Mapping[str, Values] = field(default_factory=dict[str, Values])
    analysis: Analysis | None = None

    def __post_init__(self) -> None:
        try:  # numbers of Python's own: they go into every row
            object.__setattr__(self, "seeds", tuple(operator.index(seed) for seed in self.seeds))
        except TypeError:
            raise StudyError(
                f"study {self.name!r}: seeds must be whole numbers in a list, got {self.seeds!r}"
            ) from None
        object.__setattr__(self, "tasks", suites_of(self.tasks, self.name))
        object.__setattr__(self, "differs", declared_factors(self.differs, self.name))
        checked(self.factors, self.name)

    def __repr__(self) -> str:
        arms = list(self.arms) if isinstance(self.arms, Mapping) else self.arms
        return f"Study({self.name!r}, arms={arms!r}, tasks={list(self.suites)!r}, seeds={list(self.seeds)!r})"

    @property
    def suites(self) -> Sequence[Suite]:
        """The suites that the tasks are of."""
        return suites_of(self.tasks, self.name)

    @property
    def models(self) -> list[Any]:
        """The models, by name or as objects; `None` for the agents' own."""
        if self.model is None and callable(self.arms):
            return [default_model()]
        return list(self.model) if isinstance(self.model, (list, tuple)) else [self.model]

    @property
    def identity(self) -> str:
        """A hash of name, arms, models, tasks with their truths and scorers, seeds, local weights and slots, and the
        code of this package that runs episodes.
        """
        agents, arms = self._made()
        return mark_of(identity(self.name, agents, self._episodes(agents, arms, None), self.seeds))

    def agents(self) -> dict[tuple[str, int], dict[str, StudyAgent]]:
        """The agents of each model (by name) and seed; arms that are crossed with factors once for each value."""
        return self._made()[0]

    def _made(self) -> tuple[dict[tuple[str, int], dict[str, StudyAgent]], list[DesignedArm]]:
        factors = checked(self.factors, self.name)
        made: dict[tuple[str, int], dict[str, StudyAgent]] = {}
        names: list[str] = []
        for model, seed in product(self.models, self.seeds):
            arms, of = arms_for(self.arms, model, seed), (self._name(model), seed)
            if of in made:
                raise StudyError(f"study {self.name!r} names a model or a seed twice")
            if made and list(arms) != names:
                raise StudyError(f"study {self.name!r} has other arms for {of[0]}, seed {seed}; make them alike")
            names = list(arms)
            every = factorial_design(names, factors)
            made[of] = {c.name: changed(arms[c.base], c.change, c.base) for c in every}
        if not names:
            raise StudyError(f"study {self.name!r} has no arms, models or seeds; give at least one of each")
        return made, factorial_design(names, factors)

    def _name(self, model: Any) -> str:
        if model is not None or callable(self.arms):
            return model_name(default_model() if model is None else model)
        own = {model_name(m) for a in by_name(self.arms).values() if (m := getattr(a, "model", None)) is not None}
        return ", ".join(sorted(own)) or default_model()

    def episodes(self, limit: int | None = None) -> list[Episode]:
        """The grid in the order of running; `limit` is a number of tasks.  Raises `StudyError` for an empty grid."""
        return self._episodes(*self._made(), limit)

    def _episodes(self, agents: Agents, arms: Sequence[DesignedArm], limit: int | None) -> list[Episode]:
        empty = [repr(suite.name) for suite in self.suites if not len(suite)]
        if empty or not self.suites:
            which = f"suite {', '.join(empty)} is empty" if empty else "it has no suite"
            raise StudyError(f"study {self.name!r} has nothing to run: {which}; give tasks")
        models = list(dict.fromkeys(model for model, _ in agents))
        return episodes(arms, models, in_turn(self.suites, limit), self.seeds)

    def power(
        self, discordant: Sequence[float] = (0.1, 0.2, 0.3), *, power: float = 0.8, alpha: float = 0.05
    ) -> StudyPower:
        """Compute what the planned tasks can show, and how many would give that `power`.

        `discordant` are shares of tasks that just one of two arms resolves, which nobody knows before a run.  The
        claims are those of `analysis` (of a default one where none is declared), one for each arm but the baseline,
        model and measure of its family.  McNemar's exact test is counted out; a margin takes the usual approximation.
        """
        plan = self.analysis or Analysis()
        agents = self.agents()
        arms, models = len(next(iter(agents.values()))), len({model for model, _ in agents})
        claims = (models - 1 if arms == 1 else (arms - 1) * models) * len(plan.family)
        tasks = sum(map(len, self.suites))
        return planned_power(tasks, max(1, claims), plan, discordant=discordant, power=power, alpha=alpha)

    def run(
        self,
        folder: str | Path,
        progress: bool = True,
        limit: int | None = None,
        seconds: float | None = None,
        jobs: int | None = None,
        executor: Executor | str | None = None,
        retry_failed: bool = False,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        mixed: bool = False,
        share: tuple[int, int] | None = None,
    ) -> Results:
        """Run what is not finished yet and return all results of the folder.

        `limit` is the number of tasks, taken from the suites in turn (a later run with more goes on from there);
        `seconds` starts no further task once that much time has passed; `jobs` episodes run at a time (one, or
        as many as the executor has workers), in threads or on the `executor`: any `concurrent.futures.Executor`
        (or the name of one that an installed package offers), whose workers share the folder and which is given only
        what pickles.  Episodes that have a row are skipped;
        `retry_failed` runs those again that failed.  `max_cost` (US dollars) is for the whole study, what is in the
        folder included: no episode is started that could exceed it (see `Spending`); `max_tokens` is the same for
        tokens, in and out.  A folder whose rows were made with other code of this package is gone on with only where
        `mixed` says so; a changed scorer, truth, question or file of weights never is.  A `share` (i, n) is every n-th
        episode from the i-th on, for a job of an array (see `submit`).  A `StudyWarning` says where a study ended
        before its grid did, and where rows are mixed.

        Raises `StudyError` where the folder cannot be written or holds another configuration, or its disk is full,
        `Unfair` where arms differ in what is not declared, `StudyInterrupted` on Ctrl-C, and `ModelError` where no arm
        could reach its model at all.
        """
        agents, arms = self._made()
        grid = self._episodes(agents, arms, limit)
        names = [arm.name for arm in arms]
        if self.analysis is not None and self.analysis.baseline not in (None, *names):
            raise StudyError(f"analysis: there is no arm {self.analysis.baseline!r}; there are {', '.join(names)}")
        with Store(folder, self.name, None if share is None else share[0]) as store, ExitStack() as opened:
            old, every = read_lock(folder), list(every_row(folder))
            if share is not None and old is None:
                raise StudyError(f"{folder} has no study.json: rlm-loop study submit writes it before its jobs begin")
            known = {key(row): row for row in latest(every)}
            todo = _left(grid if share is None else grid[share[0] :: share[1]], known, folder, retry_failed)
            now = identity(self.name, agents, grid, self.seeds)
            lock = extended(old, now, folder, more=bool(todo), mixed=mixed)
            lock |= agreed(old, self.analysis, bool(every), folder)
            lock |= planned(old, self._plan(names, agents), bool(every))
            lock |= {"question": self.question, "identity": mark_of(lock), "model_versions": versions_of(every)}
            if share is None:
                if todo:
                    found = fairness_check(self, limit=limit, agents=agents)
                    if not found.fair:
                        raise Unfair(found)
                    store.write(FAIRNESS, found.to_dict())
                    self._begin(lock, names, "" if old is None else mixture(old, now))
                store.write(LOCK, lock)
                opened.callback(_note_versions, store, lock)
            limits = {"max_cost": max_cost, "max_tokens": max_tokens}

            def agent_of(episode: Episode) -> StudyAgent:
                return agents[episode.model, episode.seed][episode.arm]

            spending = [Spending(name, most, agent_of, every) for name, most in limits.items() if most is not None]
            for limited in spending:
                limited.check(todo)
            waiting = {episode.key for episode in todo}
            done = [known[e.key] for e in grid if e.key in known and e.key not in waiting]
            if isinstance(executor, str):
                executor = opened.enter_context(executor_named(executor))
            jobs = jobs or (1 if executor is None else workers_of(executor))
            if executor is None:
                in_threads = ThreadPoolExecutor(jobs, thread_name_prefix="episode") if jobs > 1 else InTurn()
                executor = opened.enter_context(in_threads)
            shown = opened.enter_context(closing(Progress(done, len(grid), shown=progress)))
            runner = Runner(self.name, todo, agent_of, store, shown, every, spending, seconds)
            runner.run_on(executor, jobs)
        return self._ended(runner, spending, replace(load_study(folder), recorded=False))

    def _plan(self, arms: Sequence[str], agents: Agents) -> dict[str, Any]:
        """Arms, models, tasks and seeds of the whole study, whatever a run is limited to."""
        models = list(dict.fromkeys(model for model, _ in agents))
        tasks = {suite.name: [task.id for task in suite] for suite in self.suites}
        return {"arms": list(arms), "models": models, "tasks": tasks, "seeds": list(self.seeds)}

    def _begin(self, lock: dict[str, Any], arms: Sequence[str], mixed: str) -> None:
        """Note in the lock that a session begins, unless one like it is there."""
        # the lock's own mappings are sorted, and the rows of several jobs come in any order
        now = {**session(utc_now(), local=bool(lock["local_models"])), "arms": arms}
        if mixed:
            now["mixed"] = mixed
            warnings.warn(f"{self.name}: the rows of this folder are a mixture: {mixed}", StudyWarning, stacklevel=3)
        alike = ("command", "machine", "package", "mixed")
        if not any(all(s.get(part) == now.get(part) for part in alike) for s in lock["sessions"]):
            lock["sessions"].append(now)

    def _ended(self, runner: Runner, spending: Sequence[Spending], results: Results) -> Results:
        """The results; it is told where the study ended before its grid did."""
        if runner.stopped and runner.left:
            raise StudyError(
                f"{self.name} ended with {runner.left} episodes to go: {runner.stopped} (results: "
                f"{results.folder}); mend the arm and run with retry_failed, or run the same again to go on"
            )
        for limit in spending:
            if runner.left and limit.stopped:
                warnings.warn(limit.ended(self.name, runner.left), StudyWarning, stacklevel=3)
        return results

    def rescore(self, folder: str | Path) -> Results:
        """Score the recorded episodes of tasks whose truth or scorer was corrected, and return all results.

        The old score stays in the row (`scored_before`), and `study.json` notes the correction; see `correct`.
        """
        correct(self.name, {(suite.name, task.id): task for suite in self.suites for task in suite}, folder)
        return load_study(folder)


def _left(
    grid: Iterable[Episode], known: Mapping[tuple[str, str, str, str, int], Row], folder: str | Path, retry_failed: bool
) -> list[Episode]:
    """The episodes that are still to be run, or only to be scored."""
    left: list[Episode] = []
    for episode in grid:
        row = known.get(episode.key)
        if can_be_scored(folder, row):
            left.append(replace(episode, unscored=row))
        elif to_run(row, retry_failed=retry_failed):
            left.append(episode)
    return left


def _note_versions(store: Store, lock: Mapping[str, Any]) -> None:
    """Note the models' versions that the rows of this run have."""
    versions = versions_of(every_row(store.folder))
    if versions != lock["model_versions"]:
        store.write(LOCK, {**lock, "model_versions": versions})
