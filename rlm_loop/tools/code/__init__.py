"""Search, read, edit and list the files below a folder, in few tokens and never outside of it.

What a caller does wrong is a `ToolError` of one line.  Lines are what `\\n` ends; encoding, line endings and a
missing final newline survive an edit.  `CodeTools` is what a workspace gives to a model: the same functions, with a
memory of what was shown, so that line numbers that are out of date are noticed.
"""

from __future__ import annotations

from rlm_loop.tools.code.editing import edit
from rlm_loop.tools.code.paths import MAX_BYTES, files, inside
from rlm_loop.tools.code.reading import MAX_LINES, MAX_NAMES, list_matching, read
from rlm_loop.tools.code.searching import MAX_HITS, search
from rlm_loop.tools.code.toolbox import CodeTools

__all__ = [
    "MAX_BYTES",
    "MAX_HITS",
    "MAX_LINES",
    "MAX_NAMES",
    "CodeTools",
    "edit",
    "files",
    "inside",
    "list_matching",
    "read",
    "search",
]
