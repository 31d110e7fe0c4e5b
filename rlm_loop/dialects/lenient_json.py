"""Read a JSON object as models write it: with real line breaks, trailing commas, doubled braces, Python's quotes.

Only repairs with one possible meaning are made, and each is noted.  Nothing is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rlm_loop.dialects.python_source import read_literal

_STRICT = json.JSONDecoder()
_LOOSE = json.JSONDecoder(strict=False)
_STRING = r'"""(?:\\.|(?!""").)*+"""|"(?:\\.|[^"\\])*+"' + r"|'''(?:\\.|(?!''').)*+'''|'(?:\\.|[^'\\])*+'"
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\]]|^[ \t]*```|</|<\|", re.DOTALL | re.MULTILINE)
_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_DOUBLED = re.compile(rf"({_STRING})|([{{}}])\2", re.DOTALL)


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


def decode_strict(text: str, start: int) -> Decoded:
    """Decode the JSON value at `start` by the letter."""
    try:
        value, end = _STRICT.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return Decoded(None, start + 1, error.pos - start + 50, problem="unreadable")
    except (ValueError, RecursionError):  # a number beyond Python's limit, or nesting beyond it
        return Decoded(None, start + 1, 100_000, problem="unreadable")
    return Decoded(value, end, 0)


def decode_repaired(text: str, start: int) -> Decoded:
    """Decode the object or list at `start` with the repairs that have one possible meaning."""
    end, depth = _balanced(text, start)
    piece = text[start:end]
    notes: tuple[str, ...] = ()
    if depth:
        # One closing brace short, and complete up to there: there is one place where it can stand.
        piece = piece.rstrip()
        if depth > 1 or not piece.endswith("}"):
            problem = "unfinished" if not text[end:].strip(" \t\r\n`") else "unreadable"
            return Decoded(None, end, 2 * (end - start), problem=problem)
        end, piece, notes = start + len(piece), piece + "}", ("missing closing brace",)
    for variant, why in _variants(piece):
        try:
            return Decoded(_LOOSE.decode(variant), end, 8 * len(piece), (*notes, why or "line breaks inside a string"))
        except (ValueError, RecursionError):
            pass
        without = _COMMA.sub(lambda m: m[1] or "", variant)
        try:
            found = tuple(n for n in (why, "trailing comma" if without != variant else "") if n)
            return Decoded(_LOOSE.decode(without), end, 8 * len(piece), (*notes, *found))
        except (ValueError, RecursionError):
            pass
        try:
            return Decoded(read_literal(variant), end, 8 * len(piece), (*notes, *filter(None, [why]), "Python literal"))
        except ValueError:
            pass
    return Decoded(None, end, 16 * len(piece), problem="unreadable")


def _variants(piece: str) -> Iterator[tuple[str, str]]:
    yield piece, ""
    if piece.startswith("{{") and piece.endswith("}}"):
        yield piece[1:-1], "doubled braces"
        yield _DOUBLED.sub(lambda m: m[1] or m[2], piece), "doubled braces"


def _balanced(text: str, start: int) -> tuple[int, int]:
    """Where the bracket at `start` is closed, and 0; or where that stops being possible, and how many are open."""
    depth = 0
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
            if depth == 0:
                return match.end(), 0
        elif token[0] not in "\"'":
            return match.start(), depth
    return len(text), depth
