"""What ten paired tasks can show by McNemar's exact test: python experiments/swebench_lite/power.py"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.stats import binom

from rlm_loop.report import Table
from rlm_loop.study.statistics import sign_test

ALPHA = 0.05
#: The share of tasks that only one arm resolves, and that only the other does.
TRUTHS = ((0.2, 0.0), (0.3, 0.0), (0.4, 0.0), (0.5, 0.0), (0.7, 0.0), (0.9, 0.0), (0.3, 0.1), (0.5, 0.1))


@cache
def least(discordant: int, alpha: float = ALPHA) -> int | None:
    """The fewest of so many discordant tasks that one arm has to resolve; `None` where all of them are too few."""
    found = None
    for wins in range(discordant, discordant // 2, -1):
        if sign_test(wins, discordant - wins) > alpha:
            break
        found = wins
    return found


def power(n: int, here: float, there: float, alpha: float = ALPHA) -> float:
    """The chance that n tasks show that the arms differ, with these shares of tasks that only one of them resolves."""
    sizes = np.array([d for d in range(1, n + 1) if least(d, alpha) is not None])
    if not sizes.size:
        return 0.0
    wins, share = np.array([least(int(d), alpha) for d in sizes]), here / (here + there)
    either = binom.sf(wins - 1, sizes, share) + binom.cdf(sizes - wins, sizes, share)
    return float((binom.pmf(sizes, n, here + there) * either).sum())


def needed(here: float, there: float, wanted: float = 0.8, most: int = 120) -> int | None:
    """The fewest tasks from which on that chance is at least `wanted`; `None` beyond `most`."""
    found = None
    for n in range(most, 0, -1):
        if power(n, here, there) < wanted:
            break
        found = n
    return found


def table() -> Table:
    """The chance that ten tasks show a difference, and the tasks for a chance of 80 %."""
    rows = [
        [f"{h:.0%}", f"{t:.0%}", f"{100 * (h - t):+.0f}", f"{power(10, h, t):.1%}", str(needed(h, t) or "over 120")]
        for h, t in TRUTHS
    ]
    columns = ["only the one resolves", "only the other", "points", "power of 10 tasks", "tasks for 80 %"]
    return Table("McNemar's exact test, two-sided, 0.05", columns, rows, ["One claim, without Holm's correction."], 0)


if __name__ == "__main__":
    print(table().to_markdown())
