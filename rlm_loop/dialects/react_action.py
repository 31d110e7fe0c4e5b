"""Read what a ReAct Action line names: a tool or the finish, by itself or with its input."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from rlm_loop.dialects.react_input import as_json, read_bracketed, read_object, read_value
from rlm_loop.dialects.tool_text import ARGUMENT_KEYS, called_name

FINISH = frozenset({"finish", "final_answer", "final answer", "finalanswer"})
NO_ACTION = frozenset({"none", "n/a", "null", "no action", "nothing", "-"})

_NAME = r"""[`"'*]{0,3}(?P<name>[^\W\d][\w.-]*)[`"'*]{0,3}"""
_BRACKET = re.compile(rf"{_NAME}(?=[\[(])")
_SAME_LINE = re.compile(
    rf"{_NAME}(?:[,;.]?[ \t]+(?:\*\*)?(?:action[ _])?input(?:\*\*)?:(?:\*\*)?|[,:]?[ \t]*(?=\{{))", re.IGNORECASE
)
_FINISH_COLON = re.compile(r"(?:finish|final[ _]?answer)[ \t]*:[ \t]*(?=\S)", re.IGNORECASE)
#: What a tool list shows behind a name; models copy it, and give the input on a line of its own.
_PARAMETER = r"\w+[ \t]*:[ \t]*(?:str|int|float|bool|list|dict|tuple|Any|None)\b[^,()\n]*"
_SIGNATURE = re.compile(rf"\({_PARAMETER}(?:,[ \t]*{_PARAMETER})*\)(?:[ \t]*->[^\n]*)?[ \t`\"'*.]*(?=\n|$)")
_ONE_NAME = re.compile(r"[^\W\d][\w.-]*|-")


@dataclass(frozen=True)
class Named:
    """What an Action label names, with the input where it is given at once."""

    name: str | None
    input: str | None
    end: int
    notes: tuple[str, ...] = ()


def read_action(own: str, at: int, stop: int, names: Collection[str]) -> Named:
    """Read the name at `at`, right after an Action label, and the input if it is written with it.

    The forms are an object, `tool[...]`, `tool(...)`, `finish: ...`, a name with JSON after it, and a name alone.
    """
    head = own[at:stop].rstrip()
    if head.startswith("{"):
        return _object(own, at, names)
    if match := _FINISH_COLON.match(head):
        return Named("finish", head[match.end() :], stop)
    if match := _BRACKET.match(head):
        if signature := _SIGNATURE.match(own, at + match.end(), stop):
            name, notes = _known(match["name"], names)
            return Named(name, None, signature.end(), (*notes, "signature copied"))
        value = read_bracketed(own, at + match.end(), stop)
        name, notes = _known(match["name"], names)
        return Named(name, value.text, value.end, (*notes, *value.notes))
    line, _, rest = head.partition("\n")
    word = line.strip(" \t\r`\"'*.,;")
    name, notes = _known(word, names)
    if name in names or name in FINISH or name in NO_ACTION or _ONE_NAME.fullmatch(name):
        follows = at + len(line)
        if rest.lstrip().startswith(("{", "```", "~~~")) or (name in FINISH and rest.strip()):
            value = read_value(own, follows, stop)
            return Named(name, value.text, value.end, (*notes, "input without a label", *value.notes))
        return Named(name, None, follows, (*notes, "text after the action ignored") if rest.strip() else notes)
    if match := _SAME_LINE.match(head):
        name, notes = _known(match["name"], names)
        if name in names or name in FINISH:
            value = read_value(own, at + match.end(), stop)
            return Named(name, value.text, value.end, (*notes, *value.notes))
    return Named(None, None, stop, (f"unreadable action: {word[:60]!r}" if word else "empty action",))


def _known(word: str, names: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """The tool that `word` means: letter case is forgiven where one known tool fits."""
    if word in names:
        return word, ()
    folded = word.casefold()
    if folded in FINISH or folded in NO_ACTION:
        return folded, ()
    fits = [name for name in names if name.casefold() == folded]
    return (fits[0], ("tool named in another letter case",)) if len(fits) == 1 else (word, ())


def _object(own: str, at: int, names: Collection[str]) -> Named:
    value, end, notes = read_object(own, at)
    if value is None:
        return Named(None, None, end, tuple(f"{note} action" for note in notes))
    said = called_name(value, names)
    given = [key for key in ARGUMENT_KEYS if key in value]
    if said is None or len(given) > 1:
        why = "names no tool" if said is None else "has two inputs"
        return Named(None, None, end, (*notes, f"the action object {why}"))
    name, more = _known(said, names)
    content = value[given[0]] if given else None
    text = content if isinstance(content, str) else None if content is None else as_json(content)
    return Named(name, text, end, (*notes, *more))
