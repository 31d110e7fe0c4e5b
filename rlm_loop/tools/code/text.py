"""Bytes as text and back, without loss; lines as a model sees them; and errors of Python source."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Sequence

_MAX_LINE = 500  # characters of a line that are shown; what is longer is no code to read
_MAX_ERROR = 200
_one_at_a_time = threading.Lock()  # the list of warning filters belongs to the whole process


def decode(data: bytes) -> tuple[str, str]:
    """Return the text and an encoding that gives the same bytes back: UTF-8, else Latin-1."""
    try:
        return data.decode(), "utf-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


def lines_of(text: str) -> list[str]:
    """Return lines with their endings; unlike `str.splitlines`, only `\\n` ends a line, as in git and Python."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def joined(head: Sequence[str], new: Sequence[str], tail: Sequence[str], text: str) -> str:
    """Join lines again, with the endings that `text` has."""
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    ended = [line if line.endswith("\n") else line + newline for line in head]
    after = "".join([*ended, *(line.removesuffix("\n") + newline for line in new), *tail])
    if text and not text.endswith("\n"):
        after = after.removesuffix("\n").removesuffix("\r")
    return after


def bare(line: str) -> str:
    """Return a line without its ending, as it is shown: a long one is cut, and says so."""
    line = line.rstrip("\r\n")
    if len(line) <= _MAX_LINE:
        return line
    return f"{line[:_MAX_LINE]}... [{len(line) - _MAX_LINE} more characters]"


def numbered(lines: Sequence[str], first: int, last: int) -> str:
    """Return lines `first` to `last`, counted from 1, each with its number."""
    return "\n".join(f"{n}: {bare(lines[n - 1])}" for n in range(first, last + 1))


def syntax_error(source: str, path: str) -> str:
    """Return the error of Python source in one line, or nothing."""
    if not path.endswith((".py", ".pyi")):
        return ""
    try:
        with _one_at_a_time, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape is no error
            compile(source.removeprefix("\ufeff"), path, "exec", dont_inherit=True)  # of a text: coding lines are void
    except SyntaxError as error:
        line = f": {error.text.strip()[:_MAX_ERROR]}" if error.text and error.text.strip() else ""
        return f"line {error.lineno}: {error.msg}{line}"
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
