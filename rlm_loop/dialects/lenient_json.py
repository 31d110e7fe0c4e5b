"""Read a JSON object as models write it: with real line breaks, Python's quotes, a brace too many or too few.

Only repairs with one possible meaning are made, and each is noted.  Nothing is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from rlm_loop.dialects.python_source import read_literal

_STRICT = json.JSONDecoder()
_LOOSE = json.JSONDecoder(strict=False)
_STRING = r'"""(?:\\.|(?!""").)*+"""|"(?:\\.|[^"\\])*+"' + r"|'''(?:\\.|(?!''').)*+'''|'(?:\\.|[^'\\])*+'"
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\]]|^[ \t]*```|</|<\|", re.DOTALL | re.MULTILINE)
_OVER = re.compile(r"[\s`]*+\Z")
_STRAY = re.compile(r"\s*+\}+")


@dataclass(frozen=True)
class Decoded:
    """A value and where it ends; or, with `problem` "unfinished" or "unreadable", where what was tried ends.

    `cost` is the number of characters looked at, for callers that bound their work.
    """

    value: Any
    end: int
    cost: int
    notes: tuple[str, ...] = ()
    problem: str = ""


def decode(text: str, start: int) -> Decoded:
    """Decode the value at `start` by the letter, else repaired; braces too many after it are part of it."""
    found = decode_strict(text, start)
    found = decode_repaired(text, start) if found.problem else found
    return found if found.problem else stray_braces(text, found)


def stray_braces(text: str, found: Decoded) -> Decoded:
    """Return the value with the closing braces that follow it and belong to nothing."""
    stray = _STRAY.match(text, found.end)
    return replace(found, end=stray.end(), notes=(*found.notes, "stray closing brace")) if stray else found


def decode_strict(text: str, start: int) -> Decoded:
    """Decode the JSON value at `start` by the letter."""
    size = 4_096  # a window that grows, since an error in a long text costs counting its lines
    cost = 50
    while True:
        window = text[start : start + size]
        cost += len(window) // 16
        try:
            value, end = _STRICT.raw_decode(window)
        except json.JSONDecodeError as error:
            cost += error.pos
            if len(window) < size or (error.pos < size - 64 and not error.msg.startswith("Unterminated")):
                return Decoded(None, start + 1, cost, problem="unreadable")
        except (ValueError, RecursionError):  # a number or a nesting beyond Python's limit
            return Decoded(None, start + 1, cost + 100_000, problem="unreadable")
        else:
            return Decoded(value, start + end, cost)
        size *= 16


def decode_repaired(text: str, start: int) -> Decoded:
    """Decode the object or list at `start` with the repairs that have one possible meaning."""
    end, depth = _balanced(text, start)
    cost = 8_000 + 8 * (end - start)
    piece = text[start:end]
    notes: tuple[str, ...] = ()
    if depth:
        # One closing brace short, and complete up to there: there is one place where it can stand.
        piece = piece.rstrip()
        if depth > 1 or not piece.endswith("}"):
            return Decoded(None, end, cost, problem="unfinished" if _OVER.match(text, end) else "unreadable")
        end, piece, notes = start + len(piece), piece + "}", ("missing closing brace",)
    for reader, note in _READERS:
        with suppress(ValueError, RecursionError):
            return Decoded(reader(piece), end, cost, (*notes, *([note] if note else [])))
    return Decoded(None, end, 2 * cost, problem="unreadable")


_READERS: tuple[tuple[Callable[[str], Any], str], ...] = (
    (_STRICT.decode, ""),
    (_LOOSE.decode, "line breaks inside a string"),
    (read_literal, "Python literal"),
)


def _balanced(text: str, start: int) -> tuple[int, int]:
    """Return the place behind the bracket's end, and 0; or where none is possible, and how many are open.

    Two strings in a row are one to Python, and to a model nearly always quotes that it did not escape.
    """
    depth, string_end = 0, start
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
            if depth == 0:
                return match.end(), 0
        elif token[0] not in "\"'" or string_end == match.start() != start:
            return match.start(), depth
        else:
            string_end = match.end()
    return len(text), depth


def loads(text: str) -> Any:
    """Return the value of a JSON text, whose strings may hold line breaks; None where it is none."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def written(value: Any) -> str | None:
    """Return a value as JSON text that can be encoded, or None where JSON has no words for it."""
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        return None
    try:
        text = json.dumps(value, ensure_ascii=False)
        return text if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text) else json.dumps(value)
    except (TypeError, ValueError, RecursionError):  # a set, a number too long to write, too deep
        return None
