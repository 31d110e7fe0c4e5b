"""Bytes as text and back, without loss; lines as a model sees them; and whether Python source compiles."""

from __future__ import annotations

import codecs
import io
import re
import threading
import tokenize
import warnings
from collections.abc import Sequence

MAX_LINE = 500
"""The most characters of one line that are shown; what is longer is no code to read."""

CODECS = re.compile(r"utf-8|ascii|iso8859-\d+|cp\d+|koi8-[rut]|mac-\w+|gbk|gb2312|gb18030|big5\w*|euc_\w+|shift_jis\w*")
"""Character sets that a coding line may name.  Others are no character sets: punycode takes time that grows with the
square of the file's size, and what a package of the user's registered runs its code."""


def character_set(source: bytes) -> str | None:
    """The encoding of Python source; `None` where its coding line names no character set.

    Raises `SyntaxError` for a coding line that Python does not take.
    """
    named = tokenize.detect_encoding(io.BytesIO(source).readline)[0]
    named = "utf-8" if named == "utf-8-sig" else named  # the mark stays in the text as a character
    return named if CODECS.fullmatch(codecs.lookup(named).name) else None


def decode(data: bytes, path: str) -> tuple[str, str]:
    """The text and an encoding that gives the same bytes back."""
    try:
        encoding = (character_set(data) if path.endswith(".py") else "utf-8") or "latin-1"
    except SyntaxError:
        encoding = "utf-8"
    try:
        text = data.decode(encoding)
        if text.encode(encoding) == data:
            return text, encoding
    except UnicodeError:
        pass
    return data.decode("latin-1"), "latin-1"


def lines_of(text: str) -> list[str]:
    """Lines with their endings; unlike `str.splitlines`, only `\\n` ends a line, as in git and Python."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def joined(head: Sequence[str], new: Sequence[str], tail: Sequence[str], text: str) -> str:
    """Lines put together again, with the endings that `text` has."""
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    lines = [
        *(line if line.endswith("\n") else line + newline for line in head),
        *(line.removesuffix("\n") + newline for line in new),
        *tail,
    ]
    whole = "".join(lines)
    if text and not text.endswith("\n"):
        whole = whole.removesuffix("\n").removesuffix("\r")
    return whole


def bare(line: str) -> str:
    """A line without its ending, as it is shown: one that is too long is cut, and says so."""
    line = line.rstrip("\r\n")
    if len(line) <= MAX_LINE:
        return line
    return f"{line[:MAX_LINE]}... [{len(line) - MAX_LINE} more characters]"


def numbered(lines: Sequence[str], first: int, last: int) -> str:
    """Lines `first` to `last`, counted from 1, each with its number."""
    return "\n".join(f"{n}: {bare(lines[n - 1])}" for n in range(first, last + 1))


def span(first: int, last: int) -> str:
    """`line 3`, or `lines 3 to 5`."""
    return f"line {first}" if first == last else f"lines {first} to {last}"


_SHOWN = 200
_one_at_a_time = threading.Lock()  # the list of warning filters belongs to the whole process


def syntax_error(source: bytes, path: str) -> str:
    """One line of what is wrong with Python source, or nothing."""
    try:
        if character_set(source) is None:
            return "the coding line names no character set"
        with _one_at_a_time, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape is no error
            compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f": {error.text.strip()[:_SHOWN]}" if error.text and error.text.strip() else ""
        return f"line {error.lineno}: {error.msg}{line}"
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
