"""A test that a difference is the same in every group of tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlm_loop.study.statistics.clusters import Floats, sums

#: Permuted studies held at once, times the clusters: their arrays fit into a processor's cache.
_BLOCK = 50_000


def heterogeneity_p(
    differences: Any,
    codes: NDArray[np.intp],
    groups: NDArray[np.intp],
    *,
    resamples: int = 9999,
    seed: int = 0,
) -> float:
    """The p of "the mean difference is the same in all groups", by permutation of the clusters among the groups.

    `differences` are of the pairs (1: only the arm resolved, -1: only the baseline), `codes` their clusters, `groups`
    their groups; each cluster belongs to one group.  The statistic is W. G. Cochran's Q (Biometrics 10 (1954)), the sum
    of the groups' squared distances from their weighted mean, each over its variance by cluster, so that groups that
    differ in spread alone are not found different (E. Chung & J. P. Romano, Annals of Statistics 41 (2013)).  Each
    variance has one discordant pair added, without which a group of pairs that are all alike would outweigh all others.
    1 for fewer than two groups; a cluster is drawn whole.
    """
    total = sums(differences, codes)
    size = sums(np.ones(codes.size), codes)
    home = np.zeros(total.size, dtype=np.intp)
    home[codes] = groups
    count = int(groups.max()) + 1 if groups.size else 0
    if count < 2:
        return 1.0
    seen = float(_spread(total[None, :], size[None, :], home, count)[0])
    rng = np.random.default_rng(seed)
    as_far, done, block = 0, 0, max(1, _BLOCK // total.size)
    while done < resamples:
        now = min(block, resamples - done)
        order = rng.permuted(np.tile(np.arange(total.size), (now, 1)), axis=1)
        as_far += int((_spread(total[order], size[order], home, count) >= seen - 1e-9 * abs(seen)).sum())
        done += now
    return (as_far + 1) / (resamples + 1)


def _spread(total: Floats, size: Floats, home: NDArray[np.intp], count: int) -> Floats:
    """Cochran's Q of each row of clusters, whose groups are `home`."""
    member = np.zeros((home.size, count))
    member[np.arange(home.size), home] = 1.0
    n = size @ member
    mean = (total @ member) / n
    residual = total - size * mean[:, home]
    clusters = member.sum(axis=0)
    variance = (residual**2 @ member * clusters / np.maximum(clusters - 1, 1) + 1) / n**2
    weight = 1 / variance
    middle = (weight * mean).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
    return (weight * (mean - middle) ** 2).sum(axis=1)
