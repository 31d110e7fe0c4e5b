"""The noise floor: how often the same arm differs from itself on the same task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from rlm_loop.study import statistics
from rlm_loop.study.compare.pair_keys import PairKey, by_episode, is_resolved, pair_key
from rlm_loop.study.store.rows import Row

NOT_MEASURED = (
    "No noise floor was measured: no arm was run twice in the same way, so nobody knows how much of a difference is chance."
)


@dataclass(frozen=True)
class NoiseFloor:
    """Of how many `pairs` of runs that were to be alike just one resolved the task, and the 95 % interval of that rate.

    `arms` are two names of the same settings, or one arm that was run with several seeds.  Pairs of one task are one
    cluster.  `temperature` is that of the arm's settings, `None` where these leave it to the model.
    """

    model: str
    arms: tuple[str, ...]
    pairs: int
    apart: int
    low: float
    high: float
    temperature: float | None = None

    @property
    def rate(self) -> float:
        return self.apart / self.pairs

    def __str__(self) -> str:
        how = "of the same settings" if len(self.arms) == 2 else "run again with other seeds"
        if len(self.arms) == 1 and self.temperature is not None:
            how += f" at temperature {self.temperature:g}"
        return (
            f"{' and '.join(self.arms)} {how}: {self.apart:,} of {self.pairs:,} pairs differ in whether the task is "
            f"resolved ({100 * self.rate:.1f} %, {100 * self.low:.1f} to {100 * self.high:.1f})"
        )


def noise_floors(rows: Sequence[Row], lock: Mapping[str, Any]) -> list[NoiseFloor]:
    """Every pair of arms with the same settings, and every arm that was run with several seeds."""
    of_episode = by_episode(rows)
    found: list[NoiseFloor] = []
    for model in dict.fromkeys(row["model"] for row in rows):
        units = list(dict.fromkeys(pair_key(row) for row in rows if row["model"] == model))
        arms = list(dict.fromkeys(row["arm"] for row in rows if row["model"] == model))
        for one, other in combinations(arms, 2):
            settings = _settings(lock, one, model)
            if settings and settings == _settings(lock, other, model):
                pairs = [((one, unit), (other, unit)) for unit in units]
                found += _floor(model, (one, other), pairs, of_episode, settings)
        again = list(_again(units))
        for arm in arms:
            pairs = [((arm, one), (arm, other)) for one, other in again]
            found += _floor(model, (arm,), pairs, of_episode, _settings(lock, arm, model))
    return found


def noise_sentence(floors: Sequence[NoiseFloor]) -> str:
    """What is known of the noise, in one sentence."""
    return f"Noise floor: {'; '.join(map(str, floors))}." if floors else NOT_MEASURED


Episode = tuple[str, PairKey]


def _floor(
    model: str,
    arms: tuple[str, ...],
    pairs: Sequence[tuple[Episode, Episode]],
    of_episode: Mapping[Episode, Row],
    settings: Mapping[str, Any],
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
        yield NoiseFloor(model, arms, len(apart), int(sum(apart)), low, high, settings.get("temperature"))


def _again(units: Sequence[PairKey]) -> Iterator[tuple[PairKey, PairKey]]:
    """Every two seeds of a task."""
    of_task: dict[tuple[str, str], list[PairKey]] = {}
    for unit in units:
        of_task.setdefault(unit[1:3], []).append(unit)
    for seeds in of_task.values():
        yield from combinations(seeds, 2)


def _settings(lock: Mapping[str, Any], arm: str, model: str) -> Mapping[str, Any]:
    return lock.get("arms", {}).get(arm, {}).get(model, {}).get("settings") or {}
