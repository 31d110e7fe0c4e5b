"""A study: arms, tasks, seeds and a name; run it, stop it, go on with it, read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop.study.contract import check, contract, declared
from rlm_loop.study.errors import StudyError, StudyInterrupted
from rlm_loop.study.grid import (
    Agent,
    ArmFactory,
    Cell,
    arm_settings,
    arms_for,
    cells,
    in_turn,
    model_name,
    task_digest,
)
from rlm_loop.study.identity import extended, identity, session
from rlm_loop.study.parallel import run_parallel
from rlm_loop.study.progress import Bar, Forecast, Lines, Progress, Silent, to_stderr, watching
from rlm_loop.study.results import Results
from rlm_loop.study.rows import Row, finished, key
from rlm_loop.study.runner import agent_of, run_cells, utc_now
from rlm_loop.study.store import Store, read_contract, read_lock, read_rows
from rlm_loop.tasks.base import Suite


@dataclass(frozen=True)
class Study:
    """A grid of arms x models x tasks x seeds.

    `arms` maps names to agents, or is a function of (model, seed) that returns such a mapping.  `tasks` is a suite
    or several, which are gone through in turn.  `model` is a name, a model object, or a list of them; `None` lets
    the agents of a mapping keep their own, and means "local" for a function.

    `differs` declares in what the arms may differ (names of `FACTORS`): before anything is run the first requests of
    all arms are compared, and any other difference is an `Unfair` error.  Where it is `None` the differences are only
    recorded.  It is no part of what identifies a study: it can be declared later.
    """

    name: str
    arms: Mapping[str, Agent] | ArmFactory
    tasks: Suite | Sequence[Suite]
    seeds: Sequence[int] = (0,)
    model: Any = None
    differs: Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "differs", declared(self.differs, self.name))

    @property
    def suites(self) -> tuple[Suite, ...]:
        return (self.tasks,) if isinstance(self.tasks, Suite) else tuple(self.tasks)

    @property
    def models(self) -> list[Any]:
        if self.model is None and not isinstance(self.arms, Mapping):
            return ["local"]
        return list(self.model) if isinstance(self.model, (list, tuple)) else [self.model]

    def agents(self) -> dict[tuple[str, int], dict[str, Agent]]:
        """The agents of each model (by name) and seed."""
        made = {(self._name(m), s): arms_for(self.arms, m, s) for m in self.models for s in self.seeds}
        if not made or not all(made.values()):
            raise StudyError(f"study {self.name!r} has no arms, models or seeds; give at least one of each")
        if len(made) != len(self.models) * len(self.seeds):
            raise StudyError(f"study {self.name!r} names a model or a seed twice")
        return made

    def _name(self, model: Any) -> str:
        if model is not None or not isinstance(self.arms, Mapping):
            return model_name("local" if model is None else model)
        own = {model_name(m) for a in self.arms.values() if (m := getattr(a, "model", None)) is not None}
        return ", ".join(sorted(own)) or "local"

    def cells(self, limit: int | None = None) -> list[Cell]:
        """The grid in the order of running; `limit` is a number of tasks."""
        return self._cells(self.agents(), limit)

    def _cells(self, agents: Mapping[tuple[str, int], Mapping[str, Agent]], limit: int | None) -> list[Cell]:
        names = list(next(iter(agents.values())))
        models = list(dict.fromkeys(model for model, _ in agents))
        return cells(names, models, in_turn(self.suites, limit), list(self.seeds))

    def run(
        self,
        folder: str | Path,
        progress: bool | Progress = True,
        limit: int | None = None,
        seconds: float | None = None,
        jobs: int = 1,
    ) -> Results:
        """Run what is not finished yet and return all results of the folder.

        `limit` is the number of tasks, taken from the suites in turn (a later run with more goes on from there);
        `seconds` starts no further task once that much time has passed; `jobs` cells run at a time.  Finished cells
        are skipped, crashed ones tried again.  Raises `StudyError` where the folder cannot be written or holds another
        configuration, `Unfair` where arms differ in what is not declared, `StudyInterrupted` on Ctrl-C, and
        `ModelError` where no arm could reach its model at all.
        """
        agents = self.agents()
        grid = self._cells(agents, limit)
        with Store(folder, self.name) as store:
            lock = extended(read_lock(folder), self._identity(agents, grid), folder)
            known = {key(r): r for r in read_rows(folder)}
            todo = [c for c in grid if c.key not in known or not finished(known[c.key])]
            # the lock's own mappings are sorted, and the rows of several jobs come in any order
            now = {**session(utc_now()), "arms": list(dict.fromkeys(c.arm for c in grid))}
            if todo and now["command"] not in [s["command"] for s in lock["sessions"] if _same(s, now)]:
                lock["sessions"].append(now)
            if todo:
                agreed = check(contract(self, limit=limit, agents=agents))
                store.write_contract(agreed.since(read_contract(folder)))
            store.write_lock(lock)
            done = [known[c.key] for c in grid if c.key in known and finished(known[c.key])]
            shown = _progress(progress, Forecast(todo, done, jobs), len(grid), self.name)
            try:
                if jobs > 1:
                    run_parallel(self.name, todo, agent_of(agents), store, shown, jobs=jobs, seconds=seconds)
                else:
                    run_cells(self.name, todo, agent_of(agents), store, shown, seconds=seconds)
            except StudyInterrupted as stopped:
                message = f"{stopped.message} (results: {folder})"
                raise StudyInterrupted(message, len(done) + stopped.finished, len(grid)) from None
            finally:
                shown.close()
        return results_of(folder, recorded=False)

    def _identity(self, agents: Mapping[tuple[str, int], Mapping[str, Agent]], grid: Sequence[Cell]) -> dict[str, Any]:
        arms: dict[str, dict[str, dict[str, Any]]] = {}
        for (model, _), by_arm in agents.items():
            for arm, agent in by_arm.items():
                arms.setdefault(arm, {}).setdefault(model, arm_settings(agent))
        tasks = {(c.suite, c.task.id): c.task for c in grid}
        return identity(self.name, arms, [(s, t, task_digest(t)) for (s, _), t in tasks.items()], self.seeds)


def _same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return all(old.get(k) == new[k] for k in ("machine", "packages"))


def _progress(wanted: bool | Progress, forecast: Forecast, planned: int, name: str) -> Progress:
    if not isinstance(wanted, bool):
        return wanted
    if not wanted:
        return Silent()
    return Bar(forecast, planned, name) if watching() else Lines(forecast, planned, to_stderr)


def results_of(folder: str | Path, *, recorded: bool) -> Results:
    """The results in a folder, its rows in the order of running."""
    lock, rows = read_lock(folder), read_rows(folder)
    if lock is None:
        raise StudyError(f"{folder} holds no study (no study.json); run one there, or give another folder")
    return Results(_in_order(rows), lock, str(folder), recorded)


def _in_order(rows: Sequence[Row]) -> list[Row]:
    """Rows with the tasks in the order of their first start; a cell tried again goes to where its task is."""
    tasks: dict[tuple[str, str], int] = {}
    for row in rows:
        tasks.setdefault((row["suite"], row["task"]), len(tasks))
    return sorted(rows, key=lambda r: tasks[r["suite"], r["task"]])


def load_study(folder: str | Path) -> Results:
    """The results of a study as recorded in a folder, loose or packed (`export`).

    Raises `StudyError` where the folder holds no study, or something in it cannot be read.
    """
    return results_of(folder, recorded=True)
