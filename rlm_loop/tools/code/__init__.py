"""Search, read and edit the files below a folder, in few tokens and never outside of it.

What a caller does wrong is a `ToolError` of one line.  Lines are what `\\n` ends; line endings, a missing final newline
and bytes that are no UTF-8 survive an edit.
"""

from __future__ import annotations

from rlm_loop.tools.code.paths import MAX_BYTES, MAX_HITS, files, write_bytes
from rlm_loop.tools.code.toolbox import MAX_LINES, CodeTools

__all__ = ["MAX_BYTES", "MAX_HITS", "MAX_LINES", "CodeTools", "files", "write_bytes"]
