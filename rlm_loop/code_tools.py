"""Search, read and edit the files below a folder, in few tokens and never outside of it.

What a caller does wrong is a `ToolError` of one line.  Lines are what `\\n` ends; encoding, line endings and a
missing final newline survive an edit.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from rlm_loop.tool_function import ToolError

MAX_HITS = 20
MAX_LINES = 200
_MAX_TEXT = 200  # characters of a line shown by a search
_MAX_SEARCHED = 5_000_000  # bytes; larger files are data, not code
_AROUND = 2  # lines shown before and after an edit
_SKIPPED = {".git", "__pycache__", ".pytest_cache"}


def search(root: Path, query: str) -> str:
    """Lines that hold `query` as plain text (where there are none, ignoring case), as `file:line: text`."""
    if not query.strip():
        raise ToolError("invalid_arguments", "query is empty")
    sources = [(name, _decode(data, name)[0]) for name, data in _text_files(root)]
    for fold in (False, True):
        wanted = query.casefold() if fold else query
        hits: list[str] = []
        for name, text in sources:
            if wanted in (text.casefold() if fold else text):
                for number, line in enumerate(text.split("\n"), 1):
                    if wanted in (line.casefold() if fold else line):
                        hits.append(f"{name}:{number}: {line.strip()[:_MAX_TEXT]}")
        if hits:
            more = [f"... {len(hits) - MAX_HITS} more"] if len(hits) > MAX_HITS else []
            return "\n".join(hits[:MAX_HITS] + more)
    return f"no line holds {query!r} (plain text, one line)"


def read(root: Path, path: str, start_line: int = 1, end_line: int = 0) -> str:
    """Lines `start_line` to `end_line` (0: the last), each with its number, at most `MAX_LINES` of them."""
    text, _ = _decode(_load(root, path), path)
    lines = _lines(text)
    if not lines:
        return "(empty file)"
    start, end = max(start_line, 1), end_line if end_line > 0 else len(lines)
    if start > len(lines) or end < start:
        raise ToolError("invalid_arguments", f"{path} has {len(lines)} lines, no lines {start_line} to {end_line}")
    end = min(end, len(lines))
    shown = min(end, start + MAX_LINES - 1)
    rest = f"\n... {end - shown} more lines" if shown < end else ""
    return _numbered(lines, start, shown) + rest


def edit(root: Path, path: str, start_line: int, end_line: int, replacement: str) -> str:
    """Replace lines `start_line` to `end_line`, both included; returns the lines around the edit.

    `end_line = start_line - 1` inserts before `start_line`, an empty replacement deletes; lines 1 to 0 of a file
    that does not exist make it.  A Python file that compiled and no longer would is left as it is.
    """
    target = inside(root, path)
    fresh = not target.exists() and (start_line, end_line) == (1, 0)
    before = b"" if fresh else _load(root, path)
    text, encoding = _decode(before, path)
    lines = _lines(text)
    if not 1 <= start_line <= end_line + 1 <= len(lines) + 1:
        raise ToolError(
            "invalid_arguments", f"{path} has {len(lines)} lines, lines {start_line} to {end_line} cannot be replaced"
        )
    new = _lines(replacement.replace("\r\n", "\n"))
    after_text = _joined(lines[: start_line - 1], new, lines[end_line:], text)
    try:
        after = after_text.encode(encoding)
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        raise ToolError("invalid_arguments", f"not changed: {path} is {encoding}, which has no {bad!r}") from None
    if after == before and not fresh:
        raise ToolError("runtime", f"not changed: lines {start_line} to {end_line} of {path} are already so")
    note = ""
    if path.endswith((".py", ".pyi")) and (problem := _syntax_error(after, path)):
        if not _syntax_error(before, path):
            raise ToolError("runtime", f"not changed, it would not compile: {problem}")
        note = f"\nstill does not compile: {problem}"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(after)
    now = _lines(after_text)
    first, last = max(1, start_line - _AROUND), min(len(now), start_line - 1 + len(new) + _AROUND)
    if last - first >= MAX_LINES:
        return f"{path}: {len(new)} lines written" + note
    return (_numbered(now, first, last) if now else "(empty file)") + note


def inside(root: Path, path: str) -> Path:
    """The file that a relative path means; outside of `root`, through a symlink or in `.git` is `denied`."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or "\0" in path:
        raise ToolError("invalid_arguments", f"{path!r} is not a file of the repository")
    if path.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:", path):
        raise ToolError("denied", f"{path!r} is not relative: give the path from the repository's top")
    if ".." in parts or parts[0].lower() == ".git":
        raise ToolError("denied", f"{path!r} is outside of the repository")
    target = root
    for part in parts:
        target /= part
        if target.is_symlink():
            raise ToolError("denied", f"{path!r} goes through a symbolic link")
    return target


def files(root: Path) -> Iterator[str]:
    """The files below `root`, sorted, without links, caches and git's own."""
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if name not in _SKIPPED)
        for name in sorted(names):
            full = Path(folder, name)
            if name not in _SKIPPED and full.is_file() and not full.is_symlink():
                yield full.relative_to(root).as_posix()


def _text_files(root: Path) -> Iterator[tuple[str, bytes]]:
    for name in files(root):
        full = root / name
        if full.stat().st_size <= _MAX_SEARCHED and b"\0" not in (data := full.read_bytes()):
            yield name, data


def _load(root: Path, path: str) -> bytes:
    target = inside(root, path)
    if not target.is_file():
        known = list(files(root))
        near = difflib.get_close_matches(path, known, 5, 0.4) or known[:5]
        raise ToolError("invalid_arguments", f"no file {path!r}; there is {', '.join(near) or 'no file at all'}")
    data = target.read_bytes()
    if b"\0" in data:
        raise ToolError("invalid_arguments", f"{path} is not text")
    return data


def _decode(data: bytes, path: str) -> tuple[str, str]:
    """The text and an encoding that gives the same bytes back."""
    try:
        declared = tokenize.detect_encoding(io.BytesIO(data).readline)[0] if path.endswith(".py") else "utf-8"
    except SyntaxError:
        declared = "utf-8"
    declared = "utf-8" if declared == "utf-8-sig" else declared  # the mark stays in the text as a character
    try:
        text = data.decode(declared)
        if text.encode(declared) == data:
            return text, declared
    except (UnicodeError, LookupError):
        pass
    return data.decode("latin-1"), "latin-1"


def _lines(text: str) -> list[str]:
    """Lines with their endings; unlike `str.splitlines`, only `\\n` ends a line, as in git and Python."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _joined(head: Sequence[str], new: Sequence[str], tail: Sequence[str], text: str) -> str:
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    lines = [
        *(line if line.endswith("\n") else line + newline for line in head),
        *(line.removesuffix("\n") + newline for line in new),
        *tail,
    ]
    joined = "".join(lines)
    if text and not text.endswith("\n"):
        joined = joined.removesuffix("\n").removesuffix("\r")
    return joined


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(f"{n}: {lines[n - 1].rstrip(chr(13) + chr(10))}" for n in range(first, last + 1))


def _syntax_error(source: bytes, path: str) -> str:
    """One line of what is wrong with Python source, or nothing.  It is compiled and not run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape is no error
            compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f": {error.text.strip()[:_MAX_TEXT]}" if error.text and error.text.strip() else ""
        return f"line {error.lineno}: {error.msg}{line}"
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
