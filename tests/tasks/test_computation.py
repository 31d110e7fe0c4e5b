"""The truths of `computation`, against other ways of finding them."""

from __future__ import annotations

import calendar
from collections import Counter
from datetime import date
from functools import cache

import pytest

from rlm_loop.tasks import Attempt, Task, get_suite

SUITE = get_suite("computation")


@pytest.mark.parametrize("task", SUITE.tasks, ids=lambda t: t.id)
def test_the_truth_resolves_and_nothing_near_does(task: Task) -> None:
    expected = task.expected
    near = expected + 1 if isinstance(expected, int) else expected[1:]
    answers = (expected, f"The answer is {expected}.", near, None)
    assert [task.score(Attempt(answer)).resolved for answer in answers] == [True, True, False, False]
    assert ("Answer" in task.question, task.needs_repl, task.files) == (True, True, {})
    assert str(expected) not in task.question or len(str(expected)) < 10  # a word of the text may be the answer


@cache
def _tribonacci(n: int) -> int:
    return (1, 2, 4)[n] if n < 3 else _tribonacci(n - 1) + _tribonacci(n - 2) + _tribonacci(n - 3)


def _pay(amount: int, coins: tuple[int, ...]) -> int:
    if not coins:
        return amount == 0
    return sum(_pay(amount - k * coins[0], coins[1:]) for k in range(amount // coins[0] + 1))


def _josephus(n: int, k: int) -> int:
    return 0 if n == 1 else (_josephus(n - 1, k) + k) % n


OTHERWISE = {
    "prime-sum": lambda: sum(n for n in range(1007, 2001, 10) if not any(n % d == 0 for d in range(2, n))),
    "divisible-sum": lambda: sum(range(0, 5001, 3)) + sum(range(0, 5001, 7)) - 2 * sum(range(0, 5001, 21)),
    "digit-twice": lambda: sum(Counter(str(n))["7"] == 2 for n in range(30001)),
    "divisor-count": lambda: sum(sum(n % d == 0 for d in range(1, int(n**0.5) + 1)) * 2 - (int(n**0.5) ** 2 == n) == 12
                                 for n in range(1, 5001)),
    "days-later": lambda: date.fromordinal(date(1987, 3, 14).toordinal() + 10000).isoformat(),
    "leap-weekend": lambda: sum(calendar.isleap(y) and calendar.weekday(y, 2, 29) > 4 for y in range(1901, 2100)),
    "friday-13": lambda: sum(calendar.weekday(y, m, 13) == 4 for y in range(1990, 2030) for m in range(1, 13)),
    "last-wednesdays": lambda: sum(max(w[2] for w in calendar.monthcalendar(2037, m)) for m in range(1, 13)),
    "product-dates": lambda: sum(d * m == y for y in range(21, 41) for m in range(1, 13)
                                 for d in range(1, calendar.monthrange(2000 + y, m)[1] + 1)),
    "subsets": lambda: sum(sum(i + 1 for i in range(16) if bits >> i & 1) % 7 == 0 for bits in range(2**16)),
    "binary-strings": lambda: _tribonacci(14),
    "coins": lambda: _pay(137, (20, 9, 4, 1)),
    "arrangements": lambda: 120 // 2 * 20,  # B, N, D, N, S in 5!/2! orders; three of six gaps for the A's
    "josephus": lambda: _josephus(97, 5) + 1,
    "caesar": lambda: "seven quiet ships left the harbour before dawn",
    "words-with-letters": lambda: 11,  # counted by hand
}  # fmt: skip


@pytest.mark.parametrize("name", list(OTHERWISE))
def test_truths_found_another_way(name: str) -> None:
    (task,) = SUITE.take([f"computation-{name}"])
    assert OTHERWISE[name]() == task.expected
