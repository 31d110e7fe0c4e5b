"""Real text that is on every machine: Python's own sources, their documentation strings, licences, or a folder.

Which text it was is said by its hash, since it differs between Python versions.  Left out are lines with a character
beyond Latin-1 (so that a character of a long text takes one byte of memory), and lines that could be taken for one
that a task puts in.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: What only a task's own lines may contain.
MARKERS = (
    *("secret code of", "password of", "access code of", "go on with note", "the answer is"),
    *(": city=", "Badge ", " lives in ", "Entry #"),
)
KINDS = ("stdlib", "docstrings", "licences")

_SKIPPED = {
    *("__pycache__", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "dist-packages"),
    *("test", "tests"),
}
#: Comments and strings, so that a quote inside of one is no beginning of another; `inside` is what triple quotes hold.
_TOKENS = re.compile(
    r'''#[^\n]*|[rRuU]?(?P<mark>"""|\'\'\')(?P<inside>(?:[^\\]|\\.)*?)(?P=mark)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*\'''',
    re.DOTALL,
)
_LICENCES = ("LICENSE", "LICENCE", "COPYING", "NOTICE")


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
def real_text(kind: str = "stdlib") -> RealText:
    """`stdlib`, `docstrings`, `licences`, or the text files of a folder.  Raises `ValueError` where there is none."""
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    if kind == "stdlib":
        name, parts = f"sources of {python}", (_module(path) for path in sources())
    elif kind == "docstrings":
        name, parts = f"documentation strings of {python}", (f"{t}\n\n" for path in sources() for t in docstrings(path))
    elif kind == "licences":
        name, parts = "licence texts", (read(path) for path in _licences())
    elif Path(kind).expanduser().is_dir():
        folder = Path(kind).expanduser()
        name, parts = f"folder {folder.resolve().name}", (read(path) for path in _files(folder))
    else:
        raise ValueError(f"there is no text {kind!r}; choose {', '.join(KINDS)}, or give a folder that exists")
    text = "".join(_clean(dict.fromkeys(parts)))
    if not text:
        raise ValueError(f"there is no text in {kind!r}; choose {', '.join(KINDS)}, or a folder with text files")
    return RealText(name, text)


def sources() -> list[Path]:
    """The modules of the standard library, without its tests (not every machine has them) and build settings."""
    home = Path(sysconfig.get_path("stdlib"))
    found = [
        path
        for path in home.rglob("*.py")
        if not _SKIPPED & set(path.relative_to(home).parts) and not path.name.startswith("_sysconfigdata")
    ]
    return sorted(found, key=lambda path: path.relative_to(home).as_posix())


def docstrings(path: Path) -> Iterator[str]:
    """The documentation strings of a module as they are written, without their indent.

    Found by their place: a string in triple quotes that follows the colon of a `def` or `class`, or begins the file.
    (To parse the whole library takes ten times as long.)
    """
    source = read(path)
    code, done = "", 0  # the code since the last string
    for found in _TOKENS.finditer(source):
        code += source[done : found.start()]
        done = found.end()
        if found[0].startswith("#"):
            continue
        if (inside := found["inside"]) is not None and _opens_a_body(code):
            yield inspect.cleandoc(inside)
        code = "."


def _opens_a_body(code: str) -> bool:
    before = code.rstrip()
    return not before or (before.endswith(":") and "\n" in code[len(before) :])


def read(path: Path) -> str:
    """A file as text, line ends as `\\n`; empty where it cannot be read or is not text."""
    try:
        raw = path.read_bytes()
    except OSError:
        return ""
    return "" if b"\0" in raw else raw.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _module(path: Path) -> str:
    """A module's source without a first line that says where this machine's Python is."""
    text = read(path)
    return text.partition("\n")[2] if text.startswith("#!") else text


def _files(folder: Path) -> list[Path]:
    found = [p for p in folder.rglob("*") if p.is_file() and not any(x.startswith(".") for x in _below(p, folder))]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def _below(path: Path, folder: Path) -> tuple[str, ...]:
    return path.relative_to(folder).parts


def _licences() -> Iterator[Path]:
    yield Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    shared = Path("/usr/share/common-licenses")
    yield from sorted(shared.iterdir()) if shared.is_dir() else []
    packages = sorted(importlib.metadata.distributions(), key=lambda d: str(d.metadata["Name"]).lower())
    for package in packages:
        for file in sorted(package.files or [], key=str):
            if file.name.upper().startswith(_LICENCES) and file.suffix in ("", ".txt", ".md", ".rst"):
                yield Path(str(package.locate_file(file)))


def _clean(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        if part and (not part.isascii() or any(marker in part for marker in MARKERS)):
            kept = [line for line in part.split("\n") if _harmless(line)]
            part = "\n".join(kept)
        if part:
            yield part if part.endswith("\n") else part + "\n"


def _harmless(line: str) -> bool:
    return (line.isascii() or max(line) <= "\xff") and not any(marker in line for marker in MARKERS)
