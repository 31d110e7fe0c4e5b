"""Whether the difference of two arms is the same in all suites."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_loop.study.statistics import codes_of, heterogeneity_p


def p_of(*groups: tuple[int, int, int]) -> float:
    """Groups as (gained, lost, alike); every pair is a cluster of its own."""
    differences = [d for won, lost, alike in groups for d in [1] * won + [-1] * lost + [0] * alike]
    homes = [i for i, group in enumerate(groups) for _ in range(sum(group))]
    return heterogeneity_p(differences, codes_of(range(len(differences))), codes_of(homes))


@pytest.mark.parametrize(
    ("groups", "low", "high"),
    [
        ([(30, 5, 65), (5, 30, 65)], 0.0, 0.001),
        ([(10, 10, 80), (10, 10, 80)], 0.9, 1.0),
        ([(10, 10, 80), (0, 0, 100), (25, 25, 50)], 0.9, 1.0),  # they differ in spread alone
        ([(9, 1, 10)], 1.0, 1.0),
    ],
)
def test_groups_that_differ_and_that_do_not(groups: list[tuple[int, int, int]], low: float, high: float) -> None:
    assert low <= p_of(*groups) <= high


def test_large_groups_agree_with_the_chi_squared_distribution() -> None:
    """The p are those of statsmodels 0.14: ols("d ~ C(suite)").fit(cov_type="HC1"), Wald test of the suites."""
    assert p_of((40, 20, 240), (22, 23, 255)) == pytest.approx(0.0395, abs=0.015)
    assert p_of((36, 24, 240), (33, 27, 240), (20, 30, 250)) == pytest.approx(0.0894, abs=0.01)


def test_a_cluster_stays_whole() -> None:
    """Twenty seeds of two tasks a suite are four tasks, of which nothing can be known."""
    differences = np.repeat([1.0, 1.0, -1.0, -1.0], 20)
    alone = heterogeneity_p(differences, np.arange(80), np.repeat([0, 1], 40))
    whole = heterogeneity_p(differences, np.repeat(np.arange(4), 20), np.repeat([0, 1], 40))
    assert alone < 0.001
    assert whole > 0.3
