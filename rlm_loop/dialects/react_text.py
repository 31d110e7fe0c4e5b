"""Read one step of ReAct's text form: Thought, Action and Action Input lines, or a Final Answer.

Labels are read in any letter case, numbered, bold or as headings.  Only the first action counts, and nothing that a
model wrote after an Observation of its own making does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rlm_loop.actions import Note
from rlm_loop.dialects.fences import read_fences
from rlm_loop.dialects.lenient_json import decode, written
from rlm_loop.dialects.python_source import read_call, read_literal
from rlm_loop.dialects.reader import without_reasoning
from rlm_loop.dialects.tool_text import ARGUMENT_KEYS, called_name
from rlm_loop.repl.text import dedented

_FINISH = frozenset({"finish", "final_answer", "final answer", "finalanswer"})
_NO_ACTION = frozenset({"none", "n/a", "null", "no action", "nothing", "-"})
_AT_MOST = 20  # labels that are tried, where the first ask for nothing
_LABEL = re.compile(
    r"^[ \t]*+(?:\#{1,6}[ \t]++|[-*][ \t]++)?+(?P<bold>\*\*|__|\*)?+[ \t]*+"
    r"(?P<label>thought|action[ _]?input|input|action|final[ _]?answer)(?:[ \t]++\d++)?+[ \t]*+"
    r"(?:(?P<closed>\*\*|__|\*)[ \t]*+:|:(?(bold)[ \t]*+(?P<after>\*\*|__|\*)?+))",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE = re.compile(r"(?<=\S)[ \t]+(?P<bold>\*\*)?(?P<label>Action|Final Answer)(?P<closed>\*\*)?:(?P<after>\*\*)?")
_OBSERVATION = re.compile(
    r"(?:\A\s*+|\r?\n)[ \t]*+(?:\*\*|__|\#{1,6}[ \t]++)?+observation(?:[ \t]++\d++)?+(?:\*\*|__)?+[ \t]*+:",
    re.IGNORECASE,
)
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
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class ReActStep:
    """A step as the model wrote it.

    `input` is the text of the action's input ("" if none), `finish` the answer if the step gives one; at most one of
    `action` and `finish` is set.  `own` is the reply up to an invented observation, exactly as a stop string would
    have left it.
    """

    action: str | None
    input: str
    finish: str | None
    own: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Label:
    """A label's place, its kind, and the bold mark that it leaves open."""

    start: int
    end: int
    kind: str
    bold: str

    @classmethod
    def of(cls, match: re.Match[str]) -> _Label:
        word = match["label"].lower()
        kind = "final" if word.startswith("final") else "input" if word.endswith("input") else word
        return cls(match.start(), match.end(), kind, "" if match["closed"] or match["after"] else match["bold"] or "")


@dataclass(frozen=True)
class _Found:
    """A tool's name and the text of its input, each None where there is none, and where they end."""

    name: str | None
    text: str | None
    end: int
    notes: tuple[str, ...] = ()

    def of(self, name: str | None, *notes: str) -> _Found:
        """Return the input as that of a tool, with the notes on its name first."""
        return replace(self, name=name, notes=(*notes, *self.notes))


def read_step(text: str, names: Collection[str]) -> ReActStep:
    """Read the first step of `text`; `names` are the known tools (an unknown one is returned as it was written).

    Where no action can be read, both `action` and `finish` are None and the notes say why.  Total.
    """
    body = without_reasoning(text)
    invented = _OBSERVATION.search(body)
    notes = ["text from an invented observation on dropped"] if invented else []
    reasoning, body = text[: len(text) - len(body)], body[: invented.start()] if invented else body
    labels = [_Label.of(match) for match in _LABEL.finditer(body)]
    steps = [label for label in labels if label.kind in ("action", "final")]
    if not steps and (inline := _INLINE.search(body)):
        steps = [_Label.of(inline)]
        labels = sorted((*labels, *steps), key=lambda label: label.start)
        notes.append("label inside of a line")
    action, given, finish = None, "", None
    for label in steps[:_AT_MOST]:
        found = _step(body, label, [x for x in labels if x.start >= label.end], names)
        notes.extend(found.notes)
        text = found.text or ""
        if found.name in _NO_ACTION:
            notes.append("no action named")
        elif found.name in _FINISH and not text.strip():
            notes.append(Note.EMPTY_ANSWER)
        else:
            if found.name in _FINISH:
                finish = text.strip()
            else:
                action, given = found.name, text
            if more := sum(label.start >= found.end for label in steps):
                notes.append(f"{more} more action{'s' * (more > 1)} ignored")
            break
    return ReActStep(action, given, finish, reasoning + body, tuple(notes))


def _step(body: str, label: _Label, after: Sequence[_Label], names: Collection[str]) -> _Found:
    """Read what a label of an action or of an answer begins; `after` are the labels that follow."""
    start, stop = label.end, next((x.start for x in after if x.kind != "input"), len(body))
    if label.kind == "final":
        answer = body[start:stop].strip()
        return _Found("finish", answer.removesuffix(label.bold).rstrip() if label.bold else answer, stop)
    given = next((x.end for x in after if x.kind == "input" and x.start < stop), None)
    at = _skip(body, start)
    if body.startswith(("```", "~~~"), at) and at < stop:
        fenced = _value(body, at, stop)
        text = (fenced.text or "").strip()
        named = _named(text, 0, len(text), names)
        named = replace(named, end=fenced.end).of(named.name, *fenced.notes)
    else:
        # An object may hold lines that look like labels, so it is read to its own end.
        line_of_input = body.rfind("\n", 0, given) + 1 if given is not None else stop
        named = _named(body, at, max(at, min(line_of_input, stop)), names)
    if named.name is None:
        return replace(named, end=max(named.end, start))
    if given is None or given <= named.end:
        return named
    if named.text:
        return replace(named, notes=(*named.notes, "second input ignored"))
    return _value(body, given, stop).of(named.name, *named.notes)


def _named(own: str, at: int, stop: int, names: Collection[str]) -> _Found:
    """Read the name at `at`, and the input if it is written with it.

    The forms are an object, `tool[...]`, `tool(...)`, `finish: ...`, a name with JSON after it, and a name alone.
    """
    head = own[at:stop].rstrip()
    if head.startswith("{"):
        return _object(own, at, names)
    if match := _FINISH_COLON.match(head):
        return _Found("finish", head[match.end() :], stop)
    if match := _BRACKET.match(head):
        name, notes = _known(match["name"], names)
        if signature := _SIGNATURE.match(own, at + match.end(), stop):
            return _Found(name, None, signature.end(), (*notes, "signature copied"))
        return _bracketed(own, at + match.end(), stop).of(name, *notes)
    line, _, rest = head.partition("\n")
    word = line.strip(" \t\r`\"'*.,;")
    name, notes = _known(word, names)
    if name in names or name in _FINISH or name in _NO_ACTION or _ONE_NAME.fullmatch(name):
        follows = at + len(line)
        if rest.lstrip().startswith(("{", "```", "~~~")) or (name in _FINISH and rest.strip()):
            return _value(own, follows, stop).of(name, *notes, "input without a label")
        return _Found(name, None, follows, (*notes, "text after the action ignored") if rest.strip() else notes)
    if match := _SAME_LINE.match(head):
        name, notes = _known(match["name"], names)
        if name in names or name in _FINISH:
            return _value(own, at + match.end(), stop).of(name, *notes)
    return _Found(None, None, stop, (f"unreadable action: {word[:60]!r}" if word else "empty action",))


def _known(word: str, names: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Return the tool that `word` means: letter case is forgiven where one known tool fits."""
    folded = word.casefold()
    if word in names or folded in _FINISH or folded in _NO_ACTION:
        return (word if word in names else folded), ()
    fits = [name for name in names if name.casefold() == folded]
    return (fits[0], ("tool named in another letter case",)) if len(fits) == 1 else (word, ())


def _object(own: str, at: int, names: Collection[str]) -> _Found:
    found = decode(own, at)
    if not isinstance(found.value, dict):
        return _Found(None, None, found.end, (f"{found.problem} JSON action",) if found.problem else ())
    said = called_name(found.value, names)
    keys = [key for key in ARGUMENT_KEYS if key in found.value]
    if said is None or len(keys) > 1:
        why = "names no tool" if said is None else "has two inputs"
        return _Found(None, None, found.end, (*found.notes, f"the action object {why}"))
    name, more = _known(said, names)
    content = found.value[keys[0]] if keys else None
    text = content if isinstance(content, str) or content is None else written(content) or repr(content)
    return _Found(name, text, found.end, (*found.notes, *more))


def _value(text: str, start: int, stop: int) -> _Found:
    """Read the input that begins at `start`; an object or a fenced block may reach past `stop`, plain text may not.

    A fence around it is removed, code on lines of its own dedented, and the quotes around a single line removed.
    """
    at = _skip(text, start)
    if at >= stop:
        return _Found(None, "", stop)
    if text.startswith(("```", "~~~"), at):
        reading = read_fences(text[at:])
        if block := next((b for b in (*reading.blocks, *reading.skipped) if b.line == 1), None):
            lines = text[at:].split("\n")[: block.code.count("\n") + 3]
            notes = (note for note in block.notes if note != Note.PYTHON)
            return _Found(None, block.code, at + len("\n".join(lines)), ("code fence removed", *notes))
    if text[at] == "{" and isinstance((found := decode(text, at)).value, dict):
        return _Found(None, text[at : found.end], found.end)
    line, _, rest = text[start:stop].partition("\n")
    if not line.strip():
        return _Found(None, dedented(rest).rstrip(), stop)
    return _unquoted(text[start:stop].strip(), stop)


def _bracketed(text: str, start: int, stop: int) -> _Found:
    """Read what stands in the bracket at `start`, up to the one that closes it; `text[:start]` ends in the name."""
    closing = "]" if text[start] == "[" else ")"
    at = _skip(text, start + 1)
    if text.startswith("{", at):
        found = decode(text, at)
        after = _skip(text, found.end)
        if isinstance(found.value, dict) and text.startswith(closing, after):
            return _Found(None, text[at : found.end], after + 1)
    section = text[start:stop].rstrip()
    line = section.partition("\n")[0]
    inside = section if section.endswith(closing) else line[: line.rfind(closing) + 1]
    inside = inside or section[: section.rfind(closing) + 1]
    if not inside:
        return _Found(None, section[1:].strip(), stop, ("unclosed bracket",))
    end, inner = start + len(inside), inside[1:-1].strip()
    if closing == "]":
        return _unquoted(inner, end)
    call = read_call(f"f{inside}")
    if call is not None and call[1] and not call[2] and (arguments := written(call[1])) is not None:
        return _Found(None, arguments, end, ("python call",))
    return replace(_unquoted(inner, end), notes=())


def _unquoted(text: str, end: int) -> _Found:
    """Return a single quoted line without its quotes, and a span of inline code without its backticks."""
    if "\n" not in text and text[:1] == text[-1:] == "`" and (inner := text.strip("`")) and "`" not in inner:
        return _Found(None, inner.strip(), end, ("backticks removed",))
    if "\n" not in text and text[:1] == text[-1:] and text[:1] in ("'", '"'):
        with suppress(ValueError):
            if isinstance(inner := read_literal(text), str):
                return _Found(None, inner, end, ("quotes removed",))
    return _Found(None, text, end)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
