"""Tools for the files of one folder; their help is part of every prompt and stays short."""

from __future__ import annotations

import difflib
import itertools
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from rlm_loop.tools.code.paths import bytes_of, files, read_text, search, write_bytes
from rlm_loop.tools.function import Tool, ToolError, as_tool, tool
from rlm_loop.tools.python_source import compiled

MAX_LINES = 200
_AROUND = 2  # lines shown before and after an edit
_COMPARED = 5_000  # names looked at for one that was meant; more would take seconds
_MAX_ERROR = 200


class CodeTools:
    """`search_code`, `read_file` and `apply_edit` for the files below a folder, and others on request.

    Raises `NotADirectoryError` for a `root` that is no folder.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            raise NotADirectoryError(f"root must be a folder, got {str(root)!r}")
        self._lock = threading.Lock()  # edits may come from several threads of a cell
        self._more: tuple[Tool, ...] = ()

    def tools(self) -> tuple[Tool, ...]:
        """Return the three tools, and what was asked for by `offer`."""
        edits = tool(self.apply_edit, dry_run=self.preview_edit)
        return (as_tool(self.search_code), as_tool(self.read_file), edits, *self._more)

    def offer(self, *more: Tool | Callable[..., Any]) -> Self:
        """Give the model further tools, such as one that runs tests."""
        self._more = (*self._more, *map(as_tool, more))
        return self

    def search_code(self, query: str) -> str:
        """Find lines that contain this text in the repository."""
        return search(self.root, query)

    def read_file(self, path: str, start_line: int = 1, end_line: int = 0) -> str:
        """Read numbered lines of a file; end_line 0 is its end."""
        lines = _lines_of(self._load(path))
        if not lines:
            return "(empty file)"
        start, end = max(start_line, 1), end_line if end_line > 0 else len(lines)
        if start > len(lines) or end < start:
            raise ToolError("invalid_arguments", f"{path} has {len(lines)} lines, no lines {start_line} to {end_line}")
        return _numbered(lines, start, min(end, len(lines)))

    def apply_edit(self, path: str, start_line: int, end_line: int, replacement: str) -> str:
        """Replace lines start_line to end_line (inclusive) of a file.

        `end_line = start_line - 1` inserts, an empty replacement deletes.  Refused, with the file unchanged,
        where a Python file would no longer compile.
        """
        return self._edit(path, start_line, end_line, replacement, write=True)

    def preview_edit(self, path: str, start_line: int, end_line: int, replacement: str) -> str:
        """Return what `apply_edit` would, and change nothing."""
        return "dry run, nothing written:\n" + self._edit(path, start_line, end_line, replacement, write=False)

    def _load(self, path: str, *, fresh: bool = False) -> str:
        """Return the text of a file, of a `fresh` one none; `ToolError` without the file."""
        try:
            text = read_text(self.root, path)
        except OSError as error:
            if fresh and isinstance(error, FileNotFoundError):
                return ""
            near = ", ".join(self._near(path)) or "no file at all"
            raise ToolError("invalid_arguments", f"no file {path!r}; there is {near}") from None
        if "\0" in text:
            raise ToolError("invalid_arguments", f"{path} is not text")
        return text

    def _near(self, path: str) -> list[str]:
        """Return up to five files that a wrong path may mean: of that name, else similar."""
        known = list(itertools.islice(files(self.root), _COMPARED))
        last = path.rstrip("/").rsplit("/", 1)[-1]
        same = [name for name in known if name.rsplit("/", 1)[-1] == last]
        return (same or difflib.get_close_matches(path[:200], known, 5, 0.4) or known)[:5]

    def _edit(self, path: str, start: int, end: int, replacement: str, *, write: bool) -> str:
        with self._lock:
            text = self._load(path, fresh=(start, end) == (1, 0))
            lines = _lines_of(text)
            if not 1 <= start <= end + 1 <= len(lines) + 1:
                count = f"{path} has {len(lines)} lines"
                raise ToolError("invalid_arguments", f"{count}, lines {start} to {end} cannot be replaced")
            new = _lines_of(replacement.replace("\r\n", "\n"))
            after = _joined(lines[: start - 1], new, lines[end:], text)
            if after == text and (text or new):
                raise ToolError("runtime", f"not changed: lines {start} to {end} of {path} are already so")
            problem = _syntax_error(after, path)
            if problem and not _syntax_error(text, path):
                raise ToolError("runtime", f"not changed, it would not compile: {problem}")
            if write:
                write_bytes(self.root, path, bytes_of(after))
        now = _lines_of(after)
        shown = _numbered(now, max(1, start - _AROUND), min(len(now), start - 1 + len(new) + _AROUND))
        return shown or "(empty file)"


def _lines_of(text: str) -> list[str]:
    """Return lines with their endings; unlike `str.splitlines`, only `\n` ends a line, as in git and Python."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _numbered(lines: Sequence[str], first: int, end: int) -> str:
    """Return lines, counted from 1, each with its number: at most `MAX_LINES`, and how many more there are."""
    last = min(end, first + MAX_LINES - 1)
    shown = [f"{n}: {lines[n - 1]}".rstrip("\r\n") for n in range(first, last + 1)]
    return "\n".join([*shown, f"... {end - last} more lines"] if end > last else shown)


def _joined(head: Sequence[str], new: Sequence[str], tail: Sequence[str], text: str) -> str:
    """Join lines again, with the endings that `text` has."""
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    ended = [line if line.endswith("\n") else line + newline for line in head]
    after = "".join([*ended, *(line.removesuffix("\n") + newline for line in new), *tail])
    if text and not text.endswith("\n"):
        after = after.removesuffix("\n").removesuffix("\r")
    return after


def _syntax_error(source: str, path: str) -> str:
    """Return the error of Python source in one line, or nothing."""
    if not path.endswith((".py", ".pyi")):
        return ""
    try:
        compiled(source.removeprefix("\ufeff"), name=path)  # of a text: coding lines are void
    except SyntaxError as error:
        line = f": {error.text.strip()[:_MAX_ERROR]}" if error.text and error.text.strip() else ""
        return f"line {error.lineno}: {error.msg}{line}"
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
