"""Find the lines that a regular expression matches, for a query that no line holds as it stands.

A pattern of a model's can take for ever on one line, and nothing can stop it in this process: it runs in another one,
which is killed when the time is over; what it had found until then is kept.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.tools.code.paths import contents, files
from rlm_loop.tools.code.texts import decode
from rlm_loop.tools.processes import child_environment

_SIGNS = frozenset("\\^$|?*+[{")  # dots and parentheses alone are code as it is: `os.path`, `close()`
_MAX_PATTERN = 1000  # characters
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from rlm_loop.tools.code.pattern import child; child()"


@dataclass(frozen=True)
class Matches:
    """Where the pattern matched, at most `most` lines as (file, number, what matched), and in how many lines in all."""

    lines: tuple[tuple[str, int, str], ...]
    total: int
    complete: bool = True


def is_pattern(query: str) -> bool:
    """Whether it says more as a regular expression than as plain text."""
    if len(query) > _MAX_PATTERN or _SIGNS.isdisjoint(query):
        return False
    compiled = _compiled(query)
    return compiled is not None and compiled.search("") is None  # one that matches nothing matches every line


def _compiled(query: str, flags: int = 0) -> re.Pattern[str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of signs that will mean something else one day
            return re.compile(query, flags)
    except (re.error, RecursionError, OverflowError):
        return None


def matches(root: Path, query: str, *, most: int, seconds: float) -> Matches:
    """The lines below `root` that the pattern matches; where there are none, ignoring case."""
    package = str(Path(__file__).parents[3])
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _START, package],
            input=json.dumps([str(root), query, most]).encode(),
            env=child_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=max(0.1, seconds),
            check=False,
        )
        output: bytes = done.stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
    rows = [json.loads(line) for line in output.split(b"\n")[:-1]]
    found = {fold: [(name, number, text) for kind, name, number, text in rows if kind == fold] for fold in (0, 1)}
    totals = {kind - 2: number for kind, _, number, _ in rows if kind >= 2}
    fold = 0 if found[0] else 1
    return Matches(tuple(found[fold]), totals.get(fold, len(found[fold])), len(totals) == 2)


def child() -> None:
    """Reads what is asked from standard input; rows of (kind, file, line, match): kind 0 with case, 1 without; 2 and 3
    are how many there were of each."""
    root, query, most = json.load(sys.stdin)
    totals = [0, 0]
    patterns = [p for flags in (0, re.IGNORECASE) if (p := _compiled(query, flags)) is not None]
    where = Path(root)
    for name, data in contents(where, files(where)):
        if b"\0" in data:
            continue
        for number, line in enumerate(decode(data, name)[0].split("\n"), 1):
            for fold, pattern in enumerate(patterns):
                match = pattern.search(line.rstrip("\r"))
                if match is None:
                    continue
                totals[fold] += 1
                if totals[fold] <= most:
                    print(json.dumps([fold, name, number, match[0][:200]]), flush=True)
                break
    for fold, total in enumerate(totals):
        print(json.dumps([fold + 2, "", total, ""]), flush=True)
