"""Read one step of ReAct's text form: Thought, Action and Action Input lines, or a Final Answer.

Labels are read in any letter case, numbered, bold or as headings.  Only the first action counts, and nothing that a
model wrote after an Observation of its own making does.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from rlm_loop.actions import Note
from rlm_loop.dialects.react_action import FINISH, NO_ACTION, read_action
from rlm_loop.dialects.react_input import read_value, skip_space

_AT_MOST = 20  # labels that are tried, where the first ask for nothing

_LABEL = re.compile(
    r"(?:^|(?<=</think>))[ \t]*+(?:\#{1,6}[ \t]++|[-*][ \t]++)?+(?P<bold>\*\*|__|\*)?+[ \t]*+"
    r"(?P<label>thought|action[ _]?input|input|action|final[ _]?answer)(?:[ \t]++\d++)?+[ \t]*+"
    r"(?:(?P<closed>\*\*|__|\*)[ \t]*+:|:(?(bold)[ \t]*+(?P<after>\*\*|__|\*)?+))",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE = re.compile(r"(?<=\S)[ \t]+(?P<bold>\*\*)?(?P<label>Action|Final Answer)(?P<closed>\*\*)?:(?P<after>\*\*)?")
_OBSERVATION = re.compile(
    r"(?:\A\s*+|\r?\n)[ \t]*+(?:\*\*|__|\#{1,6}[ \t]++)?+observation(?:[ \t]++\d++)?+(?:\*\*|__)?+[ \t]*+:",
    re.IGNORECASE,
)
_THINKING = re.compile(r"\s*<think>.*?(?:</think>|\Z)", re.DOTALL)


@dataclass(frozen=True)
class ReActStep:
    """A step as the model wrote it.

    `input` is the text of the action's input ("" if none), `finish` the answer if the step gives one; at most one of
    `action` and `finish` is set.  `own` is the reply up to an invented observation, exactly as a stop string would
    have left it.
    """

    thought: str
    action: str | None
    input: str
    finish: str | None
    own: str
    notes: tuple[str, ...] = ()


def read_step(text: str, names: Collection[str]) -> ReActStep:
    """Read the first step of `text`; `names` are the known tools (an unknown one is returned as it was written).

    Where no action can be read, both `action` and `finish` are None and the notes say why.  Total.
    """
    invented = _OBSERVATION.search(text)
    own = text[: invented.start()] if invented else text
    notes = ["text from an invented observation on dropped"] if invented else []
    thinking = _THINKING.match(own)
    begin = thinking.end() if thinking else 0
    labels = [_label(match) for match in _LABEL.finditer(own, begin)]
    steps = [label for label in labels if label.kind in ("action", "final")]
    if not steps and (inline := _INLINE.search(own, begin)):
        steps = [_label(inline)]
        labels = sorted((*labels, *steps), key=lambda label: label.start)
        notes.append("label inside of a line")
    first = labels[0].end if labels and labels[0].kind == "thought" else begin
    thought = own[first : steps[0].start if steps else len(own)].strip()
    found = _Found()
    for label in steps[:_AT_MOST]:
        after = [x for x in labels if x.start >= label.end]
        stop = next((x.start for x in after if x.kind != "input"), len(own))
        given = next((x.end for x in after if x.kind == "input" and x.start < stop), None)
        found = _final(own, label, stop) if label.kind == "final" else _action(own, label, stop, given, names)
        notes.extend(found.notes)
        if not found.nothing:
            break
    if more := sum(label.start >= found.end for label in steps if not found.nothing):
        notes.append(f"{more} more action{'s' * (more > 1)} ignored")
    return ReActStep(thought, found.action, found.input, found.finish, own, tuple(notes))


@dataclass(frozen=True)
class _Label:
    """A label's place, its kind, and the bold mark that it leaves open."""

    start: int
    end: int
    kind: Literal["thought", "action", "input", "final"]
    bold: str


def _label(match: re.Match[str]) -> _Label:
    word = match["label"].lower()
    kind = "final" if word.startswith("final") else "input" if word.endswith("input") else word
    opened = None if match["closed"] or match["after"] else match["bold"]
    return _Label(match.start(), match.end(), cast("Any", kind), opened or "")


@dataclass(frozen=True)
class _Found:
    """What a label led to and where that ends; with `nothing`, the next label is to be read."""

    action: str | None = None
    input: str = ""
    finish: str | None = None
    end: int = 0
    notes: tuple[str, ...] = ()
    nothing: bool = False


def _final(own: str, label: _Label, stop: int) -> _Found:
    answer = own[label.end : stop].strip()
    if label.bold:
        answer = answer.removesuffix(label.bold).rstrip()
    return _Found(finish=answer, end=stop) if answer else _Found(notes=(Note.EMPTY_ANSWER,), nothing=True)


def _action(own: str, label: _Label, stop: int, given: int | None, names: Collection[str]) -> _Found:
    at = skip_space(own, label.end)
    if own.startswith(("```", "~~~"), at) and at < stop:
        value = read_value(own, at, stop)
        named = read_action(value.text.strip(), 0, len(value.text.strip()), names)
        named = replace(named, end=value.end, notes=(*value.notes, *named.notes))
    else:
        # An object may hold lines that look like labels, so it is read to its own end.
        line_of_input = own.rfind("\n", 0, given) + 1 if given is not None else stop
        named = read_action(own, at, max(at, min(line_of_input, stop)), names)
    if named.name is None:
        return _Found(end=max(named.end, label.end), notes=named.notes)
    text, end, notes = named.input, named.end, named.notes
    if given is not None and given > end:
        if text:
            notes = (*notes, "second input ignored")
        else:
            value = read_value(own, given, stop)
            text, end, notes = value.text, value.end, (*notes, *value.notes)
    text = text or ""
    if named.name in FINISH:
        answer = text.strip()
        return _Found(
            finish=answer or None, end=end, notes=notes if answer else (*notes, Note.EMPTY_ANSWER), nothing=not answer
        )
    if named.name in NO_ACTION:
        return _Found(notes=(*notes, "no action named"), nothing=True)
    return _Found(named.name, text, None, end, notes)
