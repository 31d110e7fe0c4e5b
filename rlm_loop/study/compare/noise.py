"""The noise floor: how often the same arm differs from itself on the same task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from rlm_loop.study import statistics
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.study.store.rows import Row


@dataclass(frozen=True)
class NoiseFloor:
    """Pairs of seeds of one arm on one task, those `apart` in which just one resolved it, and the 95 % interval of
    their rate, by task.
    """

    model: str
    arm: str
    pairs: int
    apart: int
    low: float
    high: float

    def __str__(self) -> str:
        share = f"{100 * self.apart / self.pairs:.1f} %, {100 * self.low:.1f} to {100 * self.high:.1f}"
        return f"{self.arm} {self.apart:,} of {self.pairs:,} ({share})"


def noise_floors(rows: Sequence[Row]) -> list[NoiseFloor]:
    """The noise floor of every arm that was run with several seeds."""
    verdicts: dict[tuple[str, str], dict[tuple[str, str], list[bool]]] = {}
    for row in rows:
        of_task = verdicts.setdefault((row["model"], row["arm"]), {})
        if (verdict := is_resolved(row)) is not None:
            of_task.setdefault((row["suite"], row["task"]), []).append(verdict)
    found: list[NoiseFloor] = []
    for (model, arm), of_task in verdicts.items():
        pairs = [(float(one != other), task) for task, of in of_task.items() for one, other in combinations(of, 2)]
        if pairs:
            apart = [differ for differ, _ in pairs]
            low, high = statistics.wilson_by_cluster(apart, [task for _, task in pairs])
            found.append(NoiseFloor(model, arm, len(apart), int(sum(apart)), low, high))
    return found
