"""Whether loops differ within one suite: Cochran's Q over the arms, by permutation within tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlm_loop.study import statistics
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.study.store.rows import Row


@dataclass(frozen=True)
class LoopEffect:
    """One suite: the tasks that every arm has a verdict of, those left out, each arm's rate, the p of "all alike".

    `p_holm` is that p adjusted for there being several suites.
    """

    suite: str
    tasks: int
    left_out: int
    rates: Mapping[str, float]
    p: float
    p_holm: float = 1.0

    @property
    def shown(self) -> bool:
        """Whether the loops are shown to differ here, at 5 % for all suites together."""
        return self.p_holm <= 0.05


def loop_effects(rows: Sequence[Row], arms: Sequence[str], resamples: int = 9999) -> list[LoopEffect]:
    """The effect of the loop suite by suite, in the order of the rows.

    A task that some arm has no verdict of (the machine or the scorer broke it off) is left out, since a verdict made up
    for one arm would be an effect of the loop.
    """
    found: dict[str, dict[str, dict[str, bool | None]]] = {}
    for row in rows:
        if row["arm"] in arms:
            found.setdefault(row["suite"], {}).setdefault(row["task"], {})[row["arm"]] = is_resolved(row)
    effects = [_effect(suite, tasks, arms, resamples) for suite, tasks in found.items()]
    adjusted = statistics.holm([effect.p for effect in effects])
    return [replace(e, p_holm=1.0 if p is None else p) for e, p in zip(effects, adjusted, strict=True)]


def _effect(
    suite: str, tasks: Mapping[str, Mapping[str, bool | None]], arms: Sequence[str], resamples: int
) -> LoopEffect:
    known = [of for of in tasks.values() if all(of.get(arm) is not None for arm in arms)]
    table = np.array([[float(bool(of[arm])) for arm in arms] for of in known]).reshape(-1, len(arms))
    rates = {arm: float(table[:, at].mean()) if len(table) else float("nan") for at, arm in enumerate(arms)}
    return LoopEffect(suite, len(known), len(tasks) - len(known), rates, permutation_p(table, resamples))


def permutation_p(table: np.ndarray, resamples: int = 9999, seed: int = 0) -> float:
    """The p of "the arms (columns) are exchangeable within each task (row)", of zeros and ones.

    For given row sums Cochran's Q grows with the squares of the column sums alone, which are what is compared.  1 where
    no task tells arms apart.
    """
    telling = table[(table.sum(axis=1) > 0) & (table.sum(axis=1) < table.shape[1])]
    if not len(telling):
        return 1.0
    seen = float((telling.sum(axis=0) ** 2).sum())
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.broadcast_to(telling, (resamples, *telling.shape)), axis=2)
    as_far = int(((shuffled.sum(axis=1) ** 2).sum(axis=1) >= seen - 1e-9).sum())
    return (as_far + 1) / (resamples + 1)
