"""Thousands of simulated studies: do the intervals cover, do the tests err as seldom as they say, is the power right?

Each table entry is at least 2,000 studies.  Coverage has to be within 1.5 points of 95 %; an error rate at most
nominal, apart from what chance adds to so many studies (2.6 standard errors).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import stats

from rlm_loop.study import statistics as ours
from rlm_loop.study.statistics.non_inferiority import exact_tail
from rlm_loop.study.statistics.rates import effective_table
from rlm_loop.study.statistics.ratios import bca_interval, expanded_tail

pytestmark = pytest.mark.slow

ALPHA = 0.05
NEAR = 0.015


def covered(found: Sequence[np.ndarray], truth: float) -> float:
    *_, low, high = found
    return float(((low <= truth) & (truth <= high)).mean())


def covers(found: Sequence[np.ndarray], truth: float) -> bool:
    return abs(covered(found, truth) - 0.95) <= NEAR


def at_most(wrong: np.ndarray, nominal: float) -> bool:
    return float(wrong.mean()) <= nominal + 2.6 * math.sqrt(nominal * (1 - nominal) / wrong.size)


own = np.arange


@pytest.mark.parametrize(("n", "rate"), [(40, 0.3), (100, 0.1), (100, 0.5), (300, 0.8)])
def test_wilson_covers(n: int, rate: float) -> None:
    rng = np.random.default_rng(n)
    seen = (rng.random((8000, n)) < rate).astype(float)
    assert covers(ours.rate_interval(seen, own(n)), rate)


@pytest.mark.parametrize(("clusters", "size", "spread"), [(25, 4, 0.3), (40, 6, 0.5), (60, 3, 0.2)])
def test_wilson_covers_with_tasks_that_share_a_repository(clusters: int, size: int, spread: float) -> None:
    rng = np.random.default_rng(clusters)
    of = rng.beta(0.4 / spread, 0.6 / spread, (4000, clusters))
    seen = (rng.random((4000, clusters * size)) < np.repeat(of, size, axis=1)).astype(float)
    codes = np.repeat(np.arange(clusters), size)
    assert covers(ours.rate_interval(seen, codes), 0.4)
    assert covered(ours.rate_interval(seen, own(codes.size)), 0.4) < 0.95 - NEAR, "taken for independent: too narrow"


#: Of each number of pairs, the chances that both resolve, only this arm, only the other, neither.
CELLS = {
    100: (0.3, 0.1, 0.1, 0.5),
    108: (0.35, 0.15, 0.08, 0.42),
    60: (0.2, 0.2, 0.2, 0.4),
    200: (0.5, 0.05, 0.1, 0.35),
    400: (0.1, 0.06, 0.04, 0.8),
}


@pytest.mark.parametrize("n", CELLS)
def test_newcombe_covers(n: int) -> None:
    at = (np.random.default_rng(n).random((6000, n, 1)) > np.cumsum(CELLS[n])[None, None, :3]).sum(-1)
    here, there = (at <= 1).astype(float), ((at == 0) | (at == 2)).astype(float)
    assert covers(ours.paired_difference(here, there, own(n)), CELLS[n][1] - CELLS[n][2])


@pytest.mark.parametrize(("clusters", "size"), [(30, 4), (50, 3)])
def test_newcombe_covers_by_repository(clusters: int, size: int) -> None:
    """In half of the repositories only this arm gets anywhere, in the others only the baseline does (rarely)."""
    rng = np.random.default_rng(clusters)
    kind = np.repeat(rng.random((4000, clusters)) < 0.5, size, axis=1)
    at = rng.random((4000, clusters * size))
    here, there = (at < 0.3) | (kind & (at < 0.6)), (at < 0.3) | (~kind & (at > 0.8))
    truth = 0.5 * 0.3 - 0.5 * 0.2
    codes = np.repeat(np.arange(clusters), size)
    assert covers(ours.paired_difference(here, there, codes), truth)
    assert covered(ours.paired_difference(here, there, own(codes.size)), truth) < 0.95 - NEAR


def steps(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Logarithms of how many steps a loop takes, 1 to 10."""
    return rng.choice(np.log(np.arange(1, 11)), p=np.array([5, 25, 30, 15, 10, 5, 4, 3, 2, 1]) / 100, size=shape)


#: Log-ratios of mean 0, as `docs/statistics.md` tabulates them for more shapes and sizes.
LOG_RATIOS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "heavy": lambda rng, shape: rng.standard_t(6, shape) / math.sqrt(1.5),
    "heaviest": lambda rng, shape: rng.standard_t(3, shape),
    "ties": lambda rng, shape: np.where(rng.random(shape) < 0.6, 0, steps(rng, shape) - steps(rng, shape)),
    "skewed": lambda rng, shape: (rng.gamma(4, 1, shape) - 4) / 2,
    "exponential": lambda rng, shape: rng.exponential(1, shape) - 1,
}


def log_ratios(kind: str, studies: int, n: int) -> np.ndarray:
    return LOG_RATIOS[kind](np.random.default_rng(n), (studies, n))


SHAPES = [("normal", 10), ("normal", 20), ("heavy", 40), ("heavy", 60), ("heaviest", 20), ("ties", 40), ("ties", 60)]


@pytest.mark.parametrize(("kind", "n"), [*SHAPES, ("skewed", 20), ("skewed", 40), ("exponential", 20)])
def test_the_interval_of_a_ratio_covers(kind: str, n: int) -> None:
    assert covers(ours.mean_interval(0.3 + log_ratios(kind, 3000, n), own(n), resamples=800, flips=999), 0.3)


@pytest.mark.parametrize(("kind", "n", "bca"), [("heaviest", 40, True), ("ties", 40, True), ("exponential", 20, False)])
def test_neither_half_of_the_interval_of_a_ratio_would_do_alone(kind: str, n: int, bca: bool) -> None:
    values = log_ratios(kind, 3000, n)
    half = bca_interval(values, np.ones(n), 800, 0)(ALPHA) if bca else ours.flip_interval(values, own(n), resamples=999)
    assert covered(half, 0.0) < 0.95 - NEAR


@pytest.mark.parametrize(("kind", "n"), [("normal", 10), ("heavy", 28), ("skewed", 20)])
def test_the_plain_bootstrap_covers(kind: str, n: int) -> None:
    """`bootstrap` is plain Python; here its percentiles are taken of many studies at once."""
    rng = np.random.default_rng(n)
    values = LOG_RATIOS[kind](rng, (4000, n))
    means = values @ rng.multinomial(n, [1 / n] * n, size=2000).T / n
    assert covers(np.quantile(means, [expanded_tail(n, 0.05), 1 - expanded_tail(n, 0.05)], axis=-1), 0.0)
    if n < 15:
        plain = np.quantile(means, [0.025, 0.975], axis=-1)
        assert covered(plain, 0.0) < 0.95 - NEAR, "percentiles that do not know how few values there are"


@pytest.mark.parametrize(("n", "exactly"), [(8, 1 - 6 / 128), (12, 1 - 102 / 2048), (30, 0.95)])
def test_inverted_sign_flips_cover_exactly_whatever_the_tails(n: int, exactly: float) -> None:
    found = ours.flip_interval(log_ratios("heaviest", 4000, n), own(n), resamples=999)
    assert abs(covered(found, 0.0) - exactly) <= 2.6 * math.sqrt(0.05 * 0.95 / 4000)


def test_the_interval_of_a_ratio_covers_by_repository_of_unequal_sizes() -> None:
    rng = np.random.default_rng(3)
    sizes = np.tile([1, 2, 3, 4], 10)
    codes = np.repeat(np.arange(40), sizes)
    shared = np.repeat(rng.standard_normal((2000, 40)), sizes, axis=1)
    values = shared + rng.standard_normal((2000, codes.size))
    assert covers(ours.mean_interval(values, codes, resamples=800, flips=999), 0.0)
    alone = ours.flip_interval(values, own(codes.size), resamples=999)
    assert covered(alone, 0.0) < 0.95 - NEAR, "tasks of a repository taken for independent"


def test_sign_flips_of_whole_repositories() -> None:
    rng = np.random.default_rng(5)
    codes = np.repeat(np.arange(20), 4)
    values = np.repeat(rng.standard_normal((4000, 20)), 4, axis=1) + rng.standard_normal((4000, 80))
    assert at_most(ours.sign_flip(values, codes, resamples=999) <= ALPHA, ALPHA)
    assert float((ours.sign_flip(values, own(80), resamples=999) <= ALPHA).mean()) > 2 * ALPHA


@pytest.mark.parametrize("repositories", [60, 20])
def test_mcnemar_errs_at_most_as_often_as_it_says(repositories: int) -> None:
    rng = np.random.default_rng(repositories)
    codes = np.repeat(np.arange(repositories), 60 // repositories)
    sign = np.repeat(rng.random((2000, repositories)) < 0.5, 60 // repositories, axis=1)
    discordant = rng.random((2000, 60)) < 0.4
    here, there = discordant & sign, discordant & ~sign
    p = np.array([ours.mcnemar(h, t, codes) for h, t in zip(here, there, strict=True)])
    assert at_most(p <= ALPHA, ALPHA)


def drawn(n: int, discordant: float, difference: float, studies: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each study the pairs that only this arm resolves, and those that only the other does."""
    chances = [(discordant + difference) / 2, (discordant - difference) / 2, 1 - discordant]
    counts = np.random.default_rng(n).multinomial(n, chances, size=studies)
    return counts[:, 0], counts[:, 1]


def exact_critical(statistics: np.ndarray, n: int, margin: float) -> float:
    """The smallest of these statistics that shows non-inferiority; the p value falls as the statistic grows."""
    known = np.unique(statistics[statistics > 1])
    low, high = 0, known.size
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if exact_tail(known[middle], n, margin) <= ALPHA / 2 else (middle + 1, high)
    return float(known[low]) if low < known.size else math.inf


@pytest.mark.parametrize(("n", "discordant"), [(40, 0.2), (108, 0.06), (108, 0.3)])
def test_noninferiority_errs_at_most_as_often_as_it_says(n: int, discordant: float) -> None:
    """At the very margin an arm is called non-inferior in at most 2.5 % of the studies (one-sided)."""
    statistics = ours.score_statistic(*drawn(n, discordant, -0.03, 10000), n, 0.03)
    assert at_most(statistics >= exact_critical(statistics, n, 0.03), ALPHA / 2)


def test_noninferiority_errs_no_more_often_where_the_seeds_of_a_task_all_end_alike() -> None:
    """40 tasks of 5 seeds, at temperature 0, say.  Only the baseline resolves a task with the chance of the margin, so
    that 0.97^40 = 30 % of the studies see no difference at all: this must not count as 200 pairs without one."""
    codes = np.repeat(np.arange(40), 5)
    wrong = 0.0
    for lost in range(4):
        there = np.repeat(np.arange(40) < lost, 5).astype(float)
        table = effective_table(np.zeros(200), there, codes)
        p = ours.noninferiority(float(table[1]), float(table[2]), float(sum(table)), 0.03)
        wrong += float(stats.binom.pmf(lost, 40, 0.03)) * (p <= ALPHA)
    assert wrong <= ALPHA / 2


@pytest.mark.parametrize(("margin", "discordant", "difference"), [(0.1, 0.3, 0.05), (0.1, 0.2, 0.0)])
def test_noninferiority_has_the_power_that_was_computed(margin: float, discordant: float, difference: float) -> None:
    n = ours.pairs_for_rate(discordant=discordant, difference=difference, margin=margin)
    statistics = ours.score_statistic(*drawn(n, discordant, difference, 10000), n, margin)
    shown = float((statistics >= exact_critical(statistics, n, margin)).mean())
    assert abs(shown - ours.power_of_rate(n, discordant=discordant, difference=difference, margin=margin)) <= NEAR
    assert shown >= 0.8 - NEAR


@pytest.mark.parametrize(("n", "discordant", "difference"), [(128, 0.2, 0.1), (36, 0.3, 0.2), (24, 0.4, 0.3)])
def test_a_difference_is_shown_with_the_power_that_was_computed(n: int, discordant: float, difference: float) -> None:
    """McNemar's exact test, which the approximation of Connor flatters (0.462 for 0.384 in the first review)."""
    more, fewer = drawn(n, discordant, difference, 20000)
    p = np.minimum(1.0, 2 * stats.binom.cdf(np.minimum(more, fewer), more + fewer, 0.5))
    shown = float(((p <= ALPHA) & (more + fewer > 0)).mean())
    assert abs(shown - ours.power_of_rate(n, discordant=discordant, difference=difference, margin=0.0)) <= NEAR


def test_holm_keeps_the_error_rate_of_the_family() -> None:
    """Four true hypotheses whose statistics hang together: any false claim at all in at most 5 % of the studies."""
    rng = np.random.default_rng(11)
    z = 0.5 * rng.standard_normal((5000, 1)) + math.sqrt(0.75) * rng.standard_normal((5000, 4))
    families = 2 * stats.norm.sf(np.abs(z))
    least = np.array([min(p for p in ours.holm(list(family)) if p is not None) for family in families])
    assert at_most(least <= ALPHA, ALPHA)
    assert float((families.min(axis=1) <= ALPHA).mean()) > 2 * ALPHA


def test_the_bounded_sequence_holds_at_every_look() -> None:
    values = np.random.default_rng(17).choice([1.0, 0.0, -1.0], p=[0.15, 0.75, 0.10], size=(2000, 120))
    low, high = ours.bounded_sequence(values, grid=101)
    assert at_most(((low > 0.05) | (high < 0.05)).any(axis=1), ALPHA)
    assert float((high - low)[:, -1].mean()) < 0.6 < float((high - low)[:, 0].mean())
