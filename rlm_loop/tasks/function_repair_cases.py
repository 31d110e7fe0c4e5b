"""The functions of the suite `function_repair`: right sources, and the one change that breaks each.

Inputs are Python literals; what is expected is what the right source returns.  Neighbours are alike in kind and
level.  No change makes a function run for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from typing import Any

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """One function: `right` is in `source` exactly once, and `wrong` in its place is the bug."""

    name: str
    level: int
    kind: str
    source: str
    right: str
    wrong: str
    visible: tuple[Arguments, ...]
    hidden: tuple[Arguments, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", dedent(self.source).strip() + "\n")
        if self.source.count(self.right) != 1:
            raise ValueError(f"{self.name}: {self.right!r} is in the source {self.source.count(self.right)} times")

    @property
    def buggy(self) -> str:
        return self.source.replace(self.right, self.wrong)


CASES: tuple[Case, ...] = (
    Case(
        "binary_search", 1, "off by one",
        '''
        def binary_search(items, target):
            """Return the index of target in the sorted list items without duplicates, or -1."""
            low, high = 0, len(items) - 1
            while low <= high:
                middle = (low + high) // 2
                if items[middle] == target:
                    return middle
                if items[middle] < target:
                    low = middle + 1
                else:
                    high = middle - 1
            return -1
        ''',
        "low <= high", "low < high",
        (([1, 3, 5, 7], 3), ([1, 3, 5, 7], 7), ([1, 3, 5], 4), ([], 1)),
        (([4], 4), ([1, 2, 3], 1), ([1, 2, 3], 3), ([2, 4, 6, 8, 10], 8), ([2, 4, 6, 8, 10], 10), ([2, 4], 5),
        ([2, 4], 1)),
    ),
    Case(
        "primes_below", 1, "off by one",
        '''
        def primes_below(n):
            """Return the list of all primes smaller than n."""
            prime = [True] * n
            for i in range(2, int(n ** 0.5) + 1):
                if prime[i]:
                    for j in range(i * i, n, i):
                        prime[j] = False
            return [i for i in range(2, n) if prime[i]]
        ''',
        "int(n ** 0.5) + 1", "int(n ** 0.5)",
        ((5,), (10,), (30,), (0,)),
        ((2,), (3,), (11,), (26,), (50,), (125,), (1,)),
    ),
    Case(
        "count_change", 1, "off by one",
        '''
        def count_change(amount, coins):
            """Return in how many ways amount can be paid with coins, order ignored."""
            ways = [1] + [0] * amount
            for coin in coins:
                for total in range(coin, amount + 1):
                    ways[total] += ways[total - coin]
            return ways[amount]
        ''',
        "range(coin, amount + 1)", "range(coin + 1, amount + 1)",
        ((5, [1, 2, 5]), (0, [3]), (3, [2]), (10, [2, 5])),
        ((10, [1, 5, 10]), (7, [7]), (100, [1, 5, 10, 25, 50]), (8, [3, 5]), (1, [2]), (6, [1, 2, 3])),
    ),
    Case(
        "max_subarray", 1, "wrong start value",
        '''
        def max_subarray(values):
            """Return the largest sum of a non-empty run of neighbours in values."""
            best = values[0]
            current = 0
            for value in values:
                current = max(current + value, value)
                best = max(best, current)
            return best
        ''',
        "best = values[0]", "best = 0",
        (([1, -2, 3, 4],), ([-3, -1, -2],), ([5],)),
        (([-7],), ([-2, -5],), ([2, -1, 2],), ([-1, 4, -2, 5, -8],), ([0, -1],), ([-9, -4, -6, -4],)),
    ),
    Case(
        "roman", 1, "wrong comparison",
        '''
        def roman(n):
            """Return n (1 to 3999) as a Roman numeral, as in 4 -> "IV"."""
            signs = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
                     (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
            text = ""
            for value, sign in signs:
                while n >= value:
                    text += sign
                    n -= value
            return text
        ''',
        "n >= value", "n > value",
        ((3,), (4,), (1994,), (50,)),
        ((1,), (9,), (40,), (444,), (2024,), (3999,), (1000,), (68,)),
    ),
    Case(
        "from_roman", 1, "wrong comparison",
        '''
        def from_roman(text):
            """Return the value of a Roman numeral, as in "IV" -> 4."""
            values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
            total = 0
            for i, sign in enumerate(text):
                if i + 1 < len(text) and values[sign] < values[text[i + 1]]:
                    total -= values[sign]
                else:
                    total += values[sign]
            return total
        ''',
        "values[sign] < values[text[i + 1]]", "values[sign] <= values[text[i + 1]]",
        (("III",), ("IV",), ("MCMXCIV",), ("XX",)),
        (("I",), ("IX",), ("XL",), ("CCC",), ("MMXXIV",), ("DCXXI",), ("MMMCMXCIX",)),
    ),
    Case(
        "balanced", 1, "missing case",
        '''
        def balanced(text):
            """Return True if the brackets ()[]{} in text are closed in the right order, else False."""
            pairs = {")": "(", "]": "[", "}": "{"}
            stack = []
            for char in text:
                if char in "([{":
                    stack.append(char)
                elif char in pairs:
                    if not stack or stack.pop() != pairs[char]:
                        return False
            return not stack
        ''',
        "return not stack", "return True",
        (("(a[b]{c})",), ("(]",), ("((",), ("",)),
        (("[",), ("{()}[",), ("([)]",), (")",), ("f(x[1])",), ("{{}}}",), ("no brackets",)),
    ),
    Case(
        "merge_sorted", 1, "missing case",
        '''
        def merge_sorted(a, b):
            """Return one sorted list with all elements of the sorted lists a and b."""
            result, i, j = [], 0, 0
            while i < len(a) and j < len(b):
                if a[i] <= b[j]:
                    result.append(a[i])
                    i += 1
                else:
                    result.append(b[j])
                    j += 1
            return result + a[i:] + b[j:]
        ''',
        "result + a[i:] + b[j:]", "result + a[i:]",
        (([1, 4], [2, 3]), ([1], [2, 3]), ([], []), ([5], [])),
        (([], [1]), ([1, 2, 3], [4]), ([7, 8], [1, 2]), ([1, 1], [1, 1]), ([2], [1, 3, 9]), ([-5, 0, 5], [-1, 6])),
    ),
    Case(
        "drop_negative", 1, "change while iterating",
        '''
        def drop_negative(values):
            """Remove all negative numbers from the list values in place and return it."""
            for value in list(values):
                if value < 0:
                    values.remove(value)
            return values
        ''',
        "in list(values)", "in values",
        (([1, -2, 3],), ([-1, -2, 3],), ([],)),
        (([-1, -1, -1],), ([5, -3, -4, -5, 6],), ([0, 1],), ([-7],), ([-2, -3],), ([1, -1, -2, 2, -3],)),
    ),
    Case(
        "unique", 1, "shared default",
        '''
        def unique(values, seen=set()):
            """Return the values that are not in seen, each once, in order of first appearance."""
            seen = set(seen)
            result = []
            for value in values:
                if value not in seen:
                    seen.add(value)
                    result.append(value)
            return result
        ''',
        "    seen = set(seen)\n    result", "    result",
        (([1, 2, 1],), ([2, 1, 3],), (["a", "b", "a"], {"b"}), ([],)),
        (([1, 1],), ([1, 1],), ([3, 2, 3],), (["x", "y"], {"y"}), (["x", "z"],), ([0, None, 0],)),
    ),
    Case(
        "run_lengths", 2, "wrong start value",
        '''
        def run_lengths(text):
            """Encode runs of equal letters as letter and length, as in "aaab" -> "a3b1"."""
            result, count = "", 0
            for i, char in enumerate(text):
                count += 1
                if i + 1 == len(text) or text[i + 1] != char:
                    result += char + str(count)
                    count = 0
            return result
        ''',
        "            count = 0\n    return", "            count = 1\n    return",
        (("aaa",), ("aaab",), ("",)),
        (("abc",), ("z",), ("aabbaa",), ("xxxxxxxxxxxxy",), ("abba",), ("ccccc",)),
    ),
    Case(
        "expand_runs", 2, "missing case",
        '''
        def expand_runs(text):
            """Undo run-length encoding, as in "a3b12" -> "aaabbbbbbbbbbbb"."""
            result, char, count = "", "", 0
            for c in text + "!":
                if c.isdigit():
                    count = count * 10 + int(c)
                else:
                    result += char * count
                    char, count = c, 0
            return result
        ''',
        "count = count * 10 + int(c)", "count = int(c)",
        (("a3b1",), ("x12",), ("",)),
        (("z1",), ("a10b2",), ("q25",), ("a2b2c2",), ("k100",), ("a1b11c3",)),
    ),
    Case(
        "merge_intervals", 2, "missing case",
        '''
        def merge_intervals(intervals):
            """Merge overlapping or touching [start, end] pairs; return them sorted."""
            merged = []
            for start, end in sorted(intervals):
                if merged and start <= merged[-1][1]:
                    merged[-1][1] = max(merged[-1][1], end)
                else:
                    merged.append([start, end])
            return merged
        ''',
        "max(merged[-1][1], end)", "end",
        (([[1, 3], [2, 6], [8, 9]],), ([[1, 9], [2, 3]],), ([],)),
        (([[1, 2], [2, 3]],), ([[5, 6], [1, 10], [2, 4]],), ([[1, 4], [1, 2]],), ([[0, 8], [1, 2], [3, 4], [9, 9]],),
         ([[4, 5]],), ([[3, 4], [1, 2]],)),
    ),
    Case(
        "free_slots", 2, "missing case",
        '''
        def free_slots(busy, start, end):
            """Return the [from, to] gaps between start and end that no [from, to] pair of busy covers."""
            slots, cursor = [], start
            for a, b in sorted(busy):
                if a > cursor:
                    slots.append([cursor, a])
                cursor = max(cursor, b)
            if cursor < end:
                slots.append([cursor, end])
            return slots
        ''',
        "cursor = max(cursor, b)", "cursor = b",
        (([[2, 4], [6, 8]], 0, 10), ([[1, 8], [2, 3]], 0, 9), ([], 1, 2)),
        (([[0, 5]], 0, 5), ([[0, 9], [1, 2], [3, 4]], 0, 12), ([[3, 4], [1, 2]], 0, 5), ([[1, 6], [1, 3]], 0, 7),
         ([[2, 3], [2, 5], [4, 4]], 1, 6), ([[5, 5]], 5, 6)),
    ),
    Case(
        "day_of_year", 2, "missing case",
        '''
        def day_of_year(year, month, day):
            """Return the number of the day in the year, 1 for 1 January (Gregorian calendar)."""
            lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
            if leap and month > 2:
                day += 1
            return sum(lengths[:month - 1]) + day
        ''',
        "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)", "year % 4 == 0 and year % 100 != 0",
        ((2023, 1, 31), (2024, 3, 1), (2000, 12, 31), (1900, 3, 1)),
        ((2000, 3, 1), (2000, 2, 29), (2100, 12, 31), (2400, 7, 4), (2023, 12, 31), (2024, 12, 31), (1600, 10, 10)),
    ),
    Case(
        "weekday", 2, "wrong comparison",
        '''
        def weekday(year, month, day):
            """Return the day of the week, 0 for Sunday to 6 for Saturday (Gregorian calendar)."""
            shifts = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4]
            if month < 3:
                year -= 1
            return (year + year // 4 - year // 100 + year // 400 + shifts[month - 1] + day) % 7
        ''',
        "month < 3", "month < 2",
        ((2024, 1, 1), (2024, 7, 4), (2023, 2, 14)),
        ((2000, 2, 29), (1999, 12, 31), (2021, 2, 1), (2024, 3, 1), (1900, 1, 1), (2016, 2, 28), (2030, 11, 5)),
    ),
    Case(
        "anagram_groups", 2, "wrong key",
        '''
        def anagram_groups(words):
            """Group words that are anagrams, each group sorted, groups in order of first appearance."""
            groups = {}
            for word in words:
                key = "".join(sorted(word))
                groups.setdefault(key, []).append(word)
            return [sorted(group) for group in groups.values()]
        ''',
        'key = "".join(sorted(word))', 'key = "".join(sorted(set(word)))',
        ((["tea", "ate", "tan"],), (["oto", "too", "to"],), ([],)),
        ((["aab", "ab"],), (["sees", "eses", "es"],), (["abc", "cba", "bca"],), (["a", "aa", "aaa"],), (["x"],),
         (["noon", "no", "on"],)),
    ),
    Case(
        "top_words", 2, "wrong order",
        '''
        def top_words(text, n):
            """Return the n most frequent words of text, ties in alphabetical order."""
            counts = {}
            for word in text.split():
                counts[word] = counts.get(word, 0) + 1
            ranked = sorted(counts, key=lambda word: (-counts[word], word))
            return ranked[:n]
        ''',
        "key=lambda word: (-counts[word], word))", "key=lambda word: (counts[word], word), reverse=True)",
        (("b a b", 1), ("b a c b a", 3), ("", 2)),
        (("d c b a", 2), ("x x y y z", 3), ("one two two", 2), ("m n n m", 1), ("k", 5), ("q p q p r r", 2)),
    ),
    Case(
        "evaluate_rpn", 2, "wrong order",
        '''
        def evaluate_rpn(tokens):
            """Evaluate reverse Polish notation with + - * and whole-number /, as in ["7", "2", "-"] -> 5."""
            stack = []
            for token in tokens:
                if token in ("+", "-", "*", "/"):
                    b, a = stack.pop(), stack.pop()
                    results = {"+": a + b, "-": a - b, "*": a * b, "/": a // b if b else None}
                    stack.append(results[token])
                else:
                    stack.append(int(token))
            return stack[0]
        ''',
        "b, a = stack.pop(), stack.pop()", "a, b = stack.pop(), stack.pop()",
        ((["2", "3", "+"],), (["7", "2", "-"],), (["8", "2", "/"],)),
        ((["4"],), (["2", "3", "4", "*", "-"],), (["9", "3", "/", "2", "*"],), (["1", "2", "-", "3", "-"],),
        (["5", "5", "*"],),
         (["10", "4", "/"],)),
    ),
    Case(
        "lcm_all", 2, "wrong variable",
        '''
        def lcm_all(numbers):
            """Return the least common multiple of all positive numbers in the list."""
            result = 1
            for n in numbers:
                a, b = result, n
                while b:
                    a, b = b, a % b
                result = result * n // a
            return result
        ''',
        "a, b = result, n", "a, b = numbers[0], n",
        (([4, 6],), ([2, 3, 4],), ([5],), ([3, 7],)),
        (([2, 4, 8],), ([6, 10, 15],), ([1, 1],), ([9, 6, 4],), ([12, 18],), ([7, 14, 21, 28],)),
    ),
    Case(
        "flood_fill", 2, "wrong comparison",
        '''
        def flood_fill(grid, row, col, color):
            """Recolour the area of equal cells around (row, col), joined by edges; return the grid."""
            old = grid[row][col]
            todo = [(row, col)] if old != color else []
            while todo:
                r, c = todo.pop()
                if 0 <= r < len(grid) and 0 <= c < len(grid[0]) and grid[r][c] == old:
                    grid[r][c] = color
                    todo += [(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)]
            return grid
        ''',
        "0 <= c < len(grid[0])", "0 < c < len(grid[0])",
        (([[1, 1], [0, 1]], 0, 1, 5), ([[2]], 0, 0, 2), ([[0, 0, 3]], 0, 2, 7)),
        (([[1]], 0, 0, 9), ([[1, 0, 1], [1, 1, 1]], 1, 1, 4), ([[3, 3], [3, 3]], 1, 1, 0), ([[0, 1], [1, 0]], 0, 1, 2),
         ([[5, 5, 5]], 0, 2, 6), ([[1, 2], [1, 2]], 1, 0, 3)),
    ),
    Case(
        "life_step", 2, "wrong comparison",
        '''
        def life_step(grid):
            """Return the next generation of Conway's Game of Life; cells outside of the grid are dead."""
            def neighbours(row, col):
                return sum(grid[r][c] for r in range(max(row - 1, 0), min(row + 2, len(grid)))
                           for c in range(max(col - 1, 0), min(col + 2, len(grid[0])))
                           if (r, c) != (row, col))
            return [[1 if neighbours(r, c) == 3 or (grid[r][c] and neighbours(r, c) == 2) else 0
                     for c in range(len(grid[0]))] for r in range(len(grid))]
        ''',
        "if (r, c) != (row, col)", "if r != row and c != col",
        (([[0, 1, 0], [0, 1, 0], [0, 1, 0]],), ([[1, 1], [1, 1]],), ([[0]],)),
        (([[1]],), ([[1, 1], [1, 0]],), ([[0, 0, 0], [1, 1, 1], [0, 0, 0]],), ([[1, 0, 1], [0, 1, 0], [1, 0, 1]],),
         ([[1, 1, 1, 1]],), ([[0, 1, 0], [0, 0, 1], [1, 1, 1]],)),
    ),
    Case(
        "rotate", 2, "wrong index",
        '''
        def rotate(matrix):
            """Return the matrix turned by 90 degrees clockwise."""
            rows, cols = len(matrix), len(matrix[0])
            result = [[None] * rows for _ in range(cols)]
            for r in range(rows):
                for c in range(cols):
                    result[c][rows - 1 - r] = matrix[r][c]
            return result
        ''',
        "result[c][rows - 1 - r]", "result[cols - 1 - c][r]",
        (([[1, 2], [3, 4]],), ([[1, 2, 3]],), ([[7]],)),
        (([[1], [2], [3]],), ([[1, 2, 3], [4, 5, 6]],), ([["a", "b"], ["c", "d"]],), ([[0, 1], [1, 0], [0, 0]],),
         ([[1, 2, 3], [4, 5, 6], [7, 8, 9]],), ([[5, 5]],)),
    ),
    Case(
        "window_maxima", 2, "off by one",
        '''
        def window_maxima(values, size):
            """Return the maximum of every window of size neighbours, from left to right."""
            queue, result = [], []
            for i, value in enumerate(values):
                while queue and values[queue[-1]] <= value:
                    queue.pop()
                queue.append(i)
                if queue[0] <= i - size:
                    queue.pop(0)
                if i >= size - 1:
                    result.append(values[queue[0]])
            return result
        ''',
        "queue[0] <= i - size", "queue[0] < i - size",
        (([1, 3, 2, 5], 2), ([9, 1, 2, 3], 2), ([4, 2], 1)),
        (([5, 4, 3, 2, 1], 3), ([1, 2, 3], 3), ([7, 7, 7], 2), ([8, 1, 1, 1, 9], 3), ([3, 2, 1], 1),
        ([6, 1, 5, 2, 4], 2)),
    ),
    Case(
        "topological_order", 3, "wrong order",
        '''
        def topological_order(needs):
            """needs maps each task to the tasks that come before it. Return an order, always taking
            the alphabetically first task that is ready; return [] if there is a cycle."""
            missing = {task: len(needs[task]) for task in needs}
            ready = sorted(task for task in needs if not needs[task])
            order = []
            while ready:
                order.append(ready.pop(0))
                for task in needs:
                    if order[-1] in needs[task]:
                        missing[task] -= 1
                        if missing[task] == 0:
                            ready = sorted([*ready, task])
            return order if len(order) == len(needs) else []
        ''',
        "ready = sorted([*ready, task])", "ready.append(task)",
        (({"a": ["b"], "b": []},), ({"x": ["y"], "y": ["x"]},), ({"a": ["b"], "b": [], "c": []},),
         ({"p": ["z"], "q": [], "z": []},)),
        (({},), ({"a": ["f"], "b": ["e"], "e": [], "f": [], "g": []},),
        ({"a": ["d", "c"], "b": ["a"], "c": [], "d": ["c"]},), ({"p": ["p"]},),
         ({"m": ["n", "o"], "n": [], "o": ["n", "q"], "q": []},), ({"a": ["c", "b"], "b": ["c", "a"], "c": []},)),
    ),
    Case(
        "shortest_path", 3, "wrong order",
        '''
        def shortest_path(links, start, goal):
            """Return the smallest number of links from start to goal, or -1; links maps node -> list of nodes."""
            distance = {start: 0}
            queue = [start]
            while queue:
                node = queue.pop(0)
                for other in links.get(node, []):
                    if other not in distance:
                        distance[other] = distance[node] + 1
                        queue.append(other)
            return distance.get(goal, -1)
        ''',
        "queue.pop(0)", "queue.pop()",
        (({"a": ["b"], "b": ["c"]}, "a", "c"),
        ({"a": ["b", "c"], "c": ["d"], "d": ["e"], "b": ["e"], "e": ["f"]}, "a", "f"),
         ({"a": []}, "a", "z")),
        (({"s": ["x", "y"], "x": ["t"], "y": ["z"], "z": ["t"], "t": ["g"]}, "s", "g"), ({}, "a", "a"),
        ({"a": ["b"]}, "b", "a"),
         ({1: [2, 3], 2: [5], 3: [4], 4: [5], 5: [6]}, 1, 6), ({1: [2], 2: [1]}, 1, 2),
         ({"a": ["b", "c"], "c": ["d"], "d": ["e"], "b": ["e"]}, "a", "e")),
    ),
    Case(
        "edit_distance", 3, "wrong start value",
        '''
        def edit_distance(a, b):
            """Return the least number of insertions, deletions and substitutions that turn a into b."""
            above = list(range(len(b) + 1))
            for i, x in enumerate(a):
                row = [i + 1]
                for j, y in enumerate(b):
                    row.append(min(above[j] + (x != y), above[j + 1] + 1, row[j] + 1))
                above = row
            return above[-1]
        ''',
        "row = [i + 1]", "row = [i]",
        (("cat", "cut"), ("cat", "at"), ("", "abc"), ("ab", "b")),
        (("kitten", "sitting"), ("abc", ""), ("flaw", "lawn"), ("a", "a"), ("intention", "execution"),
        ("xabc", "abc"), ("ba", "ab")),
    ),
    Case(
        "knapsack", 3, "wrong order",
        '''
        def knapsack(items, capacity):
            """items are (weight, value) pairs, each usable once; return the best value within capacity."""
            best = [0] * (capacity + 1)
            for weight, value in items:
                for room in range(capacity, weight - 1, -1):
                    best[room] = max(best[room], best[room - weight] + value)
            return best[capacity]
        ''',
        "range(capacity, weight - 1, -1)", "range(weight, capacity + 1)",
        (([(2, 3), (3, 4)], 5), ([(1, 5)], 3), ([], 4)),
        (([(2, 10)], 5), ([(1, 1), (3, 4), (4, 5), (5, 7)], 7), ([(5, 9)], 4), ([(2, 4), (2, 3), (3, 5)], 4),
        ([(3, 8), (4, 9)], 6),
         ([(1, 2), (1, 3)], 10)),
    ),
    Case(
        "wrap", 3, "off by one",
        '''
        def wrap(text, width):
            """Break text into lines of at most width characters at spaces; a longer word has its own line."""
            lines, line = [], ""
            for word in text.split():
                if line and len(line) + 1 + len(word) > width:
                    lines.append(line)
                    line = word
                else:
                    line = line + " " + word if line else word
            return lines + [line] if line else lines
        ''',
        "len(line) + 1 + len(word) > width", "len(line) + len(word) > width",
        (("aa bb cc", 5), ("aa bb cc", 4), ("", 3), ("word", 2)),
        (("a b c d", 2), ("to be or not", 6), ("abc de f", 6), ("one two three four", 7), ("abcdef gh", 3), ("x y", 3)),
    ),
    Case(
        "encode64", 3, "wrong sign",
        '''
        def encode64(data):
            """Return the Base64 text of data, a list of bytes (0 to 255), padded with "="."""
            alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
            bits = "".join(format(byte, "08b") for byte in data)
            bits += "0" * (-len(bits) % 6)
            text = "".join(alphabet[int(bits[i:i + 6], 2)] for i in range(0, len(bits), 6))
            return text + "=" * (-len(text) % 4)
        ''',
        '"=" * (-len(text) % 4)', '"=" * (len(text) % 4)',
        (([77, 97, 110],), ([77, 97],), ([77],), ([],)),
        (([0],), ([255, 255],), ([1, 2, 3, 4],), ([104, 105],), ([250, 251, 252, 253, 254],),
        ([65, 66, 67, 68, 69, 70],), ([9, 8, 7, 6],)),
    ),
    Case(
        "lru_gets", 3, "missing case",
        '''
        def lru_gets(capacity, operations):
            """Run ("put", key, value) and ("get", key) on a cache that drops the least recently used key
            when full (get and put both use a key). Return the results of the gets, None if missing."""
            cache, results = {}, []
            for name, key, *value in operations:
                if name == "get":
                    results.append(cache.get(key))
                    if key in cache:
                        cache[key] = cache.pop(key)
                else:
                    cache.pop(key, None)
                    if len(cache) == capacity:
                        del cache[next(iter(cache))]
                    cache[key] = value[0]
            return results
        ''',
        "            cache.pop(key, None)\n            if len(cache) == capacity:",
        "            if len(cache) == capacity and key not in cache:",
        ((1, [("put", "a", 1), ("get", "a"), ("put", "b", 2), ("get", "a")]),
         (2, [("put", "a", 1), ("put", "b", 2), ("put", "a", 3), ("put", "c", 4), ("get", "a"), ("get", "b")]),
         (2, [("get", "x")])),
        ((2, [("put", 1, 1), ("put", 2, 2), ("get", 1), ("put", 3, 3), ("get", 2), ("get", 1)]),
         (2, [("put", 1, 1), ("put", 2, 2), ("put", 1, 5), ("put", 3, 3), ("get", 1), ("get", 2), ("get", 3)]),
         (1, [("put", 1, 1), ("put", 1, 2), ("get", 1)]),
         (3, [("put", 1, 1), ("put", 2, 2), ("put", 3, 3), ("put", 2, 7), ("put", 1, 9), ("put", 4, 4), ("get", 3),
         ("get", 1)]),
         (3, [("put", 1, 1), ("get", 1), ("get", 2)]),
         (2, [("put", 1, 0), ("put", 2, 0), ("put", 1, 0), ("get", 2), ("put", 3, 0), ("get", 1)])),
    ),
    Case(
        "next_permutation", 3, "wrong comparison",
        '''
        def next_permutation(values):
            """Return the next larger arrangement of values in lexicographic order, or None if there is none."""
            values = list(values)
            i = len(values) - 2
            while i >= 0 and values[i] >= values[i + 1]:
                i -= 1
            if i < 0:
                return None
            j = len(values) - 1
            while values[j] <= values[i]:
                j -= 1
            values[i], values[j] = values[j], values[i]
            return values[:i + 1] + values[:i:-1]
        ''',
        "values[j] <= values[i]", "values[j] < values[i]",
        (([1, 2, 3],), ([1, 3, 1],), ([3, 2, 1],)),
        (([1, 1, 2],), ([2, 3, 2],), ([1, 4, 3, 1],), ([5],), ([2, 2],), ([0, 1, 2, 5, 3, 3, 0],), ([1, 5, 1, 1],)),
    ),
)  # fmt: skip
