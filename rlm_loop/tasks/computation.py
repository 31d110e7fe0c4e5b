"""Questions with exact answers over numbers, dates and strings: easy with a few lines of Python, hopeless by memory.

The truth is computed here by the function beside each question, never typed in.  Neighbours are of one kind and
about equally hard, so the two halves of the suite are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlm_loop.tasks import computation_truths as truth
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.match import How, Match

INTEGER = "Answer with an integer."
WORD = "Answer with the word only."
DATE = "Answer as YYYY-MM-DD."


def computation() -> Suite:
    """32 questions; `level` 1 is one expression, 2 a loop with conditions, 3 several steps."""
    return Suite("computation", _tasks(), "exact answers over numbers, dates and strings", "Apache-2.0")


def _tasks() -> tuple[Task, ...]:
    return (
        # numbers
        _task(
            "prime-sum",
            1,
            f"What is the sum of the primes between 1000 and 2000 that end in 7? {INTEGER}",
            truth.prime_sum,
            1000,
            2000,
            7,
        ),
        _task(
            "divisible-sum",
            1,
            "What is the sum of the integers from 1 to 5000 that are divisible by 3 or by 7 but not by both? "
            + INTEGER,
            truth.divisible_sum,
            5000,
            3,
            7,
        ),
        _task(
            "digit-sum-multiple",
            1,
            f"How many integers from 1 to 20000 are divisible by 13 and have digit sum 13? {INTEGER}",
            truth.digit_sum_multiples,
            20000,
            13,
        ),
        _task(
            "digit-twice",
            1,
            f"How many integers from 1 to 30000 contain the digit 7 exactly twice? {INTEGER}",
            truth.digit_exactly,
            30000,
            "7",
            2,
        ),
        _task(
            "emirps",
            2,
            "How many primes below 5000 give a different prime when their digits are reversed? " + INTEGER,
            truth.emirps,
            5000,
        ),
        _task(
            "palindrome-multiple",
            2,
            "What is the smallest integer above 200000 that is a palindrome and divisible by 73? " + INTEGER,
            truth.palindrome_multiple,
            200000,
            73,
        ),
        _task(
            "divisor-count",
            2,
            f"How many integers from 1 to 5000 have exactly 12 positive divisors? {INTEGER}",
            truth.with_divisors,
            5000,
            12,
        ),
        _task(
            "power-digits",
            2,
            f"What is the sum of the decimal digits of 2**500 + 3**300? {INTEGER}",
            truth.power_digits,
            2,
            500,
            3,
            300,
        ),
        # dates
        _task(
            "days-later",
            1,
            f"Which date is 10000 days after 1987-03-14? {DATE}",
            truth.days_later,
            "1987-03-14",
            10000,
            how="date",
        ),
        _task(
            "leap-weekend",
            1,
            "How often is 29 February a Saturday or a Sunday in the years 1901 to 2099? " + INTEGER,
            truth.leap_weekdays,
            1901,
            2099,
            (5, 6),
        ),
        _task(
            "friday-13",
            2,
            f"How many Fridays the 13th are there from 1990-01-01 to 2029-12-31? {INTEGER}",
            truth.fridays_13,
            1990,
            2029,
        ),
        _task(
            "working-days",
            2,
            "How many days from 2019-11-23 to 2031-04-08, both included, are Monday to Friday? " + INTEGER,
            truth.working_days,
            "2019-11-23",
            "2031-04-08",
        ),
        _task(
            "last-wednesdays",
            3,
            "Take the last Wednesday of each month of 2037. What is the sum of their days of the month? " + INTEGER,
            truth.last_weekdays,
            2037,
            2,
        ),
        _task(
            "product-dates",
            3,
            "On how many dates from 2021-01-01 to 2040-12-31 is day times month equal to the last two "
            f"digits of the year? {INTEGER}",
            truth.product_dates,
            2021,
            2040,
        ),
        # strings
        _task(
            "words-with-letters",
            1,
            f'Text: "{truth.TEXT}" How many words contain the letter e at least twice? {INTEGER}',
            truth.words_with,
            truth.TEXT,
            "e",
            2,
        ),
        _task(
            "vowels",
            1,
            f'Text: "{truth.TEXT}" How many vowels (aeiou) does it contain, in any case? {INTEGER}',
            truth.vowels,
            truth.TEXT,
        ),
        _task(
            "caesar",
            2,
            f'Decode "{truth.SECRET}": every letter was moved 7 places forward in the alphabet, z wraps to a. '
            "Answer with the decoded text.",
            truth.unshift,
            truth.SECRET,
            7,
        ),
        _task(
            "longest-word",
            2,
            f'Text: "{truth.TEXT}" Which word has the most different letters? {WORD}',
            truth.most_letters,
            truth.TEXT,
        ),
        _task(
            "palindromic-substrings",
            3,
            f'How many different palindromes of length 3 or more are substrings of "{truth.LETTERS}"? ' + INTEGER,
            truth.palindromic_substrings,
            truth.LETTERS,
            3,
        ),
        _task(
            "common-subsequence",
            3,
            'What is the length of the longest common subsequence of "conversational" and '
            f'"transcontinental"? {INTEGER}',
            truth.common_subsequence,
            "conversational",
            "transcontinental",
        ),
        # counting
        _task(
            "subsets",
            2,
            "How many subsets of the integers 1 to 16, the empty set included, have a sum divisible by 7? " + INTEGER,
            truth.subsets_divisible,
            16,
            7,
        ),
        _task(
            "binary-strings",
            2,
            f"How many binary strings of length 14 do not contain 111? {INTEGER}",
            truth.strings_without,
            14,
            "111",
        ),
        _task(
            "coins",
            3,
            "In how many ways can 137 be paid with coins of 1, 4, 9 and 20, order ignored? " + INTEGER,
            truth.ways_to_pay,
            137,
            (1, 4, 9, 20),
        ),
        _task(
            "arrangements",
            3,
            "How many different arrangements of the letters of BANDANAS have no two A's side by side? " + INTEGER,
            truth.arrangements_apart,
            "BANDANAS",
            "A",
        ),
        # simulation
        _task(
            "generator",
            2,
            "Start with x = 7 and repeat 1000 times: x = (31 * x + 17) % 1009. How many of the 1000 new values "
            f"are even? {INTEGER}",
            truth.even_values,
            7,
            31,
            17,
            1009,
            1000,
        ),
        _task(
            "collatz",
            2,
            "How many start values from 1 to 2000 reach 1 in exactly 50 Collatz steps? " + INTEGER,
            truth.collatz_starts,
            2000,
            50,
        ),
        _task(
            "josephus",
            3,
            "People 1 to 97 stand in a circle. Counting from person 1, every 5th person leaves until one is left. "
            f"Which number is it? {INTEGER}",
            truth.josephus,
            97,
            5,
        ),
        _task(
            "walk",
            3,
            "Start at (0, 0) facing north. For n = 1 to 200: go n steps forward, then turn right if n is divisible "
            f"by 3, else turn left. What is |x| + |y| at the end? {INTEGER}",
            truth.walk,
            200,
        ),
        # bases and order
        _task(
            "base-7",
            2,
            f"What is the sum of the digits of 987654321 written in base 7? {INTEGER}",
            truth.base_digits,
            987654321,
            7,
        ),
        _task(
            "balanced-bits",
            2,
            "How many integers from 1 to 4095 have as many ones as zeros in binary, without leading zeros? " + INTEGER,
            truth.balanced_bits,
            4095,
        ),
        _task(
            "sort-digit-sum",
            3,
            f"Sort {list(truth.NUMBERS)} by digit sum ascending, ties by value descending. Answer with the "
            "first three numbers, separated by commas.",
            truth.by_digit_sum,
            truth.NUMBERS,
            3,
        ),
        _task(
            "sort-words",
            3,
            f"Sort {list(truth.WORDS)} by length descending, ties by last letter ascending. Answer with the first "
            "three words, separated by commas.",
            truth.by_length,
            truth.WORDS,
            3,
        ),
    )


def _task(
    name: str, level: int, question: str, function: Callable[..., Any], *arguments: Any, how: How = "exact"
) -> Task:
    expected = function(*arguments)
    return Task(f"computation-{name}", question, Match(expected, how), expected, level=level, tags=("computation",))
