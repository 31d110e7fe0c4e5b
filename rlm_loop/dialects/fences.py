"""Read the code blocks of a reply: Markdown fences by CommonMark's rules, with Python's grammar as the arbiter.

A line that starts with backticks outside of a string literal is never Python.  So a fence ends a block of Python
exactly when it stands outside of strings: triple backticks inside a docstring do not end it, and an opening fence
(the closing one was forgotten) does.  Everything that was not plain is said in the notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rlm_loop.actions import Note
from rlm_loop.dialects.fence_lines import FenceMark, ListItems, find_marks, indent_of, without_indent
from rlm_loop.dialects.python_source import OTHER_LANGUAGES, looks_like_python, may_hold_open_string, source_state
from rlm_loop.repl.text import dedented

PYTHON = frozenset({"python", "py", "python3", "repl", "ipython", ""})

_TRIES = 16  # later fences that are tried as the end of a block with an open string: keeps reading linear
_FAR = 64  # ... and how many marks are looked at to find them
_LABELS = PYTHON | OTHER_LANGUAGES | {"text", "txt", "json", "markdown", "md", "plaintext"}
_ATTRIBUTES = re.compile("[={]")
_TAIL = "closed at the end of a code line"
_NEXT = "closed by the next opening fence"


@dataclass(frozen=True)
class Block:
    """A fenced block: `code` without the newline before the closing fence, `line` (from 1) of the opening fence.

    `language` is the first word of the info string in lower case, `closed` whether the block's end was found.
    """

    code: str
    language: str
    line: int
    notes: tuple[str, ...] = ()
    closed: bool = True


@dataclass(frozen=True)
class FencedReply:
    """What a reply holds: `blocks` in one of the languages, in order, and `skipped` ones.

    A block without code is in `blocks`, with the note "empty block": there is nothing to run, but a reply that has
    one is not plain text.  `skipped` has blocks of other languages (those that are Python in all but the label noted
    "looks like python"), fences indented by four or more outside of a list, and a last fence with nothing after it.
    `notes` lists all that was noticed, each with its line; `prose` is the text outside of blocks, unchanged.
    """

    blocks: tuple[Block, ...]
    skipped: tuple[Block, ...]
    notes: tuple[str, ...]
    prose: str


def read_fences(text: str, *, languages: frozenset[str] = PYTHON) -> FencedReply:
    """Find the fenced blocks of `text`; those of `languages` are to run, `""` meaning a fence without a language.

    Total, and near linear in the text's length.  Line ends may be LF or CRLF; code gets LF.  An unclosed block has
    `closed=False`, the note "unclosed fence", and "does not compile" where that is so.
    """
    raw = text.split("\n")
    lines = [line[:-1] if line.endswith("\r") else line for line in raw]
    marks = find_marks(lines)
    blocks: list[Block] = []
    skipped: list[Block] = []
    notes: list[str] = []
    prose: list[str] = []
    items = ListItems()
    wrapped_until: int | None = None  # where the block inside a decorative fence ended
    wrapping = False
    line = at = 0
    while line < len(lines):
        while at < len(marks) and marks[at].line < line:
            at += 1
        mark = marks[at] if at < len(marks) and marks[at].line == line else None
        items.read(lines[line])
        if mark is None or mark.info is None:
            if lines[line].lstrip().startswith((">```", "> ```", ">~~~", "> ~~~")):
                notes.append(f"line {line + 1}: fence in a block quote is not read")
            prose.append(raw[line])
            line += 1
            continue
        if wrapped_until is not None:
            ends, wrapped_until = not any(map(str.strip, lines[wrapped_until:line])) and not mark.info, None
            if ends:
                line += 1
                continue
        if _wraps(lines, marks, at):
            notes.append(f"line {line + 1}: decorative fence")
            wrapping = True
            line += 1
            continue
        block, line = _block(lines, marks, at, mark.language in languages)
        wrapped_until, wrapping = (line if wrapping else None), False
        if not block.code.strip():
            block = replace(block, notes=(*block.notes, "empty block"))
        stray = not block.closed and not block.code.strip() and not mark.info
        if mark.language in languages and items.hold(mark) and not stray:
            blocks.append(block)
        else:
            block = _skip(block, items.hold(mark))
            skipped.append(block)
        if mark.language not in languages:
            notes.append(f"line {block.line}: skipped a block of {mark.language or 'no language'}")
        for note in block.notes:
            notes.append(f"line {block.line}: {note}")
    return FencedReply(tuple(blocks), tuple(skipped), tuple(notes), "\n".join(prose))


def _skip(block: Block, placed: bool) -> Block:
    notes = block.notes if placed else (*block.notes, "indented by four or more")
    if block.language not in OTHER_LANGUAGES and looks_like_python(block.code):
        notes = (*notes, Note.PYTHON)
    return replace(block, notes=notes)


def _wraps(lines: Sequence[str], marks: Sequence[FenceMark], at: int) -> bool:
    """Whether the fence is only decoration: with nothing but blank lines between, another one opens."""
    if marks[at].language not in ("", "markdown", "md") or at + 1 == len(marks):
        return False
    start, end = marks[at].line + 1, marks[at + 1].line
    return bool(marks[at + 1].info) and end - start < 4 and not any(map(str.strip, lines[start:end]))


def _ends(marks: Sequence[FenceMark], at: int, python: bool) -> Iterator[tuple[FenceMark, str]]:
    """The marks that may end the block which `marks[at]` opens, each with a note ("" for a closing fence)."""
    opener = marks[at]
    tails = 0
    last = len(marks)
    for number in range(at + 1, len(marks)):
        mark = marks[number]
        if number > last:
            return
        if mark.closes(opener):
            note = ""
        elif not python or mark.info == "":
            continue
        elif mark.info is None:
            tails += 1
            if tails > _TRIES:
                continue
            note = _TAIL
        elif " " in mark.info and mark.language not in _LABELS and not _ATTRIBUTES.search(mark.info):
            note = "words after the closing fence"
        else:
            note = _NEXT
        if last == len(marks) and note != _TAIL:
            last = number + _FAR
        yield mark, note


def _block(lines: Sequence[str], marks: Sequence[FenceMark], at: int, python: bool) -> tuple[Block, int]:
    """The block that `marks[at]` opens, and the line after it."""
    opener = marks[at]
    first: tuple[Block, int] | None = None  # the first end found, though inside a string: used if no other is better
    tries = 0
    for mark, note in _ends(marks, at, python):
        code = _body(lines, opener, mark.line, mark.run if note == _TAIL else "")
        block = Block(code, opener.language, opener.line + 1, (note,) if note else ())
        found = block, mark.line + (note != _NEXT)
        if not python:
            return found
        state = source_state(code) if note == _TAIL or may_hold_open_string(code) else "broken"
        if state == "compiles" and first is not None:
            return replace(block, notes=("nested fence", *block.notes)), found[1]
        if state == "compiles" or (state == "broken" and first is None and note != _TAIL):
            return found
        if note == _TAIL:
            continue
        first = first or found
        tries += 1
        if state == "broken" or tries > _TRIES:
            break
    if first is not None:
        return first
    code = _body(lines, opener, len(lines), "")
    notes: tuple[str, ...] = (Note.UNCLOSED,)
    if python and source_state(code) != "compiles":
        notes = (*notes, Note.NO_COMPILE)
    return Block(code, opener.language, opener.line + 1, notes, closed=False), len(lines)


def _body(lines: Sequence[str], opener: FenceMark, end: int, tail: str) -> str:
    """The lines between the fences, less the fence's own indentation, and dedented where all of it is indented.

    With `tail`, line `end` belongs to the body, and the fence at its end does not.
    """
    body = list(lines[opener.line + 1 : end])
    if tail:
        body.append(lines[end].rstrip().removesuffix(tail))
    if opener.indent:
        start = next((line for line in body if line.strip()), "")
        if columns := min(opener.indent, indent_of(start)):
            body = [without_indent(line, columns) for line in body]
    return dedented("\n".join(body))
