"""Read the fenced blocks of a reply by CommonMark's rules (4.5, 5.2), with Python's grammar as the arbiter.

A line that starts with backticks outside of a string literal is never Python.  So a fence ends a block of Python
exactly when it stands outside of strings: triple backticks inside a docstring do not end it, and an opening fence
(the closing one was forgotten) does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from rlm_loop.actions import Note
from rlm_loop.repl.text import dedented
from rlm_loop.tools.python_source import OTHER_LANGUAGES, looks_like_python, source_state

PYTHON = frozenset({"python", "py", "python3", "repl", "ipython", ""})

_TRIES = 16  # later fences that are tried as the end of a block with an open string: keeps reading linear
_NEXT = "closed by the next opening fence"
_FENCE = re.compile(r"([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(`{3,}|~{3,})(.*)", re.DOTALL)
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_WORD = re.compile(r"[{. \t]*([^\s{},;:=()\[\]]*)")


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
    """Blocks to run (`blocks`), other ones (`skipped`), and the text outside of blocks (`prose`).

    A block without code is in `blocks`, with the note "empty block": there is nothing to run, but a reply that has
    one is not plain text.  Blocks without a label are skipped where a labelled one has code.
    """

    blocks: tuple[Block, ...]
    skipped: tuple[Block, ...]
    prose: str

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all blocks, each with the line of its block."""
        blocks = sorted((*self.blocks, *self.skipped), key=lambda block: block.line)
        return tuple(f"line {block.line}: {note}" for block in blocks for note in block.notes)


@dataclass(frozen=True)
class _Mark:
    """A run of fence characters that starts a line: `indent` is in columns, `info` what follows it."""

    line: int
    indent: int
    run: str
    info: str
    language: str


def read_fences(text: str, *, languages: frozenset[str] = PYTHON) -> FencedReply:
    """Find the fenced blocks of `text`; those of `languages` are to run, `""` meaning a fence without a language.

    Total, and near linear in the text's length.  Line ends may be LF or CRLF; code gets LF.  An unclosed block has
    `closed=False`, the note "unclosed fence", and "does not compile" where that is so.
    """
    raw = text.split("\n")
    lines = text.replace("\r\n", "\n").removesuffix("\r").split("\n")
    likely = [number for number, line in enumerate(lines) if "```" in line or "~~~" in line]
    marks = [mark for number in likely if (mark := _mark(number, lines[number])) is not None]
    places = {mark.line: place for place, mark in enumerate(marks)}
    blocks: list[Block] = []
    skipped: list[Block] = []
    prose: list[str] = []
    items: list[int] = []  # the columns at which the text of the open list items begins
    line = 0
    while line < len(lines):
        _follow(items, lines[line])
        if line not in places:
            prose.append(raw[line])
            line += 1
            continue
        mark = marks[places[line]]
        wanted = mark.language in languages
        held = mark.indent <= 3 or any(0 <= mark.indent - column <= 3 for column in items)
        block, line = _block(lines, mark, map(marks.__getitem__, range(places[line] + 1, len(marks))), wanted)
        stray = not block.code.strip() and not mark.info and (not block.closed or _NEXT in block.notes)
        if wanted and held and not stray:
            blocks.append(block)
        else:
            notes = () if wanted else (f"skipped a block of {mark.language or 'no language'}",)
            skipped.append(_skip(block, *notes, *(() if held else ("indented by four or more",))))
    if any(block.language and block.code.strip() for block in blocks):
        prosaic = [block for block in blocks if not block.language]
        blocks = [block for block in blocks if block.language]
        skipped += [_skip(block, "skipped a block without a label beside labelled ones") for block in prosaic]
    return FencedReply(tuple(blocks), tuple(skipped), "\n".join(prose))


def _skip(block: Block, *notes: str) -> Block:
    python = block.language not in OTHER_LANGUAGES and looks_like_python(block.code)
    return replace(block, notes=(*notes, *block.notes, *([Note.PYTHON] if python else [])))


def _follow(items: list[int], line: str) -> None:
    """Close the list items that a line is no part of, and open those that it begins."""
    if line.strip():
        while items and _column(line[: len(line) - len(line.lstrip(" \t"))]) < items[-1]:
            items.pop()
        if item := _ITEM.match(line):
            items.append(_column(item[0]))


def _block(lines: Sequence[str], opener: _Mark, later: Iterator[_Mark], python: bool) -> tuple[Block, int]:
    """Return the block that a mark opens, and the line after it."""
    first: tuple[Block, int] | None = None  # the first end found, though inside a string: used if no other is better
    if python and (ended := _ended_by_code_line(lines, opener)) is not None:
        return ended
    ends = (mark for mark in later if (python and mark.info) or _closes(opener, mark))
    for mark in islice(ends, _TRIES):
        code = dedented("\n".join(lines[opener.line + 1 : mark.line]))
        notes = (_NEXT,) if mark.info else ()
        # only a string of several lines may hold a fence
        opens = '"""' in code or "'''" in code or code.endswith("\\") or "\\\n" in code
        state = source_state(code) if python and opens else "broken"
        if first is None and state != "open string":
            return _made(code, opener, notes), mark.line + (not mark.info)
        if state == "compiles":
            return _made(code, opener, ("nested fence", *notes)), mark.line + (not mark.info)
        if state == "broken":
            break
        first = first or (_made(code, opener, notes), mark.line + (not mark.info))
    if first is not None:
        return first
    code = dedented("\n".join(lines[opener.line + 1 :]))
    notes = (Note.UNCLOSED, *([Note.NO_COMPILE] if python and source_state(code) != "compiles" else []))
    return replace(_made(code, opener, notes), closed=False), len(lines)


def _ended_by_code_line(lines: Sequence[str], opener: _Mark) -> tuple[Block, int] | None:
    """Return the block whose closing fence stands at the end of its last line of code, and the line after it."""
    for number in range(opener.line + 1, len(lines)):
        tail = lines[number].rstrip()
        if tail.lstrip().startswith(opener.run):
            return None
        if tail.endswith(opener.run) and "#" not in tail:
            code = dedented("\n".join([*lines[opener.line + 1 : number], tail.removesuffix(opener.run)]))
            if source_state(code) == "compiles":
                return _made(code, opener, ("closed at the end of a code line",)), number + 1
            return None
    return None


def _made(code: str, opener: _Mark, notes: tuple[str, ...]) -> Block:
    return Block(code, opener.language, opener.line + 1, notes if code.strip() else (*notes, "empty block"))


def _closes(opener: _Mark, mark: _Mark) -> bool:
    """Say whether a mark is a closing fence: the same character, no shorter, and nothing after it (CommonMark)."""
    alike = mark.run[0] == opener.run[0] and len(mark.run) >= len(opener.run)
    return not mark.info and alike and mark.indent <= opener.indent + 3


def _mark(number: int, line: str) -> _Mark | None:
    match = _FENCE.fullmatch(line)
    if match is None or (match[2][0] == "`" and "`" in match[3]):  # else it is a span of inline code
        return None
    word = _WORD.match(match[3])
    return _Mark(number, len(match[1].expandtabs(4)), match[2], match[3].strip(), word[1].lower() if word else "")


def _column(text: str) -> int:
    return len(text.expandtabs(4))
