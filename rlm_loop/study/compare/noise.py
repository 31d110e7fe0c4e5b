"""The noise floor: how often the same arm differs from itself on the same task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from rlm_loop.study import statistics
from rlm_loop.study.compare.pair_keys import PairKey, by_episode, is_resolved, pair_key
from rlm_loop.study.store.rows import Row

if TYPE_CHECKING:
    from rlm_loop.study.plan.fairness import FairnessCheck

NOT_MEASURED = "No noise floor was measured: no arm was run twice in the same way, so how much is chance is not known."


@dataclass(frozen=True)
class NoiseFloor:
    """Of how many `pairs` of runs that were to be alike just one resolved the task, and the 95 % interval of that rate.

    `arms` are two names of what is alike, or one arm that was run with several seeds.  Pairs of one task are one
    cluster.
    """

    model: str
    arms: tuple[str, ...]
    pairs: int
    apart: int
    low: float
    high: float

    def __str__(self) -> str:
        share = f"{100 * self.apart / self.pairs:.1f} %, {100 * self.low:.1f} to {100 * self.high:.1f}"
        return f"{' and '.join(self.arms)} {self.apart:,} of {self.pairs:,} ({share})"


def noise_floors(rows: Sequence[Row], check: FairnessCheck | None = None) -> list[NoiseFloor]:
    """Every two arms that are alike, and every arm that was run with several seeds.

    Alike are those that `check`, the study's fairness check, found alike in every factor on every task that it looked
    at (settings in `study.json` do not say all: a model may have a temperature of its own).
    """
    of_episode = by_episode(rows)
    found: list[NoiseFloor] = []
    for model in dict.fromkeys(row["model"] for row in rows):
        units = list(dict.fromkeys(pair_key(row) for row in rows if row["model"] == model))
        arms = list(dict.fromkeys(row["arm"] for row in rows if row["model"] == model))
        probes = [probe.arms for probe in check.probes if probe.model == model] if check else []
        for one, other in combinations(arms, 2):
            both = [of for of in probes if one in of and other in of]
            if both and all(of[one] == of[other] for of in both):
                pairs = [((one, unit), (other, unit)) for unit in units]
                found += _floor(model, (one, other), pairs, of_episode)
        again = list(_again(units))
        for arm in arms:
            pairs = [((arm, one), (arm, other)) for one, other in again]
            found += _floor(model, (arm,), pairs, of_episode)
    return found


def noise_sentence(floors: Sequence[NoiseFloor]) -> str:
    """What is known of the noise, in one sentence."""
    alike = ", ".join(str(floor) for floor in floors if len(floor.arms) == 2)
    again = ", ".join(str(floor) for floor in floors if len(floor.arms) == 1)
    told = [f"the same under two names: {alike}"] * bool(alike) + [f"run again with other seeds: {again}"] * bool(again)
    return (
        f"Noise floor, in pairs that differ in whether the task is resolved: {'; '.join(told)}."
        if floors
        else NOT_MEASURED
    )


Episode = tuple[str, PairKey]


def _floor(
    model: str,
    arms: tuple[str, ...],
    pairs: Sequence[tuple[Episode, Episode]],
    of_episode: Mapping[Episode, Row],
) -> Iterator[NoiseFloor]:
    apart: list[float] = []
    tasks: list[tuple[str, str]] = []
    for one, other in pairs:
        here, there = is_resolved(of_episode.get(one)), is_resolved(of_episode.get(other))
        if here is not None and there is not None:
            apart.append(float(here != there))
            tasks.append(one[1][1:3])
    if apart:
        low, high = statistics.wilson_by_cluster(apart, tasks)
        yield NoiseFloor(model, arms, len(apart), int(sum(apart)), low, high)


def _again(units: Sequence[PairKey]) -> Iterator[tuple[PairKey, PairKey]]:
    """Every two seeds of a task."""
    of_task: dict[tuple[str, str], list[PairKey]] = {}
    for unit in units:
        of_task.setdefault(unit[1:3], []).append(unit)
    for seeds in of_task.values():
        yield from combinations(seeds, 2)
