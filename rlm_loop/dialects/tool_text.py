"""Read tool calls that a model wrote as text, as small models do, where there is only one way to read them.

Accepted: a JSON object with a tool's name and an arguments object, bare, fenced or in `<tool_call>` tags, alone, in
a list or in OpenAI's `{"function": ...}` shape; a Python block that is one call with literal keyword arguments; and
a whole reply that is one, or `final_answer: LITERAL`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rlm_loop.dialects.fences import Block, read_fences
from rlm_loop.dialects.lenient_json import Decoded, decode_repaired, decode_strict, loads, stray_braces, written
from rlm_loop.dialects.python_source import read_call
from rlm_loop.dialects.reader import CODE, CODE_TOOL, INVENTED, code_argument

NAME_KEYS = ("name", "tool", "tool_name", "toolName", "function", "function_name", "action")
ARGUMENT_KEYS = ("arguments", "args", "parameters", "input", "action_input", "tool_input", "toolInput", "params")
#: The note of a call with one value where an object should be; `arguments` is then the JSON text of that value.
BARE_VALUE = "arguments are a bare value"
_WRAPPER_KEYS = ("function", "function_call", "tool_call", "action")

_START = re.compile(r"""\[(?=\s*+\{)|\{(?=\s*+(?:\{\s*+)?["'])""")
_KEY = r"""["'](?:%s)["']\s*+:\s*+"""
_NAMED = re.compile(  # how a call begins, to tell a broken call from other broken JSON
    r"""[\[{\s]{1,40}+(?:["']type["']\s*+:\s*+["']function["']\s*+,\s*+)?"""
    + rf"(?:{_KEY % '|'.join(_WRAPPER_KEYS)}{{\s*+)?{_KEY % '|'.join(NAME_KEYS)}"
    + r"""["']([^"'\n]{1,200})["']"""
)
_BEFORE = re.compile(r"(?:^|\n)[ \t]*(?:`+\w*[ \t]*)?\Z|(?:<[|/]?\w+[|]?>|\[TOOL_CALLS\])[ \t]*\Z")
_AFTER = re.compile(r"[ \t]*(?:\r?\n|\Z|`|<)")
_CALL = re.compile(r"\w+\(.*\)", re.DOTALL)
_ANSWER = re.compile(r"final_answer[ \t]*[:=][ \t]*(\S.{0,9999})", re.DOTALL)


@dataclass(frozen=True)
class TextCall:
    """A call read out of text: `arguments` is the JSON text of an object.

    With the note `BARE_VALUE` it is that of one value: whether it can stand for an object depends on the tool.
    """

    name: str
    arguments: str
    notes: tuple[str, ...]


def read_calls(text: str, names: Collection[str]) -> tuple[list[TextCall], tuple[str, ...]]:
    """The calls of `text` in order, and what was noticed; a problem begins "unfinished", "unreadable" or "arguments".

    `names` are the known tools.  A call of another name is returned only where it has an arguments object and stands
    on lines of its own, so that the model can be told.  What is inside of another call's arguments is data, and so
    is a dict in Python code; what follows an invented result is not read.
    Total, and near linear in the text's length.
    """
    calls: list[TextCall] = []
    notes: list[str] = []
    blocks = read_fences(text).blocks
    code = _code_in(text, blocks)
    cut = len(text) + 1
    for begin, found in _objects(text, names, code, notes):
        if begin > cut:
            notes.append("text after an invented result is not read")
            break
        alone = bool(_BEFORE.search(text[max(0, begin - 60) : begin])) and bool(_AFTER.match(text, found.end))
        for value in _candidates(found.value):
            read = _read(value, names, alone)
            if isinstance(read, str):
                notes.append(read)
            elif read is not None:
                calls.append(TextCall(read[0], read[1], (*found.notes, *read[2])))
        if calls and cut > len(text):
            invented = INVENTED.search(text, found.end)
            cut = invented.start() if invented else len(text)
    if not calls and not notes:
        whole = None if blocks else _whole_call(text)
        for piece in [block.code for block in blocks] or ([] if whole is None else [whole]):
            _python_call(piece, names, calls, notes)
    return calls, tuple(dict.fromkeys((*notes, *(note for call in calls for note in call.notes))))


def _objects(
    text: str, names: Collection[str], code: Sequence[tuple[int, int]], notes: list[str]
) -> Iterator[tuple[int, Decoded]]:
    """The outermost objects and lists outside of code, with their places; known calls that cannot be read are noted."""
    budget, start = 400_000 + 16 * len(text), 0
    places = list(code)
    while match := _START.search(text, start):
        begin = match.start()
        while places and places[0][1] <= begin:
            places.pop(0)
        if places and places[0][0] <= begin:
            start = places[0][1]
            continue
        found = decode_strict(text, begin)
        budget -= found.cost
        if found.problem and (named := _NAMED.match(text, begin)):
            repaired = decode_repaired(text, begin)
            budget -= repaired.cost
            if not repaired.problem:
                found = repaired
            elif named[1] == CODE_TOOL in names and (read := code_argument(text, begin)) is not None:
                budget -= 8 * min(len(text) - begin, 100_000)
                found = Decoded({"name": CODE_TOOL, "arguments": {CODE: read[0]}}, read[1], 0, read[2])
            elif named[1] in names:
                notes.append(f"{repaired.problem} JSON call of {named[1]}")
                start = max(repaired.end, named.end())
                continue
        if not found.problem:
            found = stray_braces(text, found)
            yield begin, found
        start = found.end
        if budget < 0:
            notes.append("too many braces, the rest is not read")
            return


def _code_in(text: str, blocks: Sequence[Block]) -> list[tuple[int, int]]:
    """Return the places of labelled blocks of code, from the opening fence to the end of the code."""
    starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    last = len(starts) - 1
    code = [b for b in blocks if b.language and b.code.lstrip()[:1] not in ("{", "[", "<")]
    return [(starts[b.line - 1], starts[min(b.line + b.code.count("\n") + 1, last)]) for b in code]


def _candidates(value: Any) -> Sequence[Any]:
    """The objects that may be calls: the value itself, the items of a list, or OpenAI's `tool_calls`."""
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value).get("tool_calls")
        value = inner if isinstance(inner, list) else [value]
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _read(value: Any, names: Collection[str], alone: bool) -> tuple[str, str, tuple[str, ...]] | str | None:
    """A call as name, arguments and notes; the problem with it; or None where it is not meant as a call."""
    if not isinstance(value, dict):
        return None
    call = cast("dict[Any, Any]", value)
    for key in _WRAPPER_KEYS:
        if isinstance(call.get(key), dict) and called_name(call[key], names) is not None:
            call = call[key]
            break
    name = called_name(call, names)
    if name is None or (name not in names and not alone):
        return None
    given = [key for key in ARGUMENT_KEYS if key in call]
    if len(given) != 1:
        what = "given more than once" if given else "missing"
        return f"arguments of {name} are {what}" if name in names and alone else None
    arguments = call[given[0]]
    if (
        isinstance(arguments, dict)
        and arguments.get("type") == "object"
        and isinstance(arguments.get("properties"), dict)
    ):
        return f"the schema of {name} is not a call"
    notes: tuple[str, ...] = () if name in names else ("unknown tool",)
    if isinstance(arguments, str) and arguments.strip():
        parsed = loads(arguments)
        if not isinstance(parsed, dict) and name in names:
            return name, json.dumps(arguments), (*notes, BARE_VALUE)
        arguments = parsed
        notes = (*notes, "arguments in a string")
    elif arguments is None or isinstance(arguments, str):
        arguments = {}
        notes = (*notes, "empty arguments")
    if isinstance(arguments, (int, float)) and name in names:
        return name, json.dumps(arguments), (*notes, BARE_VALUE)
    if not isinstance(arguments, dict):
        return f"arguments of {name} must be a JSON object" if name in names else None
    text = written(cast("dict[Any, Any]", arguments))
    return f"arguments of {name} cannot be written as JSON" if text is None else (name, text, notes)


def called_name(call: dict[Any, Any], names: Collection[str]) -> str | None:
    """The tool that a call names; where several keys could be the name, a known tool wins."""
    said = [call[key] for key in NAME_KEYS if isinstance(call.get(key), str) and call[key]]
    return next((name for name in said if name in names), said[0] if said else None)


def _whole_call(text: str) -> str | None:
    """The Python call that a whole reply is, in backticks or not; `final_answer: 42` means `final_answer(42)`."""
    plain = text.strip()
    if plain[:1] == plain[-1:] == "`":
        plain = plain[1:-1]
    if _CALL.fullmatch(plain):
        return plain
    said = _ANSWER.fullmatch(plain)
    call = said and f"final_answer({said[1]})"
    match read_call(call) if call else None:
        case (_, {**named}, [_], False) if not named:
            return call
        case _:  # no literal, or several: `final_answer: 1,234` may be either
            return None


def _python_call(code: str, names: Collection[str], calls: list[TextCall], notes: list[str]) -> None:
    read = read_call(code) if len(code) < 100_000 else None
    if read is None or read[0] not in names:
        return
    name, arguments, positional, unpacked = read
    if len(positional) == 1 and not arguments and not unpacked and (bare := written({"": positional[0]})) is not None:
        calls.append(TextCall(name, json.dumps(json.loads(bare)[""]), ("python call", BARE_VALUE)))
        return
    text = None if positional or unpacked else written(arguments)
    if text is None:
        notes.append(f"arguments of {name} must be given by name, as JSON values")
    else:
        calls.append(TextCall(name, text, ("python call",)))
