"""Cells that stay in C code, where many of them never look at a signal."""

from __future__ import annotations

from experiments.robustness.suite.case import STOPPED, CellCase, CellStep


def _blocking(
    name: str, does: str, code: str, needs: frozenset[str] = frozenset(), shows: tuple[str, ...] = ()
) -> CellCase:
    return CellCase(
        name=name,
        theme="C-level blocking",
        does=does,
        must="it is stopped within timeout + grace + 0.5 s; variables live on, or the model is told which are lost"
        + ("; what it printed before is shown" if shows else ""),
        steps=(CellStep("print('before')\n" + code, STOPPED, shows=shows),),
        keeps="told",
        needs=needs | {"stops"},
    )


_LINUX = frozenset(["process"])

CASES = (
    _blocking("sum-of-a-range", "prints, and sums 10 ** 14 numbers in C", "sum(range(10 ** 14))", shows=("before",)),
    _blocking(
        "deque-of-repeat",
        "drains an endless iterator in C",
        "import collections, itertools\ncollections.deque(itertools.repeat(1), maxlen=0)",
    ),
    _blocking("all-of-repeat", "`all` of an endless iterator", "import itertools\nall(itertools.repeat(True))"),
    _blocking("max-of-cycle", "`max` of an endless iterator", "import itertools\nmax(itertools.cycle([1, 2]))"),
    _blocking("membership", "`in` over a range of strangers", "'x' in range(10 ** 14)"),
    _blocking("regex-nested-star", "catastrophic regex: nested stars", "import re; re.match('(a*)*b', 'a' * 60)"),
    _blocking(
        "regex-alternation",
        "catastrophic regex: overlapping alternatives",
        "import re; re.match('(a|a|aa)*$', 'a' * 60 + '!')",
    ),
    _blocking(
        "regex-email",
        "catastrophic regex: a careless pattern for addresses",
        r"import re; re.match(r'^([a-zA-Z0-9_.-]+)+@', 'a' * 60)",
    ),
    _blocking("big-power", "a power with hundreds of millions of digits", "9 ** 9 ** 9"),
    _blocking("factorial", "the factorial of 10 ** 8", "import math; math.factorial(10 ** 8)"),
    _blocking(
        "key-derivation",
        "derives a key with 2 ** 31 - 1 rounds",
        "import hashlib; hashlib.pbkdf2_hmac('sha512', b'', b'', 2 ** 31 - 1)",
    ),
    _blocking(
        "sql-without-end",
        "a recursive SQL query without end",
        "import sqlite3\nsqlite3.connect(':memory:').execute('with recursive n(x) as (select 1 union all select x + 1 from n)"
        " select count(*) from n').fetchone()",
    ),
    _blocking("sleep-in-c", "sleeps in the C library", "import ctypes; ctypes.CDLL(None).sleep(60)", _LINUX),
    _blocking(
        "sleep-in-c-with-the-lock",
        "sleeps in the C library and keeps the interpreter's lock",
        "import ctypes; ctypes.PyDLL(None).sleep(60)",
        _LINUX,
    ),
    _blocking(
        "quadratic-text",
        "searches a text in quadratic time",
        "import difflib; difflib.SequenceMatcher(None, 'ab' * 20_000, 'ba' * 20_000, False).ratio()",
    ),
)
