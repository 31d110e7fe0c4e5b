"""Tools for the files of one folder; their help is part of every prompt and stays short."""

from __future__ import annotations

import difflib
import itertools
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from rlm_loop.tools.code.paths import MAX_BYTES, files, read_bytes, write_bytes
from rlm_loop.tools.code.searching import search
from rlm_loop.tools.code.text import bare, decode, joined, lines_of, numbered, syntax_error
from rlm_loop.tools.function import Tool, ToolError, as_tool

MAX_LINES = 200
_AROUND = 2  # lines shown before and after an edit
_COMPARED = 5_000  # names looked at for one that was meant; more would take seconds


class CodeTools:
    """`search_code`, `read_file` and `apply_edit` for the files below a folder, and others on request.

    It remembers the text shown under each line number: an edit of lines that are not so any more is refused once.
    Raises `NotADirectoryError` for a `root` that is no folder.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            raise NotADirectoryError(f"root must be a folder, got {str(root)!r}")
        self._shown: dict[str, dict[int, str]] = {}  # by path, then by number
        self._lock = threading.RLock()  # calls may come from several threads of a cell
        self._more: tuple[Tool, ...] = ()

    def tools(self) -> tuple[Tool, ...]:
        """Return the three tools, and what was asked for by `offer`."""
        edits = replace(as_tool(self.apply_edit), dry_run=self.preview_edit)
        return (as_tool(self.search_code), as_tool(self.read_file), edits, *self._more)

    def offer(self, *more: Tool | Callable[..., Any]) -> Self:
        """Give the model further tools, such as one that runs tests.  Raises `ValueError` for a name that is taken."""
        for tool in map(as_tool, more):
            if tool.name in [t.name for t in self.tools()]:
                raise ValueError(f"the tool {tool.name!r} is offered already")
            self._more = (*self._more, tool)
        return self

    def search_code(self, query: str) -> str:
        """Find lines that contain this text in the repository."""
        text, hits = search(self.root, query)
        for hit in hits:
            self._show(hit.path, [(hit.number, hit.line)])
        return text

    def read_file(self, path: str, start_line: int = 1, end_line: int = 0) -> str:
        """Read numbered lines of a file; end_line 0 is its end."""
        lines = lines_of(decode(self._load(path))[0])
        if not lines:
            return "(empty file)"
        start, end = max(start_line, 1), end_line if end_line > 0 else len(lines)
        if start > len(lines) or end < start:
            raise ToolError("invalid_arguments", f"{path} has {len(lines)} lines, no lines {start_line} to {end_line}")
        end = min(end, len(lines))
        last = min(end, start + MAX_LINES - 1)
        self._show(path, enumerate(lines[start - 1 : last], start))
        return numbered(lines, start, last) + (f"\n... {end - last} more lines" if end > last else "")

    def apply_edit(self, path: str, start_line: int, end_line: int, replacement: str) -> str:
        """Replace lines start_line to end_line (inclusive) of a file.

        `end_line = start_line - 1` inserts, an empty replacement deletes.  Refused, with the file unchanged,
        where a Python file would no longer compile.
        """
        return self._edit(path, start_line, end_line, replacement, write=True)

    def preview_edit(self, path: str, start_line: int, end_line: int, replacement: str) -> str:
        """Return what `apply_edit` would, and change nothing."""
        return "dry run, nothing written:\n" + self._edit(path, start_line, end_line, replacement, write=False)

    def _load(self, path: str, *, fresh: bool = False) -> bytes:
        """Return the bytes of a text file, of a `fresh` one none; `ToolError` without the file."""
        try:
            data = read_bytes(self.root, path)
        except OSError as error:
            if fresh and isinstance(error, FileNotFoundError):
                return b""
            near = ", ".join(self._near(path)) or "no file at all"
            raise ToolError("invalid_arguments", f"no file {path!r}; there is {near}") from None
        if b"\0" in data:
            raise ToolError("invalid_arguments", f"{path} is not text")
        return data

    def _near(self, path: str) -> list[str]:
        """Return up to five files that a wrong path may mean: of that name, else similar."""
        known = list(itertools.islice(files(self.root), _COMPARED))
        last = path.rstrip("/").rsplit("/", 1)[-1]
        same = [name for name in known if name.rsplit("/", 1)[-1] == last]
        return (same or difflib.get_close_matches(path[:200], known, 5, 0.4) or known)[:5]

    def _edit(self, path: str, start: int, end: int, replacement: str, *, write: bool) -> str:
        with self._lock:
            data = self._load(path, fresh=(start, end) == (1, 0))
            text, encoding = decode(data)
            lines = lines_of(text)
            if not 1 <= start <= end + 1 <= len(lines) + 1:
                count = f"{path} has {len(lines)} lines"
                raise ToolError("invalid_arguments", f"{count}, lines {start} to {end} cannot be replaced")
            self._refuse_old_numbers(path, lines, start, max(start, end))
            new = lines_of(replacement.replace("\r\n", "\n"))
            after = joined(lines[: start - 1], new, lines[end:], text)
            written = _encoded(path, after, encoding)
            if written == data and (data or new):
                raise ToolError("runtime", f"not changed: lines {start} to {end} of {path} are already so")
            problem = syntax_error(after, path)
            if problem and not syntax_error(text, path):
                raise ToolError("runtime", f"not changed, it would not compile: {problem}")
            now = lines_of(after)
            first, last = max(1, start - _AROUND), min(len(now), start - 1 + len(new) + _AROUND)
            if write:
                write_bytes(self.root, path, written)
                self._show(path, enumerate(now[first - 1 : last], first))
        text = numbered(now, first, last) or "(empty file)"
        text = f"{path}: {len(new)} lines written" if last - first >= MAX_LINES else text
        return text + (f"\nstill does not compile: {problem}" if problem else "")

    def _show(self, path: str, lines: Iterable[tuple[int, str]]) -> None:
        with self._lock:
            self._shown.setdefault(_plain(path), {}).update((number, bare(line)) for number, line in lines)

    def _refuse_old_numbers(self, path: str, lines: list[str], first: int, last: int) -> None:
        """Refuse an edit of lines that are not as they were shown; the second time it is meant."""
        known = self._shown.get(_plain(path), {})
        now = {n: bare(lines[n - 1]) for n in range(first, min(last, len(lines)) + 1)}
        if any(known.get(n, line) != line for n, line in now.items()):
            del self._shown[_plain(path)]
            span = f"line {first} is" if len(now) == 1 else f"lines {first} to {max(now)} are"
            problem = f"{span} not as you read, {path} has changed since: read it again"
            raise ToolError("invalid_arguments", f"not changed: {problem}; the same call again is taken as meant")


def _encoded(path: str, text: str, encoding: str) -> bytes:
    """Return the new contents of a file; `ToolError` where it cannot have them."""
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError as error:
        problem = f"{path} is {encoding}, which has no {error.object[error.start]!r}"
        raise ToolError("invalid_arguments", f"not changed: {problem}") from None
    if b"\0" in data:
        raise ToolError("invalid_arguments", f"not changed: a NUL character would make {path} no text")
    if len(data) > MAX_BYTES:
        raise ToolError("invalid_arguments", f"not changed: {path} would have {len(data)} bytes (at most {MAX_BYTES})")
    return data


def _plain(path: str) -> str:
    """Return one name for one file, however the path was written."""
    return "/".join(part for part in path.replace("\\", "/").split("/") if part not in ("", "."))
