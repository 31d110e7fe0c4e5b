"""Words that error messages share: the line that installs an optional part, and the nearest name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal

#: What the package is called where it is installed.
DISTRIBUTION = "rlm-loop-toolkit"

#: The optional parts that messages name; `pyproject.toml` says what each brings.
Extra = Literal[
    "hub",
    "inspect",
    "jupyter",
    "kernel",
    "litellm",
    "local",
    "localise",
    "mcp",
    "otel",
    "restricted",
    "studies",
    "suites",
    "swebench",
]


def install_line(extra: Extra) -> str:
    """The command that installs an optional part, and where it is typed: the package is on no index yet."""
    return f'pip install -e ".[{extra}]" in your clone of rlm_loop'


def nearest(wrong: str, known: Iterable[str]) -> str:
    """Return `"; did you mean 'steps'?"`, or nothing where no known name is near."""
    near = get_close_matches(wrong, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
