"""What each arm resolves by itself: in one attempt, and in at least one of k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlm_loop.study.compare.pairs import cluster_labels
from rlm_loop.study.errors import StudyError
from rlm_loop.study.frames import frame_of
from rlm_loop.study.results import Results, pair_key
from rlm_loop.study.store.rows import Row

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("model", "arm", "k", "tasks", "attempts", "left_out", "rate", "low", "high", "clusters")


def resolve_rates(
    results: Results, ks: Sequence[int] = (1,), *, alpha: float = 0.05, cluster: str | None = None
) -> pd.DataFrame:
    """One row for each model, arm and k: the share of tasks that at least one of k attempts resolves (pass@k).

    `rate` is the mean over tasks of the unbiased estimate, `low` and `high` Wilson's interval on the effective number
    of tasks, by cluster as in `compare`.  A crashed attempt is not resolved; one that nothing judged does not count;
    `left_out` tasks have fewer than k attempts.  `rate` is `None` where no task has k.  Raises `StudyError` for a k
    below 1.
    """
    if any(k < 1 for k in ks):
        raise StudyError("k counts attempts: give 1 or more")
    made = [_row(results, m, arm, k, alpha, cluster) for m in results.models for arm in results.arms for k in ks]
    return frame_of(made, COLUMNS)


def _row(results: Results, model: str, arm: str, k: int, alpha: float, cluster: str | None) -> dict[str, Any]:
    from rlm_loop.study.statistics import codes_of, pass_at_k, rate_interval

    tasks: dict[tuple[str, str], list[Row]] = {}
    for row in results.rows:
        if row["model"] == model and row["arm"] == arm:
            tasks.setdefault((row["suite"], row["task"]), []).append(row)
    judged = {t: [r for r in rows if r["resolved"] is not None] for t, rows in tasks.items()}
    kept = [rows for rows in judged.values() if len(rows) >= k]
    plain = {"model": model, "arm": arm, "k": k, "tasks": len(kept), "left_out": len(tasks) - len(kept)}
    attempts = sum(len(rows) for rows in kept)
    if not kept:
        return {**plain, "attempts": 0, "clusters": 0}
    first = [rows[0] for rows in kept]
    codes = codes_of(cluster_labels(first, [pair_key(r) for r in first], cluster)[0])
    values = [pass_at_k(len(rows), sum(bool(r["resolved"]) for r in rows), k) for rows in kept]
    rate, low, high = (float(x) for x in rate_interval(values, codes, alpha, most=attempts))
    clusters = int(codes.max()) + 1
    return {**plain, "attempts": attempts, "clusters": clusters, "rate": rate, "low": low, "high": high}
