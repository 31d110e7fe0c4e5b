"""The grid of a study: arms x factors x models x tasks x seeds, in an order that keeps an unfinished study paired."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from rlm_loop.errors import nearest
from rlm_loop.messages import digest
from rlm_loop.models import Model, ModelError, get_model
from rlm_loop.models.names import Seeded, without_folder
from rlm_loop.outcome import Outcome
from rlm_loop.study.errors import StudyError
from rlm_loop.tasks.base import Deferred, Suite, Task


class StudyAgent(Protocol):
    """An arm: it attempts a task, and its settings tell it from other arms."""

    def settings(self) -> Mapping[str, Any]: ...

    def attempt(self, task: Task, *, trace: str | Path | None = None) -> Outcome: ...


#: Arms by name, or one agent.
Arms = Mapping[str, StudyAgent] | StudyAgent
#: Makes the arms for a model (a name or an object) and a seed.
ArmFactory = Callable[[Any, int], Arms]

#: The agents of each model (by name) and seed.
Agents = Mapping[tuple[str, int], Mapping[str, StudyAgent]]

#: A factor's values: a list, or a mapping of labels to values where a value is no number, text or named object.
Values = Sequence[Any] | Mapping[str, Any]

#: Bytes of a name in a file's name.
_LONGEST = 100

#: Settings that say how a model is reached, not what it computes: a change of these may resume a study.
TRANSPORT = frozenset(
    {"api_base", "api_key", "base_url", "headers", "hooks", "max_retries", "organization", "retries", "timeout"}
)


@dataclass(frozen=True)
class Episode:
    """A run of the grid.  `trace` is the file of its trace, relative to the study's folder.

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
        """The arm, model, suite, task and seed."""
        return (self.arm, self.model, self.suite, self.task.id, self.seed)


@dataclass(frozen=True)
class DesignedArm:
    """An arm of the grid: `base` is the arm that was declared, `values` the label it has of each factor."""

    name: str
    base: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    change: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


def arms_for(arms: Arms | ArmFactory, model: Any, seed: int) -> dict[str, StudyAgent]:
    """The arms for one model and seed.

    A mapping's agents get the model (unless it is `None`); all agents with a model's name get the seed, where they
    have none of their own.  Others are simply run again for each seed.
    """
    if callable(arms):
        arms, model = arms(model, seed), None
    return {name: _seeded(agent, model, seed) for name, agent in by_name(arms).items()}


def by_name(arms: Arms) -> dict[str, StudyAgent]:
    """The arms as a mapping; an agent alone is named by its strategy.  Raises `StudyError` for what is no agent."""
    if _is_agent(arms):
        return {str(getattr(arms, "name", "arm")): arms}
    if not isinstance(arms, Mapping):
        raise StudyError(f'arms are agents by name, such as {{"lean": LeanAgent()}}, not {arms!r:.60}')
    for name, agent in arms.items():
        if not _is_agent(agent):
            raise StudyError(f"the arm {name!r} is no agent but {agent!r:.60}: give one, such as LeanAgent()")
    return dict(arms)


def _is_agent(value: Any) -> TypeGuard[StudyAgent]:
    return not isinstance(value, type) and callable(getattr(value, "attempt", None))


def suites_of(tasks: Any, study: str) -> tuple[Suite, ...]:
    """Tasks of a study as suites: a list of tasks is the suite `tasks`.  Raises `StudyError` for what is neither."""
    given: tuple[Any, ...] = tuple(tasks) if isinstance(tasks, (list, tuple)) else (tasks,)
    if given and all(isinstance(each, Task) for each in given):
        return (Suite("tasks", given),)
    if other := [each for each in given if not isinstance(each, Suite)]:
        raise StudyError(
            f"study {study!r}: tasks must be suites or tasks, not {other[0]!r:.60} (a suite by its name: get_suite)"
        )
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
    if isinstance(named, str) and not isinstance(named, Seeded):  # a model object has its own seed
        if "seed" in known:
            change |= {"seed": seed} if record.seed is None else {}
        elif "model" in known:
            change["model"] = Seeded(named)
            change["model"].seed = seed
    return replace(record, **change) if change else agent


def models_of(agent: StudyAgent) -> dict[str, Any]:
    """The models of an arm, by role: `model`, and `sub_model` of its sub-calls; names or objects."""
    below = getattr(getattr(agent, "subcalls", None), "model", None)
    models = {"model": getattr(agent, "model", None), "sub_model": below}
    return {role: model for role, model in models.items() if model is not None}


def made_model(model: Any) -> Model | None:
    """The model of a name or an object; `None` where it cannot be made here (no such model, a missing extra)."""
    with suppress(ModelError, ImportError, ValueError, TypeError):
        return get_model(model)
    return None


def in_turn(suites: Sequence[Suite], limit: int | None = None) -> list[tuple[str, Task]]:
    """The tasks of all suites, one of each suite in turn, at most `limit`: any beginning covers all suites."""
    longest = max((len(s) for s in suites), default=0)
    return [(s.name, s.tasks[i]) for i in range(longest) for s in suites if i < len(s)][:limit]


def episodes(
    arms: Sequence[DesignedArm],
    models: Sequence[str],
    tasks: Sequence[tuple[str, Task]],
    seeds: Sequence[int],
) -> list[Episode]:
    """The grid in the order of running: tasks outermost, then models and seeds, and arms innermost.

    The arms of each block (a task, model and seed) are in an order of chance, so that what drifts (the machine, a
    provider) meets all arms alike.  Raises `StudyError` where two episodes cannot be told apart.
    """
    grid: dict[str, Episode] = {}
    for (suite, task), model, seed in product(tasks, models, seeds):
        for arm in _by_chance(arms, model, suite, task.id, seed):
            trace = trace_path(arm.name, model, suite, task.id, seed)
            episode = Episode(arm.name, model, suite, task, seed, trace, arm.base, arm.values)
            if trace in grid:
                both = f"{grid[trace].key} and {episode.key}"
                raise StudyError(f"episodes {both} would share the trace {trace}; rename one of them")
            grid[trace] = episode
    return list(grid.values())


def _by_chance(arms: Sequence[DesignedArm], *block: Any) -> Sequence[DesignedArm]:
    """The arms sorted by a hash: any order is as likely, and an arm added later leaves the order of the others."""
    return sorted(arms, key=lambda arm: digest([0, *block, arm.name]))


def trace_path(arm: str, model: str, suite: str, task: str, seed: int) -> str:
    """The model is always named: another one may join a study's folder later."""
    return f"traces/{_slug(model)}/{_slug(arm)}/{_slug(suite)}--{_slug(task)}--{seed}.jsonl"


def _slug(name: str) -> str:
    """A name as a file name; a long one ends in its hash, since two of them and a seed have 255 bytes together."""
    plain = re.sub(r"[^A-Za-z0-9.+_-]+", "_", name.replace("/", "-")).lstrip(".") or "_"
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 9]}-{digest(name)[:8]}"


def task_digest(task: Task) -> str:
    """A hash of a task's question, context, set-up, files and collected names."""
    files = {n: digest(c if isinstance(c, str) else c.hex()) for n, c in task.files.items()}
    context = task.context.identify() if isinstance(task.context, Deferred) else repr(task.context)
    inside = [task.question, task.setup, files, task.collect, task.inline, context]
    return digest(inside)[:16]


def arm_settings(agent: StudyAgent) -> dict[str, Any]:
    """The settings that identify an arm: without the seed and without how the model is reached."""
    settings = {k: v for k, v in agent.settings().items() if k != "seed"}
    return json.loads(json.dumps(_without_transport(settings), default=str))


def _without_transport(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _without_transport(v) for k, v in value.items() if str(k) not in TRANSPORT}
    if isinstance(value, (list, tuple)):
        return [_without_transport(v) for v in value]
    return without_folder(value) if isinstance(value, str) else value


def checked(factors: Mapping[str, Values], study: str) -> dict[str, dict[str, Any]]:
    """The factors as values by label.  Raises `StudyError` where one has no values, or two of one label."""
    found: dict[str, dict[str, Any]] = {}
    for name, values in factors.items():
        if isinstance(values, str) or not isinstance(values, (Mapping, Sequence)) or not values:
            raise StudyError(f"study {study!r}: factor {name!r} has {values!r}; give a list of values")
        pairs = list(values.items()) if isinstance(values, Mapping) else [(_text(v), v) for v in values]
        found[name] = dict(pairs)
        if len(found[name]) < len(pairs):
            raise StudyError(f"study {study!r}: factor {name!r} has two values of one label; map labels to values")
    return found


def factorial_design(arms: Sequence[str], factors: Mapping[str, Mapping[str, Any]]) -> list[DesignedArm]:
    """Every arm with every combination of the factors' values, in order."""
    if not factors:
        return [DesignedArm(arm, arm) for arm in arms]
    designed: list[DesignedArm] = []
    for arm, chosen in product(arms, product(*(by_label.items() for by_label in factors.values()))):
        by_name = dict(zip(factors, chosen, strict=True))
        labels = ", ".join(f"{name}={label}" for name, (label, _) in by_name.items())
        values = {name: v if _is_plain(v) else label for name, (label, v) in by_name.items()}
        change = {name: value for name, (_, value) in by_name.items()}
        designed.append(DesignedArm(f"{arm}[{labels}]", arm, values, change))
    return designed


def changed(agent: Any, change: Mapping[str, Any], arm: str) -> Any:
    """The agent with other fields.  Raises `StudyError` where it has no such field, or refuses the value."""
    if not change:
        return agent
    known = set(signature(type(agent)).parameters) if is_dataclass(agent) else set[str]()
    if unknown := [name for name in change if name not in known]:
        have = f"; it has {', '.join(sorted(known))}{nearest(unknown[0], known)}" if known else ""
        raise StudyError(f"arm {arm!r} ({type(agent).__name__}) has no field {unknown[0]!r}{have}")
    try:
        record: Any = agent
        return replace(record, **change)
    except (TypeError, ValueError) as error:
        raise StudyError(f"arm {arm!r}: {error}") from error


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _text(value: Any) -> str:
    """A value in a few characters: what is plain as it is, a list by its members, objects by their name."""
    if _is_plain(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "+".join(map(_text, value)) or "none"
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__
