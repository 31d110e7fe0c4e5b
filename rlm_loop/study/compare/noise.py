"""The noise floor: how often the same arm differs from itself on the same task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

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
    cluster.  `temperature` is that of an arm, `None` where it is not known.
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

    @property
    def counted(self) -> str:
        """How many pairs differ, with rate and interval."""
        return (
            f"{self.apart:,} of {self.pairs:,} ({100 * self.rate:.1f} %, {100 * self.low:.1f} to {100 * self.high:.1f})"
        )

    @property
    def how(self) -> str:
        """In what the runs were alike."""
        if len(self.arms) == 2:
            return "the same under two names"
        sampled = "" if self.temperature is None else f" at temperature {self.temperature:g}"
        return f"run again with other seeds{sampled}"


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
                found += _floor(model, (one, other), pairs, of_episode, None)
        again = list(_again(units))
        for arm in arms:
            pairs = [((arm, one), (arm, other)) for one, other in again]
            known = (_temperature(of[arm]) for of in probes if arm in of)
            found += _floor(model, (arm,), pairs, of_episode, next(known, None))
    return found


def noise_sentence(floors: Sequence[NoiseFloor]) -> str:
    """What is known of the noise, in one sentence."""
    by_kind: dict[str, list[str]] = {}
    for floor in floors:
        by_kind.setdefault(floor.how, []).append(f"{' and '.join(floor.arms)} {floor.counted}")
    told = "; ".join(f"{how}: {', '.join(each)}" for how, each in by_kind.items())
    return f"Noise floor, in pairs that differ in whether the task is resolved: {told}." if floors else NOT_MEASURED


Episode = tuple[str, PairKey]


def _floor(
    model: str,
    arms: tuple[str, ...],
    pairs: Sequence[tuple[Episode, Episode]],
    of_episode: Mapping[Episode, Row],
    temperature: float | None,
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
        yield NoiseFloor(model, arms, len(apart), int(sum(apart)), low, high, temperature)


def _temperature(factors: Mapping[str, Any]) -> float | None:
    """That of the arm, else its model's own; `None` where neither is recorded."""
    sampling: Mapping[str, Any] = factors.get("sampling") or {}
    own = sampling.get("temperature")
    return own if own is not None else (sampling.get("model") or {}).get("temperature")


def _again(units: Sequence[PairKey]) -> Iterator[tuple[PairKey, PairKey]]:
    """Every two seeds of a task."""
    of_task: dict[tuple[str, str], list[PairKey]] = {}
    for unit in units:
        of_task.setdefault(unit[1:3], []).append(unit)
    for seeds in of_task.values():
        yield from combinations(seeds, 2)
