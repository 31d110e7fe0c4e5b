"""How an optional part of the package is installed: one place, so that no message names what is not there."""

from __future__ import annotations

from typing import Literal

#: What the package is called where it is installed.
DISTRIBUTION = "rlm-loop-toolkit"

#: The optional parts that messages name; `pyproject.toml` says what each brings.
Extra = Literal[
    "atif",
    "dask",
    "hub",
    "inspect",
    "jupyter",
    "kernel",
    "litellm",
    "local",
    "localise",
    "mcp",
    "otel",
    "parquet",
    "restricted",
    "studies",
    "suites",
    "swebench",
    "tokenizers",
]


def install_line(extra: Extra) -> str:
    """The command that installs an optional part, and where it is typed: the package is on no index yet."""
    return f'pip install -e ".[{extra}]" in your clone of rlm_loop'
