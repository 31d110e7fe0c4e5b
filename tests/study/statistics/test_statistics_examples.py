"""Agreement with published worked examples, other packages, and counting by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lazy import Lazy

from rlm_loop.study import statistics as ours
from rlm_loop.study.statistics.ratios import bca_interval

stats = Lazy("scipy.stats")


@pytest.mark.parametrize(
    ("resolved", "n", "low", "high"),
    # R. G. Newcombe, Statistics in Medicine 17 (1998) 857, table I, method 3.  The same to 10 digits: R 4.2.2,
    # prop.test(81, 263, correct = FALSE)$conf.int; statsmodels 0.15.0, proportion_confint(81, 263, method="wilson").
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_published_and_as_in_scipy(resolved: int, n: int, low: float, high: float) -> None:
    found = [float(x) for x in ours.wilson_interval(resolved / n, n)]
    assert found == pytest.approx([low, high], abs=5e-5)
    assert found == pytest.approx(list(stats.binomtest(resolved, n).proportion_ci(method="wilson")), abs=1e-12)
    values = np.arange(n) < resolved
    assert [float(x) for x in ours.rate_interval(values, np.arange(n))[1:]] == pytest.approx(found, abs=1e-9)


@given(st.integers(1, 400), st.integers(0, 400))
def test_wilson_holds_the_rate_and_mirrors(n: int, any_number: int) -> None:
    k = any_number % (n + 1)
    low, high = ours.wilson_interval(k / n, n)
    assert 0 <= low <= k / n <= high <= 1  # to the last bit: an error bar may not be negative
    assert ours.wilson_interval((n - k) / n, n) == pytest.approx((1 - high, 1 - low))


def test_newcombe_as_published() -> None:
    """Complete response before and after consolidation (Cavo 2012), in Fagerland, Lydersen & Laake, Statistical
    Analysis of Contingency Tables (2017), chapter 8: Newcombe_square_and_add_CI_paired_2x2 prints "-0.0621 (95% CI
    -0.1186 to -0.0046)" in tests/testthat/test-ch8.R of their R package contingencytables (github.com/ocbe-uio)."""
    low, high = ours.newcombe_interval(59, 6, 16, 80)
    assert [float(low), float(high)] == pytest.approx([-0.1186, -0.0046], abs=5e-5)


def test_an_interval_at_an_alpha_beyond_floating_point_is_finite_and_silent() -> None:
    values = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1.0])
    _, low, high = ours.rate_interval(values, np.repeat(np.arange(4), 3), 1e-308)
    assert 0 < low < high < 1
    assert ours.wilson_interval(0.5, 20, 1e-308) == ours.wilson_interval(0.5, 20, 1e-15)


@pytest.mark.parametrize(
    ("here", "there", "n", "limits", "z", "digits"),
    [
        # Cavo 2012, in the same file as above: Tango_asymptotic_score_CI_paired_2x2, "-0.1240 to -0.0054"
        (6, 16, 161, (-0.1240, -0.0054), 1.959964, 5e-5),
        # scoreci.mp(b, c, n, conf.level) of the R package PropCIs (github.com/cran/PropCIs, R/scoreci.mp.R), its
        # iteration run in R 4.2.2: (7, 1, 21, 0.95), (25, 28, 618, 0.9), and the example of its manual, (40, 20, 160)
        (1, 7, 21, (-0.51723, -0.02600), 1.959964, 5e-6),
        (28, 25, 618, (-0.014834, 0.024715), 1.644854, 1e-6),
        (20, 40, 160, (-0.218064, -0.030865), 1.959964, 1e-6),
    ],
)
def test_the_score_statistic_as_published(here: int, there: int, n: int, limits: Any, z: float, digits: float) -> None:
    """The ends of Tango's interval are the margins at which the statistic is z and -z."""
    for limit, wanted in zip(limits, (z, -z), strict=True):
        beyond = [float(ours.score_statistic(here, there, n, -(limit + d))) for d in (-digits, digits)]
        assert min(beyond) <= wanted <= max(beyond)


def test_mcnemar_as_published() -> None:
    """Cavo 2012 again.  R 4.2.2: binom.test(6, 22)$p.value is 0.0524787902832, and so says statsmodels 0.15.0,
    mcnemar([[59, 6], [16, 80]], exact=True).pvalue."""
    here = np.repeat([1, 1, 0, 0], [59, 6, 16, 80])
    there = np.repeat([1, 0, 1, 0], [59, 6, 16, 80])
    assert ours.mcnemar(here, there, np.arange(161)) == pytest.approx(0.0524787902832, abs=1e-12)
    assert ours.mcnemar(here, there, np.arange(161)) == pytest.approx(ours.sign_test(6, 16))


#: Darwin's maize, differences in eighths of an inch: `ZeaMays` in the R package HistData.
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def of_all_flips(values: Any) -> float:
    return stats.permutation_test((values,), np.sum, permutation_type="samples", n_resamples=2**15).pvalue


def test_sign_flips_as_published() -> None:
    """R. A. Fisher, The Design of Experiments (1935), 21: 863 of 32,768 changes of sign reach the sum of 314, so 1,726
    on both sides.  R 4.2.2, coin 1.4.2: oneway_test(v ~ g | b, distribution = "exact") of the differences
    and as many zeros, in blocks of two, has p = 1726 / 32768 as well, and so has scipy's `permutation_test`, here."""
    assert [of_all_flips(DARWIN), float(ours.sign_flip(DARWIN, np.arange(15)))] == pytest.approx([1726 / 32768] * 2)
    drawn = float(ours.sign_flip([*DARWIN, 0.0], np.arange(16), resamples=20000))
    assert drawn == pytest.approx(1726 / 32768, abs=0.006)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 4)), min_size=1, max_size=14))
def test_exact_tests_are_a_count_of_all_changes_of_sign(units: list[tuple[bool, bool, int]]) -> None:
    here, there, names = ([u[i] for u in units] for i in range(3))
    codes = ours.codes_of(names)
    by = [sum(h - t for h, t, c in zip(here, there, codes, strict=True) if c == k) for k in set(codes.tolist())]
    flipped = itertools.product(*((x, -x) for x in by))
    counted = sum(abs(sum(of)) >= abs(sum(by)) for of in flipped) / 2 ** len(by)
    assert ours.mcnemar(here, there, codes) == pytest.approx(counted)
    difference = np.array(here, dtype=float) - np.array(there, dtype=float)
    assert float(ours.sign_flip(difference, codes)) == pytest.approx(counted)


def test_inverted_sign_flips_as_in_scipy() -> None:
    """The ends of the interval are where the p of scipy's test of all changes of sign crosses alpha."""
    low, high = (float(x) for x in ours.flip_interval(DARWIN, np.arange(15)))
    assert (low, high) == pytest.approx((-1 / 6, 41.0), abs=1e-6)
    for mean, inside in [(low - 0.001, False), (low + 0.001, True), (high - 0.001, True), (high + 0.001, False)]:
        assert (of_all_flips(np.array(DARWIN) - mean) > 0.05) == inside


def test_bca_as_in_r() -> None:
    """R 4.2.2, boot 1.3.28.1: boot.ci(boot(DARWIN, function(x, i) mean(x[i]), R = 200000), type = "bca", conf = 1 - 2 *
    pnorm(-sqrt(15/14) * qt(0.975, 14))) with set.seed(1) gives -5.067 and 38.067; that of 0.95 is -1.73 to 36.4."""
    low, high = bca_interval(np.array(DARWIN, dtype=float), np.ones(15), 50_000, 0)(0.05)
    assert [float(low), float(high)] == pytest.approx([-5.067, 38.067], abs=0.5)


def test_holm_as_in_r() -> None:
    """R 4.2.2: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm"), and that of six."""
    assert ours.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert ours.holm([0.01, 0.02, 0.03, 0.04, 0.05, 0.001]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09, 0.006])
    assert ours.holm([0.02, None, 0.9]) == [0.04, None, 0.9]
    assert ours.holm([]) == []


def test_the_variance_by_cluster_is_the_sandwich_of_cluster_sums() -> None:
    """By hand: the squared sums of the residuals of each cluster, over n squared, times K / (K - 1)."""
    y = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 1.0])
    groups = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3])
    residual = y - y.mean()
    meat = sum(residual[groups == g].sum() ** 2 for g in range(4))
    assert float(ours.variance_of_mean(y, groups)) == pytest.approx(meat / 100 * 4 / 3)
    assert float(ours.variance_of_mean(y, np.arange(10))) == pytest.approx(y.var(ddof=1) / 10)
    assert math.isnan(float(ours.variance_of_mean(y, np.zeros(10, dtype=int))))


@pytest.mark.parametrize("varies", [0.0, 1.0])
def test_one_cluster_counts_as_one_unit_and_so_do_seeds_that_are_all_alike(varies: float) -> None:
    """40 tasks of 5 seeds that all end alike are 40 observations, and 10 seeds of one task are one."""
    sizes = ours.effective_size(math.nan, 0.1 * varies, 10, 1), ours.effective_size(0.0, 0.0, 200, 40)
    assert [float(size) for size in sizes] == [1, 40]
    _, low, high = ours.rate_interval(np.zeros(200), np.repeat(np.arange(40), 5))
    assert (float(low), float(high)) == pytest.approx(tuple(float(x) for x in ours.wilson_interval(0.0, 40)))


def test_an_effective_size_is_n_over_the_design_effect() -> None:
    few = (stats.t.ppf(0.975, 99) / stats.t.ppf(0.975, 24)) ** 2
    assert float(ours.effective_size(0.02, 0.01, 100, 25)) == pytest.approx(50 * few)
    assert float(ours.effective_size(0.005, 0.01, 100, 25)) == pytest.approx(100 * few), "a gain is taken for chance"
    assert float(ours.effective_size(0.01, 0.01, 100, 100)) == pytest.approx(100)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 5), st.integers(0, 9)), min_size=1, max_size=18),
    st.sampled_from([0.0, 0.1, 1 / 3]),
    st.sampled_from([0.05, 0.1, 0.2]),
)
def test_sign_flips_reject_just_what_lies_outside_their_interval(units: Any, mean: float, alpha: float) -> None:
    """Ties, clusters of one and of many, few clusters (all changes counted) and many (drawn)."""
    values, codes = np.array([u[0] for u in units], dtype=float), ours.codes_of([u[1] for u in units])
    low, high = ours.flip_interval(values, codes, alpha, resamples=199)
    p = float(ours.sign_flip(values - mean, codes, resamples=199))
    assert (p > alpha) == (low <= mean <= high)
    assert low <= values.mean() <= high


def test_pairs_that_never_vary_have_a_point_for_an_interval() -> None:
    assert [float(x) for x in ours.mean_interval(np.full(9, 0.5), np.arange(9))] == [0.5, 0.5, 0.5]
    rows = np.array([[0.5] * 9, [0.0] * 8 + [0.9]])
    mean, low, high = ours.mean_interval(rows, np.arange(9), resamples=200)
    assert [mean[0], low[0], high[0]] == [0.5, 0.5, 0.5]
    assert low[1] <= 0 < mean[1] < high[1]


def test_pairs_needed() -> None:
    """McNemar's exact test by counting all outcomes."""
    chance = [0.25, 0.05, 0.7]
    table = [(i, j) for i in range(41) for j in range(min(i, 41 - i)) if ours.sign_test(i, j) <= 0.05]
    counted = sum(stats.multinomial.pmf([i, j, 40 - i - j], 40, chance) for i, j in table)
    assert ours.power_of_rate(40, discordant=0.3, difference=0.2, margin=0.0) == pytest.approx(counted)
    assert ours.pairs_for_rate(discordant=0.3, difference=0.1, margin=0.0) == 249
    assert ours.pairs_for_rate(discordant=0.3, difference=-0.05, margin=0.03) is None


def test_no_power_is_promised_to_so_few_pairs_that_no_test_could_show_it() -> None:
    """The least p of 5 pairs is 2 / 32, of 6 it is 2 / 64; at a margin of 3 points 2 x 0.485^5 is above 0.05 too."""
    for n, shown in ((5, False), (6, True)):
        powers = [ours.power_of_rate(n, discordant=1.0, difference=0.99, margin=margin) for margin in (0.0, 0.03)]
        tests = (ours.mcnemar(np.ones(n), np.zeros(n), np.arange(n)), ours.noninferiority(n, 0, n, 0.03))
        assert [*(power > 0.8 for power in powers), *(p <= 0.05 for p in tests)] == [shown] * 4


def test_no_p_is_zero() -> None:
    """2 / 2^2000 is less than a float can hold."""
    assert 0 < ours.mcnemar(np.ones(2000), np.zeros(2000), np.arange(2000)) < 1e-300
    assert 0 < ours.mcnemar(np.ones(4000), np.zeros(4000), np.repeat(np.arange(2000), 2)) < 1e-300
    assert 0 < ours.noninferiority(4000, 0, 4000, 0.03) < 1e-300


@pytest.mark.parametrize(("here", "there", "n"), [(5, 0, 60), (3, 1, 108), (9, 6, 300), (2, 0, 300)])
def test_the_exact_p_is_that_of_the_worst_share_of_discordant_pairs(here: int, there: int, n: int) -> None:
    """Summed over all tables, at ten times as many shares as the package looks at."""
    seen = float(ours.score_statistic(here, there, n, 0.03))
    discordant, only_here = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    possible = only_here <= discordant
    table = ours.score_statistic(only_here, np.maximum(discordant - only_here, 0), n, 0.03)
    least = np.where(possible & (table >= seen - 1e-9), only_here, n + 1).min(axis=1)
    share = 0.03 + 0.97 * np.linspace(0, 1, 1600)[:, None] ** 2
    tails = stats.binom.sf(least - 1, np.arange(n + 1), (share - 0.03) / 2 / share)
    worst = float((stats.binom.pmf(np.arange(n + 1), n, share) * tails).sum(axis=1).max())
    assert ours.noninferiority(here, there, n, 0.03) == pytest.approx(min(1.0, 2 * worst), rel=5e-4)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 30), st.integers(1, 30), st.integers(0, 60), st.sampled_from([0.02, 0.05, 0.2]))
def test_noninferiority_is_nearer_the_more_the_arm_resolves(here: int, there: int, rest: int, margin: float) -> None:
    n = here + there + rest
    less, more = ours.noninferiority(here, there, n, margin), ours.noninferiority(here + 1, there - 1, n, margin)
    assert 0 <= more <= less <= 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_a_difference_lies_in_its_interval_and_turns_with_the_arms(units: list[tuple[bool, bool]]) -> None:
    here, there = [u[0] for u in units], [u[1] for u in units]
    codes = np.arange(len(units))
    estimate, low, high = (float(x) for x in ours.paired_difference(here, there, codes))
    assert -1 <= low <= estimate <= high <= 1
    assert [float(x) for x in ours.paired_difference(there, here, codes)] == pytest.approx([-estimate, -high, -low])
    assert sum(float(x) for x in ours.paired_table(here, there)) == len(units)


@given(st.lists(st.floats(0.0001, 1), min_size=1, max_size=8), st.floats(0.01, 0.2))
def test_a_claim_holds_after_holm_just_where_its_p_is_at_most_its_level(values: list[float], alpha: float) -> None:
    adjusted = [p for p in ours.holm(values) if p is not None]
    for p, after, level in zip(values, adjusted, ours.holm_levels(values, alpha), strict=True):
        if abs(after - alpha) > 1e-9:
            assert (p <= level) == (after <= alpha)


# -- whether the difference of two arms is the same in all suites


def p_of(*groups: tuple[int, int, int]) -> float:
    """Groups as (gained, lost, alike); every pair is a cluster of its own."""
    differences = [d for won, lost, alike in groups for d in [1] * won + [-1] * lost + [0] * alike]
    homes = [i for i, group in enumerate(groups) for _ in range(sum(group))]
    return ours.heterogeneity_p(differences, ours.codes_of(range(len(differences))), ours.codes_of(homes))


@pytest.mark.parametrize(
    ("groups", "low", "high"),
    [
        ([(30, 5, 65), (5, 30, 65)], 0.0, 0.001),
        ([(10, 10, 80), (10, 10, 80)], 0.9, 1.0),
        ([(10, 10, 80), (0, 0, 100), (25, 25, 50)], 0.9, 1.0),  # they differ in spread alone
        ([(9, 1, 10)], 1.0, 1.0),
        # Wald test of the suites in statsmodels 0.14, ols("d ~ C(suite)").fit(cov_type="HC1"): 0.0395 and 0.0894
        ([(40, 20, 240), (22, 23, 255)], 0.0395 - 0.015, 0.0395 + 0.015),
        ([(36, 24, 240), (33, 27, 240), (20, 30, 250)], 0.0894 - 0.01, 0.0894 + 0.01),
    ],
)
def test_groups_that_differ_and_that_do_not(groups: list[tuple[int, int, int]], low: float, high: float) -> None:
    assert low <= p_of(*groups) <= high


def test_a_cluster_stays_whole() -> None:
    """Twenty seeds of two tasks a suite are four tasks, of which nothing can be known."""
    differences = np.repeat([1.0, 1.0, -1.0, -1.0], 20)
    alone = ours.heterogeneity_p(differences, np.arange(80), np.repeat([0, 1], 40))
    whole = ours.heterogeneity_p(differences, np.repeat(np.arange(4), 20), np.repeat([0, 1], 40))
    assert alone < 0.001 < 0.3 < whole
