"""Figures of several arms drawn together: whole clusters of tasks, the same ones for every arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlm_loop.study.statistics.clusters import Floats, sums
from rlm_loop.study.statistics.ratios import cluster_draws, expanded_tail


def resampled_sums(columns: Sequence[Any], codes: NDArray[np.intp], resamples: int = 2000, seed: int = 0) -> Floats:
    """The sums of several columns of the same units in each resample: a row a resample, a column each.

    Clusters are drawn whole, and all columns have the same draws, so that what is made of them is paired.
    """
    by_cluster = sums(np.asarray(columns, dtype=float), codes)
    return cluster_draws(by_cluster.shape[-1], resamples, seed) @ by_cluster.T


def percentile_interval(
    columns: Sequence[Any],
    codes: NDArray[np.intp],
    figure: Callable[[Floats], Floats],
    alpha: float = 0.05,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile bootstrap interval of what `figure` makes of sums, by cluster; with the ends of `expanded_tail`.

    An end is infinite where more resamples than it leaves out are.  Not a number for fewer than two clusters.
    """
    groups = int(codes.max()) + 1 if codes.size else 0
    if groups < 2:
        return np.nan, np.nan
    tail = expanded_tail(groups, alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        made = figure(resampled_sums(columns, codes, resamples, seed))
    low, high = np.quantile(made[~np.isnan(made)], [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)
