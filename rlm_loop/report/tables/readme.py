"""Results inside a text that is otherwise written by hand."""

from __future__ import annotations

import re
from pathlib import Path


def write_between(file: str | Path, name: str, text: str) -> None:
    """Put `text` (Markdown) between the marks of that name in a file, in place of what stood there.

    The marks are the lines `<!-- name: written by ... -->` and `<!-- end of name -->`.  Everything else in the file
    stays as it is.  Raises `ValueError` where a mark is missing.
    """
    readme, word = Path(file), re.escape(name)
    marks = rf"(<!-- {word}: written by [^\n]* -->\n).*?(<!-- end of {word} -->)"
    new, found = re.subn(marks, lambda m: f"{m[1]}\n{text}\n\n{m[2]}", readme.read_text("utf-8"), count=1, flags=re.S)
    if not found:
        raise ValueError(
            f"{readme} has no marks for {name!r}: put <!-- {name}: written by ... --> and <!-- end of {name} --> there"
        )
    readme.write_text(new, "utf-8")
