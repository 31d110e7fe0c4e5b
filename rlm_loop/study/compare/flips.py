"""Which tasks flip: those that just one of two arms resolves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlm_loop.study.compare.contrast import Judged
from rlm_loop.study.compare.pair_keys import by_episode, complete_and_incomplete, is_resolved
from rlm_loop.study.store.rows import Row


@dataclass(frozen=True)
class Flip:
    """A pair that one arm resolved and the other did not; `gained`: the arm did, not the baseline."""

    model: str
    arm: str
    baseline: str
    suite: str
    task: str
    seed: int | str
    gained: bool


def flips(rows: Sequence[Row], comparison: Judged) -> list[Flip]:
    """The pairs of each model and arm that flip, those gained first, each in the order of the tasks."""
    every, _ = complete_and_incomplete(rows)
    of_episode = by_episode(rows)
    found: list[Flip] = []
    for model, arm in dict.fromkeys((c.model, c.arm) for c in comparison.contrasts):
        of_arm: list[Flip] = []
        for unit in every:
            here, there = (is_resolved(of_episode.get((name, unit))) for name in (arm, comparison.baseline))
            if unit[0] == model and here is not None and there is not None and here != there:
                of_arm.append(Flip(model, arm, comparison.baseline, *unit[1:], gained=here))
        found += sorted(of_arm, key=lambda flip: not flip.gained)
    return found
