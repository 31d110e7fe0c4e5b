"""The functions that compute what is right in the suite `computation`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import permutations, product


def primes(below: int) -> list[int]:
    return [n for n in range(2, below) if all(n % d for d in range(2, int(n**0.5) + 1))]


def digit_sum(n: int) -> int:
    return sum(map(int, str(n)))


def prime_sum(low: int, high: int, last: int) -> int:
    return sum(p for p in primes(high + 1) if p >= low and p % 10 == last)


def divisible_sum(top: int, a: int, b: int) -> int:
    return sum(n for n in range(1, top + 1) if (n % a == 0) != (n % b == 0))


def digit_sum_multiples(top: int, k: int) -> int:
    return sum(1 for n in range(k, top + 1, k) if digit_sum(n) == k)


def digit_exactly(top: int, digit: str, times: int) -> int:
    return sum(1 for n in range(1, top + 1) if str(n).count(digit) == times)


def emirps(below: int) -> int:
    known = set(primes(10 ** len(str(below - 1))))
    return sum(1 for p in known if p < below and (q := int(str(p)[::-1])) != p and q in known)


def palindrome_multiple(above: int, k: int) -> int:
    n = above + 1
    while n % k or str(n) != str(n)[::-1]:
        n += 1
    return n


def with_divisors(top: int, count: int) -> int:
    counts = [0] * (top + 1)
    for d in range(1, top + 1):
        for n in range(d, top + 1, d):
            counts[n] += 1
    return counts.count(count)


def power_digits(a: int, m: int, b: int, n: int) -> int:
    return digit_sum(a**m + b**n)


def days_later(start: str, days: int) -> str:
    return (date.fromisoformat(start) + timedelta(days)).isoformat()


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(i) for i in range((last - first).days + 1)]


def leap_weekdays(first: int, last: int, weekdays: Sequence[int]) -> int:
    days = _days(date(first, 1, 1), date(last, 12, 31))
    return sum(1 for d in days if (d.month, d.day) == (2, 29) and d.weekday() in weekdays)


def fridays_13(first: int, last: int) -> int:
    return sum(1 for d in _days(date(first, 1, 1), date(last, 12, 31)) if d.day == 13 and d.weekday() == 4)


def working_days(first: str, last: str) -> int:
    return sum(1 for d in _days(date.fromisoformat(first), date.fromisoformat(last)) if d.weekday() < 5)


def last_weekdays(year: int, weekday: int) -> int:
    days = _days(date(year, 1, 1), date(year, 12, 31))
    return sum({d.month: d.day for d in days if d.weekday() == weekday}.values())


def product_dates(first: int, last: int) -> int:
    return sum(1 for d in _days(date(first, 1, 1), date(last, 12, 31)) if d.day * d.month == d.year % 100)


def words(text: str) -> list[str]:
    return text.lower().replace(",", "").split()


def words_with(text: str, letter: str, times: int) -> int:
    return sum(1 for w in words(text) if w.count(letter) >= times)


def vowels(text: str) -> int:
    return sum(1 for c in text.lower() if c in "aeiou")


def most_letters(text: str) -> str:
    best = sorted(words(text), key=lambda w: len(set(w)))
    if len(set(best[-2])) == len(set(best[-1])):
        raise ValueError("two words have the most different letters")
    return best[-1]


def unshift(text: str, places: int) -> str:
    return "".join(chr((ord(c) - ord("a") - places) % 26 + ord("a")) if c.isalpha() else c for c in text)


def palindromic_substrings(text: str, shortest: int) -> int:
    parts = {text[i:j] for i in range(len(text)) for j in range(i + shortest, len(text) + 1)}
    return sum(1 for p in parts if p == p[::-1])


def common_subsequence(a: str, b: str) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        row, above = [0], row
        for j, y in enumerate(b):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[j]))
    return row[-1]


def subsets_divisible(top: int, k: int) -> int:
    counts = [1] + [0] * (k - 1)
    for n in range(1, top + 1):
        counts = [counts[r] + counts[(r - n) % k] for r in range(k)]
    return counts[0]


def strings_without(length: int, part: str) -> int:
    return sum(1 for bits in product("01", repeat=length) if part not in "".join(bits))


def ways_to_pay(amount: int, coins: Sequence[int]) -> int:
    ways = [1] + [0] * amount
    for coin in coins:
        for total in range(coin, amount + 1):
            ways[total] += ways[total - coin]
    return ways[amount]


def arrangements_apart(letters: str, letter: str) -> int:
    return sum(1 for p in set(permutations(letters)) if letter * 2 not in "".join(p))


def even_values(x: int, a: int, c: int, m: int, times: int) -> int:
    even = 0
    for _ in range(times):
        x = (a * x + c) % m
        even += x % 2 == 0
    return even


def collatz_starts(top: int, steps: int) -> int:
    def length(n: int) -> int:
        count = 0
        while n != 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    return sum(1 for n in range(1, top + 1) if length(n) == steps)


def josephus(people: int, every: int) -> int:
    circle, at = list(range(1, people + 1)), 0
    while len(circle) > 1:
        at = (at + every - 1) % len(circle)
        del circle[at]
    return circle[0]


def walk(top: int) -> int:
    x, y, dx, dy = 0, 0, 0, 1
    for n in range(1, top + 1):
        x, y = x + n * dx, y + n * dy
        dx, dy = (dy, -dx) if n % 3 == 0 else (-dy, dx)
    return abs(x) + abs(y)


def base_digits(n: int, base: int) -> int:
    return n % base + base_digits(n // base, base) if n else 0


def balanced_bits(top: int) -> int:
    return sum(1 for n in range(1, top + 1) if n.bit_count() * 2 == n.bit_length())


def by_digit_sum(numbers: Sequence[int], count: int) -> list[int]:
    return sorted(numbers, key=lambda n: (digit_sum(n), -n))[:count]


def by_length(items: Sequence[str], count: int) -> list[str]:
    keys = [(-len(w), w[-1]) for w in items]
    best = sorted(zip(keys, items, strict=True))
    if len({key for key, _ in best[: count + 1]}) <= count:
        raise ValueError("a tie among the first words")
    return [w for _, w in best[:count]]
