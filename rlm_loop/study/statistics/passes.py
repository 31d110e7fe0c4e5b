"""pass@k: the chance that at least one of k attempts resolves a task."""

from __future__ import annotations

from math import comb


def pass_at_k(attempts: int, resolved: int, k: int) -> float:
    """The unbiased estimate for one task, from `attempts` of which `resolved` succeeded: 1 - C(n - c, k) / C(n, k).

    M. Chen and others, Evaluating Large Language Models Trained on Code (2021), equation 1.  Raises `ValueError`
    where there are fewer than k attempts, since nothing is then known.
    """
    if not 0 <= resolved <= attempts or not 1 <= k <= attempts:
        raise ValueError(f"pass@{k} needs at least {k} attempts of a task; there are {attempts}, {resolved} resolved")
    return 1.0 - comb(attempts - resolved, k) / comb(attempts, k)
