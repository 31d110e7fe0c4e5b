"""What the arms resolve and what they take, drawn together: resamples of the tasks, the same ones for every arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.study import statistics
from rlm_loop.study.compare.pair_keys import by_episode, complete_and_incomplete, is_resolved
from rlm_loop.study.compare.pairs import cluster_labels
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.store.rows import Row

if TYPE_CHECKING:
    from rlm_loop.study.statistics.clusters import Floats

#: What a row took; `None` where that is not known.
Taken = Callable[[Mapping[str, Any]], float | None]


@dataclass(frozen=True)
class Cloud:
    """One arm in each resample: the mean of what a task takes, and the share of tasks resolved.

    `cheaper` is the share of resamples in which the arm takes less than the baseline, `no_worse` that in which it
    resolves at least as many, and `both` that in which it does both; `None` for the baseline itself.
    """

    model: str
    arm: str
    spent: Floats
    rate: Floats
    cheaper: float | None = None
    no_worse: float | None = None
    both: float | None = None


def clouds(
    rows: Sequence[Row],
    baseline: str,
    taken: Taken = total_tokens,
    *,
    cluster: str | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> list[Cloud]:
    """A cloud for each model and arm of which something is known, on the units that every arm was tried on.

    Whole clusters of tasks are drawn (`pairs.cluster_labels`), the same ones for all arms of a model, so that a hard
    task is in all of them or in none.  A figure that is not known is in no mean.
    """
    every, _ = complete_and_incomplete(rows)
    of_episode = by_episode(rows)
    found: list[Cloud] = []
    for model in dict.fromkeys(row["model"] for row in rows):
        units = [u for u in every if u[0] == model]
        arms = list(dict.fromkeys(row["arm"] for row in rows if row["model"] == model))
        if not units:
            continue
        labels, _, _ = cluster_labels([of_episode[arms[0], u] for u in units], units, cluster)
        columns: list[list[float]] = []
        for arm in arms:
            mine = [of_episode[arm, u] for u in units]
            columns += _with_counts([taken(row) for row in mine])
            columns += _with_counts([is_resolved(row) for row in mine])
        means = _means(statistics.resampled_sums(columns, statistics.codes_of(labels), resamples, seed))
        made = {arm: Cloud(model, arm, means[:, 2 * n], means[:, 2 * n + 1]) for n, arm in enumerate(arms)}
        base = made.get(baseline)
        found += [
            cloud if base is None or arm == baseline else _against(cloud, base)
            for arm, cloud in made.items()
            if _known(cloud).any()
        ]
    return found


def _against(cloud: Cloud, base: Cloud) -> Cloud:
    known = _known(cloud) & _known(base)
    if not known.any():
        return cloud
    cheaper, no_worse = (cloud.spent < base.spent)[known], (cloud.rate >= base.rate)[known]
    shares = (float(of.mean()) for of in (cheaper, no_worse, cheaper & no_worse))
    return Cloud(cloud.model, cloud.arm, cloud.spent, cloud.rate, *shares)


def _known(cloud: Cloud) -> Any:
    import numpy as np

    return np.isfinite(cloud.spent) & np.isfinite(cloud.rate)


def _means(sums: Floats) -> Floats:
    """Of columns of sums, each followed by how many are in it, the means; not a number where none is."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return sums[:, ::2] / sums[:, 1::2]


def _with_counts(values: Sequence[float | None]) -> list[list[float]]:
    """The values with 0 for those that are not known, and for each whether it is."""
    return [[float(v or 0) for v in values], [float(v is not None) for v in values]]
