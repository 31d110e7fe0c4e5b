"""Real text that comes with the package: documentation strings of Python 3.11.7; or the text files of a folder.

The text is a file, and not that of the Python at hand, since what a library says differs between versions and the
tasks must not.  Which text it was is said by its hash.  Left out are lines with a character beyond Latin-1 (so that a
character of a long text takes one byte of memory), and lines that could be taken for one that a task puts in.
"""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: What only a task's own lines may contain.
MARKERS = (
    *("secret code of", "password of", "access code of", "go on with note", "the answer is"),
    *(": city=", "Badge ", " lives in ", "Entry #"),
)
DOCSTRINGS = "docstrings"
DATA = Path(__file__).parent.parent / "data" / "python_docstrings.json.xz"


@dataclass(frozen=True)
class RealText:
    """A text to take windows from.  `name` says what it is; it ends at the end of a line."""

    name: str
    text: str = field(repr=False)

    @functools.cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()

    @property
    def label(self) -> str:
        """One line: what it is, its size and the start of its hash."""
        return f"{self.name}, {len(self.text):,} characters, sha256 {self.sha256[:16]}"

    def window(self, start: int, length: int) -> str:
        """`length` characters from the line in which character `start` is; past the end it begins again."""
        begin = self.text.rfind("\n", 0, start) + 1
        found = self.text[begin : begin + length]
        while len(found) < length:
            found += self.text[: length - len(found)]
        return found


@functools.lru_cache(maxsize=4)
def real_text(kind: str = DOCSTRINGS) -> RealText:
    """`docstrings`, or the text files of a folder.  Raises `ValueError` where there is none."""
    if kind == DOCSTRINGS:
        return RealText(str(_data()["name"]), str(_data()["text"]))
    folder = Path(kind).expanduser()
    if not folder.is_dir():
        raise ValueError(f"there is no text {kind!r}; choose {DOCSTRINGS!r}, or give a folder that exists")
    text = "".join(clean(dict.fromkeys(read(path) for path in _files(folder))))
    if not text:
        raise ValueError(f"there is no text in {kind!r}: give a folder with text files")
    return RealText(f"folder {folder.resolve().name}", text)


def pieces() -> Mapping[str, Sequence[str]]:
    """Topic to the first paragraphs of documentation strings about it, each on one line, none in two topics."""
    return _data()["pieces"]


@functools.cache
def _data() -> Mapping[str, Any]:
    return json.loads(lzma.decompress(DATA.read_bytes()))


def read(path: Path) -> str:
    """A file as text, line ends as `\\n`; empty where it cannot be read or is not text."""
    try:
        raw = path.read_bytes()
    except OSError:
        return ""
    return "" if b"\0" in raw else raw.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _files(folder: Path) -> list[Path]:
    found = [p for p in folder.rglob("*") if p.is_file() and not any(x.startswith(".") for x in _below(p, folder))]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def _below(path: Path, folder: Path) -> tuple[str, ...]:
    return path.relative_to(folder).parts


def clean(parts: Iterable[str]) -> Iterator[str]:
    """The parts without lines that no text may hold."""
    for part in parts:
        if part and (not part.isascii() or any(marker in part for marker in MARKERS)):
            kept = [line for line in part.split("\n") if _harmless(line)]
            part = "\n".join(kept)
        if part:
            yield part if part.endswith("\n") else part + "\n"


def _harmless(line: str) -> bool:
    return (line.isascii() or max(line) <= "\xff") and not any(marker in line for marker in MARKERS)
