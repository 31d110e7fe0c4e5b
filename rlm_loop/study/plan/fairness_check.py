"""Whether a comparison is fair: the first requests of all arms, side by side, before any model is called.

    print(fairness_check(study))                       # what differs, what was declared
    Study("mine", arms, suite, differs=("loop", "system"))   # anything else that differs stops the study: `Unfair`

For one task of each suite the first request of each arm is made as a run makes it, and split into `FACTORS`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, cast

from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.factors import FACTORS, Beginning, factors_of
from rlm_loop.study.plan.fairness import FairnessCheck, Probe, headline, report
from rlm_loop.study.plan.grid import StudyAgent, in_turn
from rlm_loop.tasks.base import Suite, Task

#: Longer texts are kept by their beginning and their hash: a fairness check holds no corpus.
_LONG = 20_000
#: Settings that are no part of what a strategy is.  Their defaults may differ between strategies all the same, and then
#: a difference in results has more than one reason: `unequal` names it before a token is spent.
ALIKE = ("budget", "history", "sampling", "repl")


class Unfair(StudyError):
    """The arms of a study differ in something that was not declared.

    The message is one line; `diff` shows every difference, `fairness_check` is the whole comparison.
    """

    def __init__(self, found: FairnessCheck) -> None:
        super().__init__(headline(found.study, found.undeclared))
        self.fairness_check = found
        self.diff = report(found, found.undeclared)
        self.add_note(self.diff)


class Plans(Protocol):
    """What is checked: a `Study`."""

    @property
    def name(self) -> str: ...
    @property
    def suites(self) -> Sequence[Suite]: ...
    @property
    def seeds(self) -> Sequence[int]: ...
    @property
    def differs(self) -> Sequence[str] | None: ...
    def agents(self) -> Mapping[tuple[str, int], Mapping[str, StudyAgent]]: ...


def fairness_check(
    study: Plans, *, limit: int | None = None, agents: Mapping[tuple[str, int], Mapping[str, StudyAgent]] | None = None
) -> FairnessCheck:
    """In what the arms of a study differ: no model is called or loaded, and no REPL is started; workspaces are opened.

    One task of each suite is looked at, of the first `limit` tasks, for each model and the first seed; `agents` are
    the study's where they have been made.  Raises `StudyError` where a study that declares `differs` has a request that
    cannot be made.
    """
    seed = study.seeds[0] if study.seeds else 0
    firsts: dict[str, Task] = {}
    for suite, task in in_turn(study.suites, limit):
        firsts.setdefault(suite, task)
    every = study.agents() if agents is None else agents
    by_model = {model: arms for (model, of), arms in every.items() if of == seed}
    strict = study.differs is not None
    probes = [_probe(model, arms, s, t, strict=strict) for model, arms in by_model.items() for s, t in firsts.items()]
    return FairnessCheck(study.name, None if study.differs is None else tuple(study.differs), tuple(probes))


def require_fair(found: FairnessCheck) -> FairnessCheck:
    """The check, where nothing but what was declared differs.  Raises `Unfair` otherwise."""
    if not found.fair:
        raise Unfair(found)
    return found


def declared_factors(differs: Sequence[str] | None, study: str) -> tuple[str, ...] | None:
    """What a study declares, checked: `StudyError` for a name that is no factor."""
    if differs is None:
        return None
    names = (differs,) if isinstance(differs, str) else tuple(differs)
    unknown = [n for n in names if n not in FACTORS]
    if unknown:
        raise StudyError(f"study {study!r}: differs has {unknown[0]!r}; there are {', '.join(FACTORS)}")
    return names


def _probe(model: str, arms: Mapping[str, StudyAgent], suite: str, task: Task, *, strict: bool) -> Probe:
    have: dict[str, Mapping[str, Any]] = {}
    requests: dict[str, str | None] = {}
    failed: dict[str, str] = {}
    with suppress(Exception):  # where it cannot be made, each arm says so below
        task = replace(task, context=task.material())  # a long text is made once for all arms
    for arm, agent in arms.items():
        begun = None
        if isinstance(agent, Beginning):
            try:
                begun = agent.first_request(task)
            except Exception as error:
                failed[arm] = " ".join(f"{type(error).__name__}: {error}".split())
                if strict:
                    where = f"the first request of {arm} on {suite}/{task.id} cannot be made"
                    raise StudyError(f"{where}: {failed[arm]}") from error
        have[arm] = {f: _short(v) for f, v in factors_of(agent, begun).items()}
        requests[arm] = None if begun is None else begun.prompt.digest()[:16]
    return Probe(model, suite, task.id, have, requests, failed)


def _short(value: Any) -> Any:
    """The value with long texts cut; the hash keeps them apart."""
    if isinstance(value, str) and len(value) > _LONG:
        whole = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{value[:2_000]}\n[... {len(value):,} characters, SHA-256 {whole}]"
    if isinstance(value, Mapping):
        return {str(k): _short(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_short(v) for v in cast("Sequence[Any]", value)]
    return value


def unequal(check: FairnessCheck, varied: Collection[str] = ()) -> list[str]:
    """One line for each setting in which arms differ though nobody said so; none where the study declares `differs`.

    `varied` are the settings that the study varies itself (`factors=`).
    """
    if check.differs is not None:
        return []
    every = tuple(dict.fromkeys(d.factor for d in check.differences))
    found: dict[str, None] = {}
    for difference in check.differences:
        if difference.factor not in ALIKE:
            continue
        have = difference.probe.arms
        acting = [([a for a in arms if _acts(have[a])], value) for arms, value in difference.groups]
        leaves = [(arms, dict(_leaves(value))) for arms, value in acting if arms]
        for name in dict.fromkeys(name for _, of in leaves for name in of):
            by_value: dict[str, list[str]] = {}
            for arms, of in leaves:
                if name in of and (name or of[name] is not None):  # an agent of another kind has settings of its own
                    by_value.setdefault(json.dumps(of[name]), []).extend(arms)
            if len(by_value) > 1 and not {name, name.rpartition(".")[2], f"max_{name}"} & {*varied}:
                values = "; ".join(f"{value} for {', '.join(arms)}" for value, arms in by_value.items())
                what = f"{difference.factor}, {name}" if name else difference.factor
                found[f"{check.study}: arms differ in {what}: {values}"] = None
    return [f"{line} (set it alike, or declare differs={every})" for line in found]


def _acts(have: Mapping[str, Any]) -> bool:
    """A strategy that takes one reply has no use for limits of steps, cells and tools."""
    return (have.get("tool_presentation") or {}).get("hands") != "none"


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting with its name; those within another (`budget` in `budget`) by their own."""
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, inner in cast("Mapping[str, Any]", value).items():
        if key != "is":
            yield from _leaves(inner, key)
