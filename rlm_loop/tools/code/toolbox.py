"""The tools that a model is given for the files of one folder, all from one place.

Whatever a strategy speaks, it acts through these functions.  Their help is part of every prompt: it stays short.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from rlm_loop.tools.code.editing import FileEdit, LineRange, open_region, replaced
from rlm_loop.tools.code.paths import write_bytes
from rlm_loop.tools.code.reading import NoFile, list_matching, open_page
from rlm_loop.tools.code.searching import find
from rlm_loop.tools.code.shown import ShownLines, Stale
from rlm_loop.tools.function import Tool, ToolError, as_tool

_T = TypeVar("_T")


class CodeTools:
    """`search_code`, `read_file` and `apply_edit` for the files below `root`, and on request `list_files` and others.

    It remembers what it has shown of each file: an edit by line numbers that are out of date is noticed (see `shown`).
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._shown = ShownLines()
        self._lock = threading.RLock()  # calls may come from several threads of a cell
        self._more: tuple[Tool, ...] = ()

    def tools(self) -> tuple[Tool, ...]:
        """What a model is given: the three, and what was asked for by `offer`."""
        edits = replace(as_tool(self.apply_edit), dry_run=self.preview_edit)
        return (as_tool(self.search_code), as_tool(self.read_file), edits, *self._more)

    def offer(self, *more: str | Tool | Callable[..., Any]) -> Self:
        """Give the model further tools: `"list_files"`, or a tool made elsewhere (running tests).

        Raises `ValueError` for a name that is not known or taken.
        """
        for wanted in more:
            if isinstance(wanted, str) and wanted != "list_files":
                raise ValueError(f'no tool {wanted!r}: offer "list_files", or a function')
            made = as_tool(self.list_files if isinstance(wanted, str) else wanted)
            if made.name in [t.name for t in self.tools()]:
                raise ValueError(f"the tool {made.name!r} is offered already")
            self._more = (*self._more, made)
        return self

    def search_code(self, query: str) -> str:
        """Find lines that contain this text in the repository."""
        found = find(self.root, query)
        with self._lock:
            for hit in found.hits:
                self._shown.hit(hit.path, hit.number, hit.line)
        return found.text

    def read_file(self, path: str, start_line: int = 1, end_line: int = 0) -> str:
        """Read numbered lines of a file; end_line 0 is its end."""
        with self._lock:
            page = self._known(path, functools.partial(open_page, self.root, path, start_line, end_line))
            self._shown.read(path, page.data, page.lines, page.first, page.last)
        return page.text

    def apply_edit(self, path: str, start_line: int, end_line: int, replacement: str) -> str:
        """Replace lines start_line to end_line (inclusive) of a file.

        `end_line = start_line - 1` inserts, an empty replacement deletes.  Refused, with the file unchanged,
        where a Python file would no longer compile.
        """
        with self._lock:
            region, change, stale = self._change(path, start_line, end_line, replacement)
            write_bytes(self.root, path, change.data)
            self._shown.written(region, change)
        return change.shown + (f"\nnote: {stale.why}" if stale else "")

    def preview_edit(self, path: str, start_line: int, end_line: int, replacement: str) -> str:
        """Say what `apply_edit` would, and change nothing."""
        with self._lock:
            _, change, stale = self._change(path, start_line, end_line, replacement)
        return "dry run, nothing written:\n" + change.shown + (f"\nnote: {stale.why}" if stale else "")

    def list_files(self, pattern: str) -> str:
        """List files that match a glob such as src/**/*.py."""
        return list_matching(self.root, pattern)

    def _change(self, path: str, start: int, end: int, replacement: str) -> tuple[LineRange, FileEdit, Stale | None]:
        region = self._known(path, functools.partial(open_region, self.root, path, start, end))
        stale = self._shown.stale(region, replacement)
        if stale is not None and stale.wrong:
            raise ToolError("invalid_arguments", f"not changed: {stale.why}; the same call again is taken as meant")
        try:
            return region, replaced(region, replacement), stale
        except ToolError as error:
            if stale is None:
                raise
            raise ToolError(error.kind, f"{error.message}; {stale.why}") from None

    def _known(self, path: str, act: Callable[[], _T]) -> _T:
        """Do it; where a file that was shown is not there any more, say that."""
        try:
            return act()
        except NoFile as error:
            if not self._shown.forget(path):
                raise
            raise NoFile(error.kind, f"{path} is gone: deleted or renamed since you read it") from None
