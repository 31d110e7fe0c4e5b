"""Replace lines of a file, if that is well: in two steps, so that it can be looked at before it is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlm_loop.tools.code.paths import MAX_BYTES, inside, write_bytes
from rlm_loop.tools.code.reading import MAX_LINES, load
from rlm_loop.tools.code.texts import decode, joined, lines_of, numbered, syntax_error
from rlm_loop.tools.function import ToolError

_AROUND = 2  # lines shown before and after an edit


@dataclass(frozen=True)
class LineRange:
    """Lines `start` to `end` of a file as it is now (`end = start - 1`: the place before `start`)."""

    path: str
    start: int
    end: int
    data: bytes
    text: str
    encoding: str
    lines: list[str]
    fresh: bool = False


@dataclass(frozen=True)
class FileEdit:
    """What a file will be: `written` lines from `start` on are new, `first` to `last` are shown."""

    path: str
    start: int
    written: int
    first: int
    last: int
    data: bytes
    lines: list[str]
    problem: str = ""

    @property
    def shown(self) -> str:
        note = f"\nstill does not compile: {self.problem}" if self.problem else ""
        if self.last - self.first >= MAX_LINES:
            return f"{self.path}: {self.written} lines written" + note
        return (numbered(self.lines, self.first, self.last) if self.lines else "(empty file)") + note


def edit(root: Path, path: str, start_line: int, end_line: int, replacement: str) -> str:
    """Replace lines `start_line` to `end_line`, both included; returns the lines around the edit.

    `end_line = start_line - 1` inserts before `start_line`, an empty replacement deletes; lines 1 to 0 of a file
    that does not exist make it.  A Python file that compiled and no longer would is left as it is.
    """
    change = replaced(open_region(root, path, start_line, end_line), replacement)
    write_bytes(root, path, change.data)
    return change.shown


def open_region(root: Path, path: str, start_line: int, end_line: int) -> LineRange:
    """The lines that an edit is about; `ToolError` where the file does not have them."""
    target = inside(root, path)
    fresh = not target.exists() and (start_line, end_line) == (1, 0)
    data = b"" if fresh else load(root, path)
    text, encoding = decode(data, path)
    lines = lines_of(text)
    if not 1 <= start_line <= end_line + 1 <= len(lines) + 1:
        raise ToolError(
            "invalid_arguments", f"{path} has {len(lines)} lines, lines {start_line} to {end_line} cannot be replaced"
        )
    return LineRange(path, start_line, end_line, data, text, encoding, lines, fresh)


def replaced(region: LineRange, replacement: str) -> FileEdit:
    """The file with other lines in that region; `ToolError` where it must stay as it is.  Nothing is written."""
    path, start, end, lines = region.path, region.start, region.end, region.lines
    new = lines_of(replacement.replace("\r\n", "\n"))
    after = joined(lines[: start - 1], new, lines[end:], region.text)
    try:
        data = after.encode(region.encoding)
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        raise ToolError(
            "invalid_arguments", f"not changed: {path} is {region.encoding}, which has no {bad!r}"
        ) from None
    if "\0" in replacement:
        raise ToolError("invalid_arguments", f"not changed: a NUL character would make {path} no text")
    if len(data) > MAX_BYTES:
        raise ToolError("invalid_arguments", f"not changed: {path} would have {len(data)} bytes (at most {MAX_BYTES})")
    if data == region.data and not region.fresh:
        raise ToolError("runtime", f"not changed: lines {start} to {end} of {path} are already so")
    problem = syntax_error(data, path) if path.endswith((".py", ".pyi")) else ""
    if problem and not syntax_error(region.data, path):
        raise ToolError("runtime", f"not changed, it would not compile: {problem}")
    now = lines_of(after)
    first, last = max(1, start - _AROUND), min(len(now), start - 1 + len(new) + _AROUND)
    return FileEdit(path, start, len(new), first, last, data, now, problem)
