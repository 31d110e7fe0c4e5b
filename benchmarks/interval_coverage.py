"""How often the interval of a ratio covers the truth, by shape of the log-ratios and number of tasks, as Markdown.

python benchmarks/interval_coverage.py              # the table of docs/statistics.md; 5 minutes on one core
python benchmarks/interval_coverage.py --methods    # other intervals beside it, with their widths
python benchmarks/interval_coverage.py --rates      # rates of tasks with several seeds; 20 seconds
python benchmarks/interval_coverage.py --looks      # wrong decisions of a study that is read after every task; 1 minute
python benchmarks/interval_coverage.py --studies 500 --sizes 20,40
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rlm_loop.study.statistics.clusters import sizes, sums
from rlm_loop.study.statistics.rates import rate_interval, wilson_interval
from rlm_loop.study.statistics.ratios import bca_interval, flip_interval, mean_interval

Floats = NDArray[np.float64]
Rng = np.random.Generator
Draw = Callable[[Rng, int, int], tuple[Floats, NDArray[np.intp]]]
Interval = Callable[[Floats, NDArray[np.intp]], tuple[Floats, Floats]]

ALPHA = 0.05
#: Studies that are held in memory at once.
CHUNK = 500
#: How many steps a loop takes, 1 to 10, and a loop that takes fewer.
STEPS = np.array([0.05, 0.25, 0.3, 0.15, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01])
FEWER = np.array([0.3, 0.4, 0.15, 0.05, 0.03, 0.03, 0.02, 0.01, 0.005, 0.005])


def alone(draw: Callable[[Rng, tuple[int, int]], Floats]) -> Draw:
    """Each task is its own cluster."""
    return lambda rng, studies, n: (draw(rng, (studies, n)), np.arange(n))


def steps(others: Floats) -> Draw:
    """Log-ratios of steps: on 6 of 10 tasks both loops take as many."""
    logs = np.log(np.arange(1, 11))
    truth = 0.4 * float(STEPS @ logs - others @ logs)

    def draw(rng: Rng, studies: int, n: int) -> tuple[Floats, NDArray[np.intp]]:
        here = rng.choice(logs, p=STEPS, size=(studies, n))
        there = rng.choice(logs, p=others, size=(studies, n))
        return np.where(rng.random((studies, n)) < 0.6, 0.0, here - there) - truth, np.arange(n)

    return draw


def repositories(shared: Callable[[Rng, tuple[int, int]], Floats]) -> Draw:
    """n repositories of 1 to 4 tasks; what they share has the variance of one task or more."""

    def draw(rng: Rng, studies: int, n: int) -> tuple[Floats, NDArray[np.intp]]:
        codes = np.repeat(np.arange(n), np.resize([1, 2, 3, 4], n))
        return shared(rng, (studies, n))[:, codes] + rng.standard_normal((studies, codes.size)), codes

    return draw


#: Log-ratios whose true mean is 0.
SHAPES: dict[str, Draw] = {
    "normal (ratios lognormal)": alone(lambda rng, shape: rng.standard_normal(shape)),
    "ratio of two exponentials": alone(lambda rng, shape: rng.logistic(size=shape)),
    "t, 6 degrees of freedom": alone(lambda rng, shape: rng.standard_t(6, shape)),
    "t, 5 degrees of freedom": alone(lambda rng, shape: rng.standard_t(5, shape)),
    "t, 3 degrees of freedom": alone(lambda rng, shape: rng.standard_t(3, shape)),
    "steps 1 to 10, 6 of 10 tasks alike": steps(STEPS),
    "skewness 1 (gamma)": alone(lambda rng, shape: rng.gamma(4, 1, shape) - 4),
    "skewness 1.1 (exponential ratios)": alone(lambda rng, shape: np.log(rng.exponential(1, shape)) + np.euler_gamma),
    "skewness 1.8 (lognormal)": alone(lambda rng, shape: np.exp(rng.normal(0, 0.5, shape)) - math.exp(0.125)),
    "skewness 2 (exponential)": alone(lambda rng, shape: rng.exponential(1, shape) - 1),
    "skewness 6.2 (lognormal)": alone(lambda rng, shape: np.exp(rng.standard_normal(shape)) - math.exp(0.5)),
    "steps of a loop that takes fewer": steps(FEWER),
    "repositories of 1 to 4 tasks, normal": repositories(lambda rng, shape: rng.standard_normal(shape)),
    "repositories of 1 to 4 tasks, t 5": repositories(lambda rng, shape: rng.standard_t(5, shape)),
}


def default(values: Floats, codes: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """What `compare` uses, with fewer draws."""
    return mean_interval(values, codes, ALPHA, resamples=1000, flips=1999)[1:]


def t_interval(values: Floats, codes: NDArray[np.intp]) -> tuple[Floats, Floats]:
    total, of = sums(values, codes), sizes(codes)
    mean, k = values.mean(axis=-1), of.size
    spread = np.sqrt(((total - of * mean[:, None]) ** 2).sum(axis=-1) * k / (k - 1)) / of.sum()
    half = stats.t.ppf(1 - ALPHA / 2, k - 1) * spread
    return mean - half, mean + half


def bca(values: Floats, codes: NDArray[np.intp]) -> tuple[Floats, Floats]:
    total, of, mean = sums(values, codes), sizes(codes), values.mean(axis=-1)
    low, high = mean.copy(), mean.copy()
    varies = np.ptp(total - of * mean[:, None], axis=-1) > 1e-12
    low[varies], high[varies] = bca_interval(total[varies], of, 1000, 0)(ALPHA)
    return low, high


def bootstrap_t(values: Floats, codes: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """The studentised bootstrap (Efron 1981), for tasks that are their own clusters; infinite where it has no end."""
    n = codes.size
    drawn = np.random.default_rng(0).multinomial(n, [1 / n] * n, size=1000).astype(float)
    mean, error = values.mean(axis=-1), values.std(axis=-1, ddof=1) / math.sqrt(n)
    means = values @ drawn.T / n
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(values**2 @ drawn.T / n - means**2, 0) / (n - 1)
        t = np.where(
            variance > 1e-12, (means - mean[:, None]) / np.sqrt(variance), np.inf * np.sign(means - mean[:, None])
        )
    ends = np.quantile(np.nan_to_num(t, nan=0.0), [1 - ALPHA / 2, ALPHA / 2], axis=-1, method="nearest")
    return mean - ends[0] * error, mean - ends[1] * error


METHODS: dict[str, Interval] = {
    "t": t_interval,
    "BCa, t quantiles": bca,
    "bootstrap-t": bootstrap_t,
    "sign flips": lambda values, codes: flip_interval(values, codes, ALPHA, resamples=1999),
    "both (the default)": default,
}


def measured(draw: Draw, n: int, studies: int, methods: dict[str, Interval]) -> dict[str, tuple[float, float]]:
    """For each method the share of studies covered, and the median width as a multiple of that of the t interval."""
    rng = np.random.default_rng(n)
    covered: dict[str, list[Floats]] = {name: [] for name in methods}
    widths: dict[str, list[Floats]] = {name: [] for name in methods}
    for start in range(0, studies, CHUNK):
        values, codes = draw(rng, min(CHUNK, studies - start), n)
        low, high = t_interval(values, codes)
        usual = np.where(high > low, high - low, np.nan)
        for name, method in methods.items():
            low, high = method(values, codes)
            covered[name].append(((low <= 1e-9) & (high >= -1e-9)).astype(float))
            widths[name].append((high - low) / usual)
    return {
        name: (float(np.concatenate(covered[name]).mean()), float(np.nanmedian(np.concatenate(widths[name]))))
        for name in methods
    }


def coverage(studies: int, numbers: list[int]) -> Iterator[str]:
    """One row a shape, one column a number of tasks."""
    yield f"| log-ratios | {' | '.join(f'n = {n}' for n in numbers)} | width, n = {numbers[len(numbers) // 2]} |"
    yield f"|---|{'---:|' * (len(numbers) + 1)}"
    for shape, draw in SHAPES.items():
        found = [measured(draw, n, studies, {"both": default})["both"] for n in numbers]
        cells = [f"{100 * share:.1f}" for share, _ in found]
        yield f"| {shape} | {' | '.join(cells)} | {found[len(found) // 2][1]:.2f} |"


def beside(studies: int, n: int) -> Iterator[str]:
    """One row a shape, one column a method: coverage and width."""
    yield f"| log-ratios, n = {n} | {' | '.join(METHODS)} |"
    yield f"|---|{'---:|' * len(METHODS)}"
    for shape, draw in SHAPES.items():
        usable = {k: m for k, m in METHODS.items() if not (shape.startswith("repositories") and m is bootstrap_t)}
        found = measured(draw, n, studies, usable)
        cells = [f"{100 * found[k][0]:.1f} ({found[k][1]:.2f})" if k in found else "" for k in METHODS]
        yield f"| {shape} | {' | '.join(cells)} |"


def rates(studies: int) -> Iterator[str]:
    """How often an interval of a rate covers it, where tasks have seeds: each task has a chance of its own."""
    yield "| tasks x seeds, how alike seeds are | Wilson of all rows | t of task means | Wilson by cluster |"
    yield "|---|---:|---:|---:|"
    for n, seeds, alike in product((10, 20, 50), (2, 10), (0.0, 0.5, 1.0)):
        rng, codes = np.random.default_rng(n), np.repeat(np.arange(n), seeds)
        truth, share = 0.7, (1 - alike) / max(alike, 1e-9)
        chance = np.full((studies, n), truth)
        if alike:
            chance = (
                rng.beta(truth * share, (1 - truth) * share, (studies, n))
                if alike < 1
                else rng.random((studies, n)) < truth
            )
        values = (rng.random((studies, n * seeds)) < chance[:, codes]).astype(float)
        means = values.reshape(studies, n, seeds).mean(axis=-1)
        half = stats.t.ppf(1 - ALPHA / 2, n - 1) * means.std(axis=-1, ddof=1) / math.sqrt(n)
        ends = (
            wilson_interval(values.mean(axis=-1), n * seeds),
            (means.mean(axis=-1) - half, means.mean(axis=-1) + half),
            rate_interval(values, codes)[1:],
        )
        found = [100 * float(((low <= truth) & (high >= truth)).mean()) for low, high in ends]
        yield f"| {n} x {seeds}, {alike:g} | {' | '.join(f'{share:.1f}' for share in found)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=4000, help="simulated studies for each entry")
    parser.add_argument("--sizes", default="10,15,20,40,60,100,200", help="numbers of tasks (or of repositories)")
    parser.add_argument("--methods", action="store_true", help="several methods with their widths, at n = 20")
    parser.add_argument("--rates", action="store_true", help="rates of tasks with several seeds")
    asked = parser.parse_args()
    lines = (
        beside(asked.studies, 20)
        if asked.methods
        else rates(asked.studies)
        if asked.rates
        else coverage(asked.studies, [int(n) for n in asked.sizes.split(",")])
    )
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
