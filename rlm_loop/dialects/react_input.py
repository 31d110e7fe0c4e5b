"""Read the input of a ReAct action: JSON, fenced code, plain text, or what stands in brackets after a tool's name."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass
from typing import Any

from rlm_loop.actions import Note
from rlm_loop.dialects.fences import read_fences
from rlm_loop.dialects.lenient_json import decode_repaired, decode_strict, written
from rlm_loop.dialects.python_source import read_call, read_literal

_SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class Value:
    """The text of an input, and where it ends in the text it was read from."""

    text: str
    end: int
    notes: tuple[str, ...] = ()


def read_value(text: str, start: int, stop: int) -> Value:
    """Read the input that begins at `start`; an object or a fenced block may reach past `stop`, plain text may not.

    A fence around it is removed, broken JSON repaired where that has one meaning, code on lines of its own dedented,
    and the quotes around a single line removed; each is noted.
    """
    at = skip_space(text, start)
    if at >= stop:
        return Value("", stop)
    if text.startswith(("```", "~~~"), at) and (fenced := _fenced(text, at)) is not None:
        return fenced
    notes: tuple[str, ...] = ()
    if text[at] == "{":
        value, end, notes = read_object(text, at)
        if value is not None:
            return Value(as_json(value) if notes else text[at:end], end, notes)
    raw = text[start:stop]
    line, _, rest = raw.partition("\n")
    if not line.strip():
        return Value(textwrap.dedent(rest).rstrip(), stop, notes)
    inner, why = unquoted(raw.strip())
    return Value(inner, stop, (*notes, *why))


def read_object(text: str, at: int) -> tuple[dict[Any, Any] | None, int, tuple[str, ...]]:
    """The object at `at`, where it ends, and the repairs; or None and the problem."""
    found = decode_strict(text, at)
    if found.problem:
        found = decode_repaired(text, at)
    if found.problem:
        return None, found.end, (f"{found.problem} JSON",)
    return (found.value if isinstance(found.value, dict) else None), found.end, found.notes


def read_bracketed(text: str, start: int, stop: int) -> Value:
    """Read what stands in the bracket at `start`, up to the one that closes it; `text[:start]` ends in the name."""
    opened, closing = text[start], "]" if text[start] == "[" else ")"
    at = skip_space(text, start + 1)
    if text.startswith("{", at):
        value, end, notes = read_object(text, at)
        after = skip_space(text, end)
        if value is not None and text.startswith(closing, after):
            return Value(as_json(value) if notes else text[at:end], after + 1, notes)
    section = text[start:stop].rstrip()
    line = section.partition("\n")[0]
    whole = (
        section
        if section.endswith(closing)
        else line[: line.rfind(closing) + 1] or section[: section.rfind(closing) + 1]
    )
    if not whole:
        return Value(section[1:].strip(), stop, ("unclosed bracket",))
    end = start + len(whole)
    inner = whole[1:-1].strip()
    if opened == "(" and inner:
        call = read_call(f"f{whole}")
        if call is not None and call[1] and not call[2] and (arguments := written(call[1])) is not None:
            return Value(arguments, end, ("python call",))
        try:
            literal = read_literal(inner)
        except ValueError:
            return Value(inner, end)
        if isinstance(literal, dict) and (arguments := written(literal)) is not None:
            return Value(arguments, end, ("Python literal",))
        return Value(literal if isinstance(literal, str) else inner, end)
    inner, notes = unquoted(inner)
    return Value(inner, end, notes)


def as_json(value: Any) -> str:
    """`value` as JSON text, or as its repr where JSON cannot say it."""
    text = written(value) if isinstance(value, dict) else None
    if text is not None:
        return text
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value) if isinstance(value, set | bytes) else "null"


def unquoted(text: str) -> tuple[str, tuple[str, ...]]:
    """A single quoted line without its quotes; a span of inline code without its backticks."""
    if len(text) < 2 or "\n" in text or text[0] != text[-1] or text[0] not in "\"'`":
        return text, ()
    if text[0] == "`":
        inner = text.strip("`")
        return (text, ()) if "`" in inner or not inner else (inner.strip(), ("backticks removed",))
    try:
        inner = read_literal(text)
    except ValueError:
        return text, ()
    return (inner, ("quotes removed",)) if isinstance(inner, str) else (text, ())


def skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _fenced(text: str, at: int) -> Value | None:
    reading = read_fences(text[at:])
    block = next((b for b in (*reading.blocks, *reading.skipped) if b.line == 1), None)
    if block is None:
        return None
    lines = text[at:].split("\n")
    end = at + len("\n".join(lines[: block.code.count("\n") + 3]))
    code, notes = block.code, ("code fence removed", *(note for note in block.notes if note != Note.PYTHON))
    if code.lstrip().startswith("{"):
        value, _, repairs = read_object(code, skip_space(code, 0))
        if value is not None and repairs:
            return Value(as_json(value), end, (*notes, *repairs))
    return Value(code, end, notes)
