"""Read a JSON object as models write it: with real line breaks, trailing commas, doubled braces, Python's quotes.

Only repairs with one possible meaning are made, and each is noted.  Nothing is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rlm_loop.dialects.python_source import read_literal
from rlm_loop.tools.function import Tool

_STRICT = json.JSONDecoder()
_LOOSE = json.JSONDecoder(strict=False)
_STRING = r'"""(?:\\.|(?!""").)*+"""|"(?:\\.|[^"\\])*+"' + r"|'''(?:\\.|(?!''').)*+'''|'(?:\\.|[^'\\])*+'"
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\]]|^[ \t]*```|</|<\|", re.DOTALL | re.MULTILINE)
_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_DOUBLED = re.compile(rf"({_STRING})|([{{}}])\2", re.DOTALL)

_OVER = re.compile(r"[\s`]*+\Z")


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
    for variant, why in _variants(piece):
        for reader, what in _READERS:
            try:
                value = reader(variant)
            except (ValueError, RecursionError):
                continue
            return Decoded(value, end, cost, tuple(note for note in (*notes, why, what) if note))
    return Decoded(None, end, 2 * cost, problem="unreadable")


def _without_commas(text: str) -> Any:
    return _LOOSE.decode(_COMMA.sub(lambda match: match[1] or "", text))


_READERS: tuple[tuple[Callable[[str], Any], str], ...] = (
    (_STRICT.decode, ""),
    (_LOOSE.decode, "line breaks inside a string"),
    (_without_commas, "trailing comma"),
    (read_literal, "Python literal"),
)


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


def written(arguments: dict[Any, Any]) -> str | None:
    """`arguments` as JSON text that can be encoded, or None where JSON has no words for them."""
    if not all(isinstance(key, str) for key in arguments):
        return None
    try:
        text = json.dumps(arguments, ensure_ascii=False)
        return text if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text) else json.dumps(arguments)
    except (TypeError, ValueError, RecursionError):  # a set, a number too long to write, too deep
        return None


def wrapped(tool: Tool | None, value: Any) -> str | None:
    """`{"code": value}` for a tool whose only parameter is `code`; `None` for any other tool, or if the value cannot be
    meant (no text for a text parameter)."""
    properties = {} if tool is None else tool.parameters.get("properties", {})
    if len(properties) != 1:
        return None
    ((name, kind),) = properties.items()
    if kind.get("type") == "string" and not isinstance(value, str):
        return None
    return json.dumps({name: value})
