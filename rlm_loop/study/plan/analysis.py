"""The analysis of a study, declared before its first episode and locked in `study.json`, and the power that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from rlm_loop.messages import digest
from rlm_loop.study import statistics
from rlm_loop.study.compare.contrast import MEASURES
from rlm_loop.study.compare.pairs import POLICIES, Policy
from rlm_loop.study.errors import StudyError

#: True differences that are planned for, where the claim is that arms differ.
_DIFFERENCES = (0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Analysis:
    """The tests of a study: every arm against `baseline` (the first arm where it is `None`).

    `family` names the measures whose claims are judged together, `margin` is a share (0.03: 3 points; 0: the claim is
    that the rates differ), `missing` the policy for pairs without a value.  Raises `StudyError` for what cannot be
    tested.
    """

    baseline: str | None = None
    margin: float = 0.0
    family: Sequence[str] = ("resolved", "input_tokens")
    missing: Policy = "worst"

    def __post_init__(self) -> None:
        object.__setattr__(self, "family", tuple(self.family))
        if unknown := [m for m in self.family if m not in MEASURES]:
            raise StudyError(f"analysis: there is no measure {unknown[0]!r}; there are {', '.join(MEASURES)}")
        if self.missing not in POLICIES:
            raise StudyError(
                f"analysis: there is no policy {self.missing!r} for missing pairs; use {', '.join(POLICIES)}"
            )
        if not 0 <= self.margin < 1:
            raise StudyError("analysis: margin is a share: give 0.03 for 3 points")

    def locked(self) -> dict[str, Any]:
        """As `study.json` keeps it, with its hash."""
        plan = {**asdict(self), "family": list(self.family), "targets": {}}  # of earlier studies, so that hashes agree
        return {**plan, "digest": digest(plan)[:16]}


def read(lock: Mapping[str, Any]) -> Analysis | None:
    """The analysis in a study's lock; `None` where nothing was declared.  Raises `StudyError` as `Analysis` does."""
    plan: Mapping[str, Any] | None = lock.get("analysis")
    return None if plan is None else Analysis(**{f.name: plan[f.name] for f in fields(Analysis) if f.name in plan})


def agreed(old: Mapping[str, Any] | None, new: Analysis | None, begun: bool, folder: object) -> dict[str, Any]:
    """The part of the lock that declares the analysis; empty where none is declared.

    Raises `StudyError` where it is another than the one locked, or comes after the first episode (`begun`).
    """
    before: Mapping[str, Any] | None = (old or {}).get("analysis")
    if new is None:
        return {} if before is None else {"analysis": dict(before)}
    now = new.locked()
    if begun and (before is None or before["digest"] != now["digest"]):
        changed = ", ".join(k for k in now if k != "digest" and before and before.get(k) != now[k])
        what = f"declares another analysis ({changed})" if before else "was begun without analysis="
        raise StudyError(f"{folder} {what}; leave analysis= out to go on with it as it is, or choose another folder")
    return {"analysis": now}


def planned(old: Mapping[str, Any] | None, new: Mapping[str, Any], begun: bool) -> dict[str, Any]:
    """The part of the lock with the planned arms, models, tasks (ids by suite) and seeds.

    It is written before the first episode and stays as it is; empty for a folder that was begun without it.
    """
    before: Mapping[str, Any] | None = (old or {}).get("planned")
    if before is None:
        return {} if begun else {"planned": {**new, "digest": digest(dict(new))[:16]}}
    return {"planned": dict(before)}


def departs(lock: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The way in which a lock or its rows depart from what was locked, in a clause; empty where they do not.

    A folder without a plan of its tasks departs in nothing that is known.
    """
    if not _unchanged(lock.get("analysis")):
        return "the analysis in study.json is not the one that was locked before the run"
    plan: Mapping[str, Any] | None = lock.get("planned")
    if plan is None or "analysis" not in lock:
        return ""
    if not _unchanged(plan):
        return "the planned tasks in study.json are not those that were locked before the run"
    arms: list[str] = plan["arms"]
    if added := sorted({row["arm"] for row in rows} - set(arms)):
        return f"{', '.join(added)} {'was' if len(added) == 1 else 'were'} added after the study was begun"
    tasks = [(suite, task) for suite, ids in plan["tasks"].items() for task in ids]
    wanted = {(model, *task, seed) for model in plan["models"] for task in tasks for seed in plan["seeds"]}
    there: dict[tuple[Any, ...], set[str]] = {}
    for row in rows:
        there.setdefault((row["model"], row["suite"], row["task"], row["seed"]), set()).add(row["arm"])
    if more := len(there.keys() - wanted):
        return f"{more} of {len(there)} pairs (model, task, seed) were added after the study was begun"
    done = sum(len(there.get(unit, ())) == len(arms) for unit in wanted)
    return "" if done == len(wanted) else f"this is an interim look: {done} of {len(wanted)} planned pairs are there"


def _unchanged(part: Mapping[str, Any] | None) -> bool:
    """Say whether a part of the lock still has the hash that was locked with it."""
    rest = {name: value for name, value in (part or {}).items() if name != "digest"}
    return part is None or "digest" not in part or part["digest"] == digest(rest)[:16]


@dataclass(frozen=True)
class Chance:
    """The power of one claim in the resolve rate under one assumption about the truth.

    `discordant` is the share of pairs that just one of the two arms resolves, `difference` the true difference of the
    rates.  `chance` is that of the planned number of tasks, by one test at the end; `tasks` how many give the power
    wanted (`None`: no number does).
    """

    discordant: float
    difference: float
    chance: float
    tasks: int | None


@dataclass(frozen=True)
class StudyPower:
    """Power of `tasks` planned tasks for `claims` claims, each judged at `level`, the first step of Holm.

    Seeds of one task count as one pair, since nobody knows before a run how much they differ: more seeds can only help.
    """

    tasks: int
    claims: int
    margin: float
    level: float
    wanted: float
    chances: tuple[Chance, ...]

    def __str__(self) -> str:
        claim = f"resolves no more than {100 * self.margin:g} points fewer" if self.margin else "resolves more or fewer"
        lines = [
            f"power of {self.tasks} tasks to show that an arm {claim}: {self.claims} "
            f"claim{'s' * (self.claims != 1)}, the first judged at {100 * self.level:.3g} %",
            f"  only one arm resolves   true difference   chance   tasks for {100 * self.wanted:g} %",
        ]
        for c in self.chances:
            lines.append(
                f"  {100 * c.discordant:>8.0f} % of tasks {100 * c.difference:>+15.0f} {100 * c.chance:>9.0f} % "
                f"{'none' if c.tasks is None else f'{c.tasks:,}':>12}"
            )
        last = "  compare() shows nothing before the last task"
        return "\n".join([*lines, last])


def planned_power(
    tasks: int, claims: int, analysis: Analysis, *, discordant: Sequence[float], power: float, alpha: float
) -> StudyPower:
    """Return the power of a study of so many tasks.  Raises `StudyError` for a share that cannot be."""
    if not all(0 < share <= 1 for share in discordant) or not 0 < power < 1:
        raise StudyError(f"discordant and power must be shares between 0 and 1, got {list(discordant)} and {power}")
    margin, level = analysis.margin, alpha / claims
    chances: list[Chance] = []
    for share in discordant:
        for difference in (0.0,) if margin else [d for d in _DIFFERENCES if d <= share]:
            truth: dict[str, float] = {"discordant": share, "difference": difference, "margin": margin, "alpha": level}
            chance = statistics.power_of_rate(tasks, **truth)
            chances.append(Chance(share, difference, chance, statistics.pairs_for_rate(**truth, power=power)))
    return StudyPower(tasks, claims, margin, level, power, tuple(chances))
