"""Count with ripgrep the lines that hold a text, file by file, as our own search would count them.

Only counts: ripgrep finds them in all files at once and in any order, and there is one small row a file, however
many lines it has.  https://github.com/BurntSushi/ripgrep, version 13 or newer.
"""

from __future__ import annotations

import functools
import os
import re
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.tools.code.paths import MAX_BYTES, SKIPPED
from rlm_loop.tools.processes import child_environment

_MAX_OUTPUT = 16_000_000  # bytes of rows that are read
_MAX_QUERY = 10_000  # characters; a command line holds no more than some 100,000

_OPTIONS = (
    "--no-config",
    "--no-ignore",
    "--hidden",
    *(f"--glob=!{name}" for name in sorted(SKIPPED)),
    f"--max-filesize={MAX_BYTES}",
    "--no-mmap",  # else a NUL late in a file goes unseen, and the file counts as text
    "--encoding=none",  # bytes as they are: UTF-16 has NULs, and is not searched by us either
    "--no-unicode",  # ASCII letters alone have two cases; a query that is not ASCII is not searched with ripgrep
    "--no-messages",
    "--color=never",
    "--null",
    "--count",
    "--fixed-strings",
)


@dataclass(frozen=True)
class Counts:
    """Lines by file; not all of them where the time or the room ran out."""

    lines: dict[str, int]
    complete: bool = True


def installed() -> str | None:
    """Where ripgrep is, on the path that commands get (the interpreter's own folder first)."""
    path = child_environment()["PATH"].split(os.pathsep)
    found = shutil.which("rg", path=os.pathsep.join(folder for folder in path if os.path.isabs(folder)))
    return found if found is not None and _is_ripgrep(found) else None


@functools.cache
def _is_ripgrep(program: str) -> bool:
    """Whether it is what it is called (there are others of that name), and not too old."""
    try:
        done = subprocess.run(
            [program, "--no-config", "--version"], env=child_environment(), capture_output=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    version = re.match(rb"ripgrep ([0-9]+)\.", done.stdout)
    return version is not None and int(version[1]) >= 13


def command(program: str, query: str, *, fold: bool) -> list[str]:
    """The command that counts, in the folder it is run in."""
    case = "--ignore-case" if fold else "--case-sensitive"
    # The folder is named, since without one ripgrep may read its standard input instead.
    return [program, *_OPTIONS, case, f"--regexp={query}", "./"]


def count(program: str, root: Path, query: str, *, fold: bool, seconds: float) -> Counts | None:
    """How many lines of each file hold `query` (ASCII, one line); `None` where ripgrep could not do it."""
    if len(query) > _MAX_QUERY:
        return None
    try:
        process = subprocess.Popen(
            command(program, query, fold=fold),
            cwd=root,
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    with process:
        complete = False
        try:
            output, complete = _read(process, time.monotonic() + seconds)
        finally:
            if not complete:
                process.kill()
    lines = dict(_rows(output))
    # 0: found, 1: nothing found, 2: a file could not be read, or an option is not known
    if complete and process.returncode not in (0, 1) and not lines:
        return None
    return Counts(lines, complete)


def _read(process: subprocess.Popen[bytes], end: float) -> tuple[bytes, bool]:
    """What it prints until it closes its output, and whether that was all."""
    output = process.stdout
    assert output is not None
    parts: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as waiting:
        waiting.register(output, selectors.EVENT_READ)
        while size <= _MAX_OUTPUT and waiting.select(max(0.0, end - time.monotonic())):
            part = os.read(output.fileno(), 1 << 20)
            if not part:
                return b"".join(parts), True
            parts.append(part)
            size += len(part)
    return b"".join(parts), False


def _rows(output: bytes) -> Iterator[tuple[str, int]]:
    """Its rows: a name (which may hold line breaks), a NUL, a number.  The last may be torn."""
    text = os.fsdecode(output)
    start, nul = 0, text.find("\0")
    while nul >= 0:
        end = text.find("\n", nul)
        number = text[nul + 1 : end]
        if end < 0 or not number.isdigit():
            return
        yield text[start:nul].removeprefix("./"), int(number)
        start, nul = end + 1, text.find("\0", end)
