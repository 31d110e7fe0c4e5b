"""Parts of error messages: the line that installs an optional part, the nearest name, and a short traceback."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

#: What the package is called where it is installed.
DISTRIBUTION = "rlm-loop-toolkit"


class ShownBriefly:
    """Mix-in of errors whose message says what to do: IPython shows the user's own frame and the last line."""

    def _render_traceback_(self: BaseException) -> list[str]:  # type: ignore[misc]
        return brief_traceback(self)


def brief_traceback(error: BaseException) -> list[str]:
    """Return the lines of an error: the user's own frame, and its type and message."""
    others = str(Path(__file__).parent), "/IPython/", "site-packages"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(part in frame.filename for part in others)]
    where = [f"line {own[-1].lineno} of {own[-1].name}: {own[-1].line}"] if own else []
    return [*where, f"{type(error).__name__}: {error}"]


def install_line(extra: str) -> str:
    """The command that installs an optional part, and where it is typed: the package is on no index yet."""
    return f'pip install -e ".[{extra}]" in your clone of rlm_loop'


def nearest(wrong: str, known: Iterable[str]) -> str:
    """Return `"; did you mean 'steps'?"`, or nothing where no known name is near."""
    near = get_close_matches(wrong, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
