"""What a study runs: arms x models x tasks x seeds, in an order that keeps an unfinished study paired."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeGuard, cast

from rlm_loop.messages import digest
from rlm_loop.models.names import Seeded, without_folder
from rlm_loop.outcome import Outcome
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.factorial_design import DesignedArm
from rlm_loop.tasks.base import Deferred, Suite, Task


class StudyAgent(Protocol):
    """What a study needs of an arm: it attempts a task, and its settings tell it from other arms."""

    def settings(self) -> Mapping[str, Any]: ...

    def attempt(self, task: Task, *, trace: str | Path | None = None) -> Outcome: ...


#: Arms by name; as pairs, a name that is there twice is noticed (in a mapping Python keeps only the last).
Arms = Mapping[str, StudyAgent] | Sequence[tuple[str, StudyAgent]]
#: Makes the arms for a model (a name or an object) and a seed.
ArmFactory = Callable[[Any, int], Arms]

#: Bytes of a name in a file's name.
_LONGEST = 100

#: Settings that say how a model is reached, not what it computes: a change of these may resume a study.
TRANSPORT = frozenset(
    {"api_base", "api_key", "base_url", "headers", "hooks", "max_retries", "organization", "retries", "timeout"}
)


@dataclass(frozen=True)
class Episode:
    """One run of the grid.  `trace` is the file of its trace, relative to the study's folder.

    Of an arm that was crossed with factors, `base` is the arm without them and `factors` says what it has of each.
    `unscored` is the row of an attempt that was made: it only has to be scored.
    """

    arm: str
    model: str
    suite: str
    task: Task
    seed: int
    trace: str
    base: str = ""
    factors: Mapping[str, Any] = field(default_factory=dict[str, Any])
    unscored: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return (self.arm, self.model, self.suite, self.task.id, self.seed)


def arms_for(arms: Arms | ArmFactory, model: Any, seed: int) -> dict[str, StudyAgent]:
    """The arms for one model and seed.

    A mapping's agents get the model (unless it is `None`); all agents with a model's name get the seed, where they
    have none of their own.  Others are simply run again for each seed.  Raises `StudyError` where two arms have one
    name.
    """
    if callable(arms):
        arms, model = arms(model, seed), None
    return {name: _seeded(agent, model, seed) for name, agent in by_name(arms).items()}


def by_name(arms: Arms) -> dict[str, StudyAgent]:
    """The arms as a mapping.  Raises `StudyError` where two have one name, or a name is no text."""
    if _is_agent(arms):
        arms = [(str(getattr(arms, "name", "")), arms)]
    if not isinstance(arms, (Mapping, Iterable)):
        raise StudyError(f'arms are agents by name, such as {{"lean": LeanAgent()}}, not {arms!r:.60}')
    given: list[Any] = list(arms.items()) if isinstance(arms, Mapping) else list(arms)
    pairs = [(str(getattr(each, "name", "")), each) if _is_agent(each) else each for each in given]
    named: dict[str, StudyAgent] = {}
    for name, agent in pairs:
        if not isinstance(name, str) or not name.strip():
            raise StudyError(f"an arm is called {name!r}; give it a name that is text")
        if not _is_agent(agent):
            raise StudyError(f"the arm {name!r} is no agent but {agent!r:.60}: give one, such as LeanAgent()")
        if name in named:
            raise StudyError(f"two arms are called {name!r}; rename one of them")
        named[name] = agent
    return named


def _is_agent(value: Any) -> TypeGuard[StudyAgent]:
    return not isinstance(value, type) and callable(getattr(value, "attempt", None))


def suites_of(tasks: Any, study: str) -> Any:
    """Tasks of a study as suites: a list of tasks is the suite `tasks`.  Raises `StudyError` for what is neither."""
    if isinstance(tasks, Suite):
        return tasks
    if isinstance(tasks, Task):
        return Suite("tasks", (tasks,))
    if isinstance(tasks, str):
        raise StudyError(
            f"study {study!r}: tasks is a suite, not {tasks!r}: write get_suite({tasks!r}) (rlm_loop.tasks)"
        )
    given = tuple(tasks) if isinstance(tasks, Iterable) else (tasks,)
    if given and all(isinstance(each, Task) for each in given):
        return Suite("tasks", cast("tuple[Task, ...]", given))
    other = next((each for each in given if not isinstance(each, Suite)), None)
    if other is not None:
        raise StudyError(f"study {study!r}: tasks is a suite, suites or tasks, not {other!r:.60} among them")
    return given


def _seeded(agent: StudyAgent, model: Any, seed: int) -> StudyAgent:
    if not is_dataclass(agent):
        return agent
    record: Any = agent
    known = {f.name for f in fields(record) if f.init}
    change: dict[str, Any] = {}
    if model is not None and "model" in known:
        change["model"] = model
    named: Any = change.get("model", getattr(agent, "model", ""))
    if not isinstance(named, str) or isinstance(named, Seeded):
        pass  # a model object has its own seed
    elif "seed" in known:
        if record.seed is None:
            change["seed"] = seed
    elif "model" in known:
        change["model"] = Seeded(named, seed)
    return replace(record, **change) if change else agent


def models_of(agent: StudyAgent) -> dict[str, Any]:
    """The models of an arm, by role: `model`, and `sub_model` of its sub-calls; names or objects."""
    below = getattr(getattr(agent, "subcalls", None), "model", None)
    models = {"model": getattr(agent, "model", None), "sub_model": below}
    return {role: model for role, model in models.items() if model is not None}


def in_turn(suites: Sequence[Suite], limit: int | None = None) -> list[tuple[str, Task]]:
    """The tasks of all suites, one of each suite in turn, at most `limit`: any beginning covers all suites."""
    longest = max((len(s) for s in suites), default=0)
    mixed = [(s.name, s.tasks[i]) for i in range(longest) for s in suites if i < len(s)]
    return mixed if limit is None else mixed[:limit]


def episodes(
    arms: Sequence[DesignedArm],
    models: Sequence[str],
    tasks: Sequence[tuple[str, Task]],
    seeds: Sequence[int],
    order_seed: int | None = None,
) -> list[Episode]:
    """The grid in the order of running: tasks outermost, then models and seeds, and arms innermost.

    With an `order_seed` the arms of each block (a task, model and seed) are in an order of chance, so that what drifts
    (the machine, a provider) meets all arms alike.  Raises `StudyError` where two episodes cannot be told apart.
    """
    grid = [
        Episode(
            arm.name,
            model,
            suite,
            task,
            seed,
            trace_path(arm.name, model, suite, task.id, seed),
            arm.base,
            arm.values,
        )
        for suite, task in tasks
        for model in models
        for seed in seeds
        for arm in _by_chance(arms, order_seed, model, suite, task.id, seed)
    ]
    seen: dict[str, Episode] = {}
    for episode in grid:
        other = seen.setdefault(episode.trace, episode)
        if other is not episode:
            raise StudyError(
                f"episodes {other.key} and {episode.key} would share the trace {episode.trace}; rename one of them"
            )
    return grid


def _by_chance(arms: Sequence[DesignedArm], order_seed: int | None, *block: Any) -> Sequence[DesignedArm]:
    """The arms sorted by a hash: any order is as likely, and an arm added later leaves the order of the others."""
    if order_seed is None:
        return arms
    return sorted(arms, key=lambda arm: digest([order_seed, *block, arm.name]))


def trace_path(arm: str, model: str, suite: str, task: str, seed: int) -> str:
    """The model is always named: another one may join a study's folder later."""
    return f"traces/{slug(model)}/{slug(arm)}/{slug(suite)}--{slug(task)}--{seed}.jsonl"


def slug(name: str) -> str:
    """A name as a file name; a long one ends in its hash, since two of them and a seed have 255 bytes together."""
    plain = re.sub(r"[^A-Za-z0-9.+_-]+", "_", name.replace("/", "-")).lstrip(".") or "_"
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 9]}-{digest(name)[:8]}"


def task_digest(task: Task) -> str:
    """What makes a task the same task: its question, context, set-up, files and what is collected."""
    files = {n: digest(c if isinstance(c, str) else c.hex()) for n, c in task.files.items()}
    context = task.context.identify() if isinstance(task.context, Deferred) else repr(task.context)
    inside = [task.question, task.setup, files, task.collect, task.inline, context]
    return digest(inside)[:16]


def arm_settings(agent: StudyAgent) -> dict[str, Any]:
    """What identifies an arm: its settings without the seed and without how the model is reached."""
    import json

    settings = {k: v for k, v in agent.settings().items() if k != "seed"}
    return json.loads(json.dumps(_without_transport(settings), default=str))


def _without_transport(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _without_transport(v) for k, v in value.items() if str(k) not in TRANSPORT}
    if isinstance(value, (list, tuple)):
        return [_without_transport(v) for v in value]
    return without_folder(value) if isinstance(value, str) else value
