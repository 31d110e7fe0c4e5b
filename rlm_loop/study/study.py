"""A study: arms, tasks, seeds and a name; run it, stop it, go on with it, read it."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, cast

from rlm_loop.accounting.budget import Budget
from rlm_loop.models.names import default_model, model_name
from rlm_loop.study.correct import correct
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.analysis import Analysis
from rlm_loop.study.plan.factorial_design import DesignedArm, Values, changed, checked, factorial_design
from rlm_loop.study.plan.fairness_check import declared_factors, fairness_check, require_fair
from rlm_loop.study.plan.grid import (
    ArmFactory,
    Arms,
    Episode,
    StudyAgent,
    arm_settings,
    arms_for,
    by_name,
    episodes,
    in_turn,
    suites_of,
    task_digest,
)
from rlm_loop.study.plan.identity import identity, local_models, mark_of
from rlm_loop.study.plan.power import StudyPower, planned_power
from rlm_loop.study.results import Results, load_study
from rlm_loop.study.run.progress import Progress
from rlm_loop.study.run.run_plan import RunPlan, run_plan
from rlm_loop.tasks.base import Suite, Task


@dataclass(frozen=True)
class Study:
    """A grid of arms x factors x models x tasks x seeds.

    `arms` maps names to agents (or is a list of such pairs, or of agents, named by their strategy), or is a function
    of (model, seed) that returns such a mapping.  `tasks` is a suite or several, which are gone through in turn, or a
    list of tasks.  `model` is a name, a model object, or a
    list of them; `None` lets the agents of a mapping keep their own, and means the default one for a function.

    `factors` are ablations: they map a field of the agents to a list of values (or a mapping of labels to values), and
    every arm is run with each of them, under names such as `lean[max_depth=0]`.  `budget` limits each episode, in place
    of the agents' own; `max_steps` is short for its limit of steps, and leaves the agents' other limits as they are.
    `question` is what the study is to answer, for reports.

    `differs` declares in what the arms may differ (names of `FACTORS`): before anything is run the first requests of
    all arms are compared, and any other difference is an `Unfair` error.  Where it is `None` the differences are only
    recorded.  The arms of a block (a task, model and seed) are run in an order of chance that `order_seed` gives
    (`None`: as declared).  Question, `differs` and order are no part of what identifies a study: they can change later.

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
    budget: Budget | None = None
    order_seed: int | None = 0
    analysis: Analysis | None = None
    max_steps: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise StudyError(f"a study's name is a text, not {self.name!r:.60}: Study(name, arms, tasks)")
        if isinstance(self.seeds, int):
            raise StudyError(f"study {self.name!r}: seeds is a list, not {self.seeds}: write seeds=[{self.seeds}]")
        object.__setattr__(self, "seeds", _whole(self.seeds, self.name))
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise StudyError(
                f"study {self.name!r}: budget is a Budget, such as Budget(steps=5), not {self.budget!r:.60}"
            )
        if self.max_steps is not None and (isinstance(self.max_steps, bool) or not isinstance(self.max_steps, int)):
            raise StudyError(f"study {self.name!r}: max_steps is a whole number, not {self.max_steps!r:.60}")
        object.__setattr__(self, "tasks", suites_of(self.tasks, self.name))
        object.__setattr__(self, "differs", declared_factors(self.differs, self.name))
        checked(self.factors, self.name)

    @property
    def suites(self) -> tuple[Suite, ...]:
        return (self.tasks,) if isinstance(self.tasks, Suite) else cast("tuple[Suite, ...]", tuple(self.tasks))

    @property
    def models(self) -> list[Any]:
        if self.model is None and callable(self.arms):
            return [default_model()]
        return list(self.model) if isinstance(self.model, (list, tuple)) else [self.model]

    @property
    def identity(self) -> str:
        """A hash of what the study is: name, arms, models, tasks with their truths and scorers, seeds, local weights
        and slots, and the code of this package.

        How models are reached, how and where episodes are run, their order, the question and what is declared to differ
        are no part of it.
        """
        agents, arms = self._made()
        return mark_of(self._identity(agents, self._episodes(agents, arms, None)))

    def agents(self) -> dict[tuple[str, int], dict[str, StudyAgent]]:
        """The agents of each model (by name) and seed; arms that are crossed with factors once for each value."""
        return self._made()[0]

    def _made(self) -> tuple[dict[tuple[str, int], dict[str, StudyAgent]], list[DesignedArm]]:
        made: dict[tuple[str, int], dict[str, StudyAgent]] = {}
        names: list[str] = []
        for model, seed in product(self.models, self.seeds):
            arms = arms_for(self.arms, model, seed)
            if (self._name(model), seed) in made:
                raise StudyError(f"study {self.name!r} names a model or a seed twice")
            if made and list(arms) != names:
                raise StudyError(
                    f"study {self.name!r} has other arms for {self._name(model)}, seed {seed}; make them alike"
                )
            names = list(arms)
            made[self._name(model), seed] = self._designed(arms)
        if not names:
            raise StudyError(f"study {self.name!r} has no arms, models or seeds; give at least one of each")
        return made, self._design(names)

    def _designed(self, arms: Mapping[str, StudyAgent]) -> dict[str, StudyAgent]:
        limit: dict[str, Any] = {} if self.budget is None else {"budget": self.budget}
        limit |= {} if self.max_steps is None or "max_steps" in self.factors else {"max_steps": self.max_steps}
        every = self._design(list(arms))
        return by_name([(c.name, changed(arms[c.base], {**c.change, **limit}, c.base)) for c in every])

    def _design(self, arms: Sequence[str]) -> list[DesignedArm]:
        return factorial_design(arms, checked(self.factors, self.name))

    def _name(self, model: Any) -> str:
        if model is not None or callable(self.arms):
            return model_name(default_model() if model is None else model)
        own = {model_name(m) for a in by_name(self.arms).values() if (m := getattr(a, "model", None)) is not None}
        return ", ".join(sorted(own)) or default_model()

    def episodes(self, limit: int | None = None) -> list[Episode]:
        """The grid in the order of running; `limit` is a number of tasks.  Raises `StudyError` for an empty grid."""
        agents, arms = self._made()
        return self._episodes(agents, arms, limit)

    def _episodes(
        self, agents: Mapping[tuple[str, int], Mapping[str, StudyAgent]], arms: Sequence[DesignedArm], limit: int | None
    ) -> list[Episode]:
        empty = [repr(suite.name) for suite in self.suites if not len(suite)]
        if empty or not self.suites:
            which = f"suite {', '.join(empty)} is empty" if empty else "it has no suite"
            raise StudyError(f"study {self.name!r} has nothing to run: {which}; give tasks")
        models = list(dict.fromkeys(model for model, _ in agents))
        return episodes(arms, models, in_turn(self.suites, limit), list(self.seeds), self.order_seed)

    def power(
        self, discordant: Sequence[float] = (0.1, 0.2, 0.3), *, power: float = 0.8, alpha: float = 0.05
    ) -> StudyPower:
        """What the planned tasks can show, how many would give that `power`, and what looking early costs.

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
        progress: bool | Progress = True,
        limit: int | None = None,
        seconds: float | None = None,
        jobs: int | None = None,
        executor: Executor | None = None,
        retry_failed: bool = False,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        mixed: bool = False,
        share: tuple[int, int] | None = None,
    ) -> Results:
        """Run what is not finished yet and return all results of the folder.

        `limit` is the number of tasks, taken from the suites in turn (a later run with more goes on from there);
        `seconds` starts no further task once that much time has passed; `jobs` episodes run at a time (one, or
        as many as the executor has workers), in threads or on the `executor`: any `concurrent.futures.Executor`, whose
        workers share the folder and which is given only what pickles.  Episodes that have a row are skipped;
        `retry_failed` runs those again that failed.  `max_cost` (US dollars) is for the whole study, what is in the
        folder included: no episode is started that could exceed it (see `Spending`); `max_tokens` is the same for
        tokens, in and out.  A folder whose rows were made with other code of this package, or of before that was
        recorded, is gone on with only where `mixed` says so; a changed scorer, truth, question or file of weights
        never is.  `share` is for a job of an array (see `submit`).  A `StudyWarning` says where a study ended before
        its grid did, and where rows are mixed.

        Raises `StudyError` where the folder cannot be written or holds another configuration, or its disk is full,
        `Unfair` where arms differ in what is not declared, `StudyInterrupted` on Ctrl-C, and `ModelError` where no arm
        could reach its model at all.
        """
        _require_limits(limit=limit, seconds=seconds, jobs=jobs)
        agents, arms = self._made()
        grid = self._episodes(agents, arms, limit)
        whole = self._episodes(agents, arms, None)
        names = list(dict.fromkeys(c.name for c in arms))
        if self.analysis is not None:
            self.analysis.fits(names)
        return run_plan(
            RunPlan(
                self.name,
                self.question,
                names,
                agents,
                grid,
                self._identity(agents, grid),
                self.order_seed,
                self.analysis,
                tuple(self.factors),
                _planned(names, whole, self.seeds),
            ),
            folder,
            lambda: require_fair(fairness_check(self, limit=limit, agents=agents)),
            progress=progress,
            seconds=seconds,
            jobs=jobs,
            executor=executor,
            retry_failed=retry_failed,
            max_cost=max_cost,
            max_tokens=max_tokens,
            mixed=mixed,
            share=share,
        )

    def rescore(self, folder: str | Path) -> Results:
        """Score the recorded episodes of tasks whose truth or scorer was corrected, and return all results.

        The old score stays in the row (`scored_before`), and `study.json` notes the correction; see `correct`.
        """
        correct(self.name, {(suite.name, task.id): task for suite in self.suites for task in suite}, folder)
        return load_study(folder)

    def _identity(
        self, agents: Mapping[tuple[str, int], Mapping[str, StudyAgent]], grid: Sequence[Episode]
    ) -> dict[str, Any]:
        arms: dict[str, dict[str, dict[str, Any]]] = {}
        for (model, _), by_arm in agents.items():
            for arm, agent in by_arm.items():
                arms.setdefault(arm, {}).setdefault(model, arm_settings(agent))
        tasks = {(c.suite, c.task.id): c.task for c in grid}
        local = local_models(agent for by_arm in agents.values() for agent in by_arm.values())
        return identity(self.name, arms, [(s, t, task_digest(t)) for (s, _), t in tasks.items()], self.seeds, local)


def _planned(arms: Sequence[str], whole: Sequence[Episode], seeds: Sequence[int]) -> dict[str, Any]:
    """The plan that a study locks before its first episode."""
    tasks: dict[str, dict[str, None]] = {}
    for episode in whole:
        tasks.setdefault(episode.suite, {})[episode.task.id] = None
    models = list(dict.fromkeys(episode.model for episode in whole))
    ids = {suite: list(of) for suite, of in tasks.items()}
    return {"arms": list(arms), "models": models, "tasks": ids, "seeds": list(seeds)}


def _require_limits(*, limit: Any, seconds: Any, jobs: Any) -> None:
    for name, value, kind, least in (
        ("limit", limit, int, 0),
        ("seconds", seconds, (int, float), 0),
        ("jobs", jobs, int, 1),
    ):
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind) or not value >= least):
            what = "a number" if name == "seconds" else "a whole number"
            raise StudyError(f"{name} is {what}, {least} or more, or None, not {value!r:.60}")


def _whole(seeds: Iterable[Any], name: str) -> tuple[int, ...]:
    """The seeds as numbers of Python's own: they go into every row."""
    try:
        return tuple(operator.index(seed) for seed in seeds)
    except TypeError:
        raise StudyError(f"study {name!r}: seeds are whole numbers, such as [0, 1], not {seeds!r:.60}") from None
