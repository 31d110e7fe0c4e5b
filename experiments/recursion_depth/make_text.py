"""Makes the text that tasks with long contexts are put into: the documentation strings of the Python that runs this.

    python experiments/recursion_depth/make_text.py

It was run once, with Python 3.11.7, and its result is a file of the package: what a library says differs between
versions, and tasks must not.  Python's documentation strings are under the licence of the Python Software Foundation.
"""

from __future__ import annotations

import inspect
import json
import lzma
import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from rlm_loop.tasks.long_context.text import DATA, clean, read

#: Topic to the files and packages of the standard library that are about it.
TOPICS: Mapping[str, tuple[str, ...]] = {
    "e-mail": ("email", "mailbox.py", "smtplib.py", "imaplib.py", "poplib.py"),
    "unit tests": ("unittest", "doctest.py"),
    "numbers": ("_pydecimal.py", "fractions.py", "statistics.py", "random.py", "numbers.py"),
    "archives": ("zipfile.py", "zipfile", "tarfile.py", "gzip.py", "bz2.py", "lzma.py"),
    "XML and HTML": ("xml", "html"),
}
SHORTEST, LONGEST = 45, 120

_SKIPPED = {
    *("__pycache__", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "dist-packages"),
    *("test", "tests"),
}
#: Comments and strings, so that a quote inside of one is no beginning of another; `inside` is what triple quotes hold.
_TOKENS = re.compile(
    r'''#[^\n]*|[rRuU]?(?P<mark>"""|\'\'\')(?P<inside>(?:[^\\]|\\.)*?)(?P=mark)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*\'''',
    re.DOTALL,
)


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


def pieces() -> Mapping[str, tuple[str, ...]]:
    """Topic to the first paragraphs of its documentation strings, each on one line, none in two topics."""
    home = Path(sysconfig.get_path("stdlib"))
    found: dict[str, list[str]] = {topic: [] for topic in TOPICS}
    for topic, places in TOPICS.items():
        for place in places:
            path = home / place
            files = sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []
            for file in files:
                if "test" not in file.relative_to(home).parts[1:]:
                    found[topic] += [_paragraph(text) for text in docstrings(file)]
    owners = Counter(text for texts in found.values() for text in set(texts))
    return {
        topic: tuple(t for t in dict.fromkeys(texts) if SHORTEST <= len(t) <= LONGEST and t.isascii() and owners[t] < 2)
        for topic, texts in found.items()
    }


def _paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def main() -> None:
    python = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    parts = dict.fromkeys(f"{text}\n\n" for path in sources() for text in docstrings(path))
    made = {"name": f"documentation strings of Python {python}", "text": "".join(clean(parts)), "pieces": pieces()}
    DATA.write_bytes(lzma.compress(json.dumps(made).encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{DATA.name}: {DATA.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
