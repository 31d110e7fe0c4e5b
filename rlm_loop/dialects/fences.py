"""Read the fenced blocks of a reply by CommonMark's rules (4.5, 5.2), with Python's grammar as the arbiter.

A line that starts with backticks outside of a string literal is never Python.  So a fence ends a block of Python
exactly when it stands outside of strings: triple backticks inside a docstring do not end it, and an opening fence
(the closing one was forgotten) does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlm_loop.actions import Note
from rlm_loop.dialects.python_source import OTHER_LANGUAGES, looks_like_python, source_state
from rlm_loop.repl.text import dedented

PYTHON = frozenset({"python", "py", "python3", "repl", "ipython", ""})

_TRIES = 16  # later fences that are tried as the end of a block with an open string: keeps reading linear
_FAR = 64  # ... and how many marks are looked at to find them
_LABELS = PYTHON | OTHER_LANGUAGES | {"text", "txt", "json", "markdown", "md", "plaintext"}
_ATTRIBUTES = re.compile("[={]")
_DECORATIVE = ("", "markdown", "md")
_QUOTED = (">```", "> ```", ">~~~", "> ~~~")
_TAIL = "closed at the end of a code line"
_NEXT = "closed by the next opening fence"
_FENCE = re.compile(r"([ \t]*)((?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})(.*)", re.DOTALL)
_ITEM = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+)(?=\S)")
_WORD = re.compile(r"[^\s{},;:=()\[\]]*")


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
    """Blocks to run (`blocks`), other ones (`skipped`), the text outside of blocks (`prose`), and notes by line.

    A block without code is in `blocks`, with the note "empty block": there is nothing to run, but a reply that has
    one is not plain text.  Blocks without a label are skipped where a labelled one has code.
    """

    blocks: tuple[Block, ...]
    skipped: tuple[Block, ...]
    notes: tuple[str, ...]
    prose: str


@dataclass(frozen=True)
class _Mark:
    """A run of fence characters that starts a line, or that ends a line of code (`info` is None).

    `indent` is in columns and counts a list marker before the fence, `info` what follows the run on its line.
    `language` is the first word of it in lower case; `{python}` and `{.python #id}` count as `python`.
    """

    line: int
    indent: int
    run: str
    info: str | None
    in_item: bool = False
    language: str = ""


def read_fences(text: str, *, languages: frozenset[str] = PYTHON) -> FencedReply:
    """Find the fenced blocks of `text`; those of `languages` are to run, `""` meaning a fence without a language.

    Total, and near linear in the text's length.  Line ends may be LF or CRLF; code gets LF.  An unclosed block has
    `closed=False`, the note "unclosed fence", and "does not compile" where that is so.
    """
    raw = text.split("\n")
    lines = [line.removesuffix("\r") for line in raw] if "\r" in text else raw
    marks = find_marks(lines)
    blocks: list[Block] = []
    skipped: list[Block] = []
    notes: list[str] = []
    prose: list[str] = []
    outside: list[str] = []  # lines that are in no block, with those that open one
    items: _ListItems | None = None  # made for the first mark that only a list item could hold
    wrapped_until: int | None = None  # where the block inside a decorative fence ended
    wrapping = labelled = bare = False
    line = at = 0
    while line < len(lines):
        while at < len(marks) and marks[at].line < line:
            at += 1
        mark = marks[at] if at < len(marks) and marks[at].line == line else None
        outside.append(lines[line])
        if mark is None or mark.info is None:
            if lines[line].lstrip().startswith(_QUOTED):
                notes.append(f"line {line + 1}: fence in a block quote is not read")
            prose.append(raw[line])
            line += 1
            continue
        if wrapped_until is not None:
            ends, wrapped_until = not any(map(str.strip, lines[wrapped_until:line])) and not mark.info, None
            if ends:
                line += 1
                continue
        if mark.language in _DECORATIVE and _wraps(lines, marks, at):
            notes.append(f"line {line + 1}: decorative fence")
            wrapping = True
            line += 1
            continue
        held = mark.in_item or mark.indent <= 3
        if not held:
            items = items or _ListItems()
            held = items.hold(mark.indent, outside)
        wanted = mark.language in languages
        block, line = _block(lines, marks, at, wanted)
        wrapped_until, wrapping = (line if wrapping else None), False
        empty = not block.code.strip()
        if empty:
            block = replace(block, notes=(*block.notes, "empty block"))
        if wanted and held and (block.closed or not empty or mark.info):
            blocks.append(block)
            labelled = labelled or bool(block.language and not empty)
            bare = bare or not block.language
        else:
            block = _skip(block, "" if held else "indented by four or more")
            skipped.append(block)
        if not wanted:
            notes.append(f"line {block.line}: skipped a block of {mark.language or 'no language'}")
        for note in block.notes:
            notes.append(f"line {block.line}: {note}")
    if labelled and bare:
        prosaic = [block for block in blocks if not block.language]
        notes += [f"line {block.line}: skipped a block without a label beside labelled ones" for block in prosaic]
        blocks = [block for block in blocks if block.language]
        skipped = sorted((*skipped, *map(_skip, prosaic)), key=lambda block: block.line)
    return FencedReply(tuple(blocks), tuple(skipped), tuple(notes), "\n".join(prose))


def _skip(block: Block, note: str = "") -> Block:
    python = block.language not in OTHER_LANGUAGES and looks_like_python(block.code)
    return replace(block, notes=(*block.notes, *([note] if note else []), *([Note.PYTHON] if python else [])))


def _wraps(lines: Sequence[str], marks: Sequence[_Mark], at: int) -> bool:
    """Say whether a fence only decorates: another one opens, with nothing but blank lines between."""
    if at + 1 == len(marks):
        return False
    start, end = marks[at].line + 1, marks[at + 1].line
    return bool(marks[at + 1].info) and end - start < 4 and not any(map(str.strip, lines[start:end]))


def _block(lines: Sequence[str], marks: Sequence[_Mark], at: int, python: bool) -> tuple[Block, int]:
    """Return the block that `marks[at]` opens, and the line after it."""
    opener = marks[at]
    first: tuple[Block, int] | None = None  # the first end found, though inside a string: used if no other is better
    tries = tails = 0
    last = len(marks)
    for number in range(at + 1, len(marks)):
        mark = marks[number]
        if number > last:
            break
        note = _end(opener, mark, python)
        if note is None:
            continue
        if note == _TAIL:
            tails += 1
            if tails > _TRIES:
                continue
        elif last == len(marks):
            last = number + _FAR
        code = _body(lines, opener, mark.line, mark.run if note == _TAIL else "")
        block = Block(code, opener.language, opener.line + 1, (note,) if note else ())
        found = block, mark.line + (note != _NEXT)
        if not python:
            return found
        # a string of several lines may be open: else the first end is the block's
        open_string = '"""' in code or "'''" in code or code.endswith("\\") or "\\\n" in code
        state = source_state(code) if note == _TAIL or open_string else "broken"
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


def _end(opener: _Mark, mark: _Mark, python: bool) -> str | None:
    """Return how a mark may end a block: "" for a closing fence, a note for another end, None where it cannot."""
    if mark.info == "":
        # CommonMark: the same character, no shorter, and nothing after it
        alike = mark.run[0] == opener.run[0] and len(mark.run) >= len(opener.run)
        return "" if alike and not mark.in_item and mark.indent <= opener.indent + 3 else None
    if not python:
        return None
    if mark.info is None:
        return _TAIL
    if " " in mark.info and mark.language not in _LABELS and not _ATTRIBUTES.search(mark.info):
        return "words after the closing fence"
    return _NEXT


def _body(lines: Sequence[str], opener: _Mark, end: int, tail: str) -> str:
    """The lines between the fences, less the fence's own indentation, and dedented where all of it is indented.

    With `tail`, line `end` belongs to the body, and the fence at its end does not.
    """
    body = list(lines[opener.line + 1 : end])
    if tail:
        body.append(lines[end].rstrip().removesuffix(tail))
    if opener.indent:
        start = next((line for line in body if line.strip()), "")
        if columns := min(opener.indent, _indent(start)):
            body = [_without_indent(line, columns) for line in body]
    return dedented("\n".join(body))


def find_marks(lines: Sequence[str]) -> list[_Mark]:
    """Return the fences of a text, by line."""
    marks: list[_Mark] = []
    for number, line in enumerate(lines):
        if ("```" in line or "~~~" in line) and (mark := _mark(number, line)) is not None:
            marks.append(mark)
    return marks


def _mark(number: int, line: str) -> _Mark | None:
    match = _FENCE.fullmatch(line)
    if match is not None and not (match[3][0] == "`" and "`" in match[4]):  # else it is a span of inline code
        before, info = match[1] + (match[2] or ""), match[4].strip()
        word = _WORD.match(info.lstrip("{. \t"))
        language = word[0].lower() if word else ""
        return _Mark(number, _column(before) if before else 0, match[3], info, match[2] is not None, language)
    tail = line.rstrip()
    code = tail.rstrip("`")
    if len(tail) - len(code) >= 3 and code.strip() and "`" not in code and "#" not in code:
        return _Mark(number, 0, tail[len(code) :], None)
    return None


def _column(whitespace: str) -> int:
    return len(whitespace.expandtabs(4))


def _indent(line: str) -> int:
    """The width of the whitespace before the first other character, in columns with tab stops of four."""
    return _column(line[: len(line) - len(line.lstrip(" \t"))])


def _without_indent(line: str, columns: int) -> str:
    """`line` without at most `columns` columns of leading whitespace; what remains of a tab becomes spaces."""
    column = 0
    for at, char in enumerate(line):
        if column >= columns or char not in " \t":
            return " " * (column - columns) + line[at:]
        column += 4 - column % 4 if char == "\t" else 1
    return " " * (column - columns)


class _ListItems:
    """The columns at which the text of the open list items begins."""

    def __init__(self) -> None:
        self._columns: list[int] = []
        self._after_blank = True
        self._read = 0  # lines

    def hold(self, indent: int, lines: Sequence[str]) -> bool:
        """Say whether a fence may stand at this column: at most three past an item's text; `lines` lead up to it."""
        for line in lines[self._read :]:
            if line.strip():
                item = _ITEM.match(line)
                if self._columns and (item or self._after_blank):  # else it may be a paragraph's lazy second line
                    column = _indent(line)
                    while self._columns and column < self._columns[-1]:
                        self._columns.pop()
                if item:
                    after = _column(item[0]) if len(item[3]) < 5 else _column(item[1] + item[2]) + 1
                    self._columns.append(after)
            self._after_blank = not line.strip()
        self._read = len(lines)
        return any(0 <= indent - column <= 3 for column in self._columns)
