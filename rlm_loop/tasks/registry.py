"""Suites by name.  A suite's module is imported, and what it needs looked for, only when it is asked for."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from rlm_loop.errors import nearest
from rlm_loop.plugins import offered, plugin
from rlm_loop.tasks.base import Suite
from rlm_loop.tasks.jsonl import read_suite

#: Each is made by the function of its name in the module of its name.
_OURS = ("computation", "frames", "function-repair", "humaneval", "humaneval-repair", "package_bugs")
_LONG = ("needle", "needles", "chain", "records", "identifiers", "pairs", "classify")


def list_suites() -> tuple[str, ...]:
    """Return the names that `get_suite` knows, those of other packages included.

    Those of long contexts may be followed by a size, as in `@8k` or `@10M`.
    """
    return (*_OURS, *(f"long_context/{family}" for family in _LONG), *offered("suites"))


def get_suite(name: str, **options: Any) -> Suite:
    """The suite of this name, of a split of it (`frames/test`), or of a JSONL file (`mine.jsonl`, `mine.jsonl/test`);
    `long_context/needle@100k` has the size of its texts in characters (see `tasks.long_context`);
    `swebench:lite`, `swebench:FILE.jsonl` are instances of SWE-bench's schema (see `tasks.swebench`).

    `options` go to the suite's function, such as `seed` of `long_context`.  Raises `ValueError` for an unknown name,
    with the known ones, and `SuiteFileError` (a `ValueError`) for a file that cannot be used.
    """
    whole, _, split = name.rpartition("/")
    if split == "dev" or split == "test":
        return _suite(whole, options).split(split)
    return _suite(name, options)


def _suite(name: str, options: dict[str, Any]) -> Suite:
    if name.startswith("swebench:"):
        return import_module("rlm_loop.tasks.swebench").swebench(name.removeprefix("swebench:"), **options)
    if name.endswith(".jsonl"):
        if options:
            raise ValueError(f"a suite from a file takes no options, but got {', '.join(options)}")
        return read_suite(name)
    if re.match(r"long[_-]context([/@]|$)", name):
        return import_module("rlm_loop.tasks.long_context").from_name(name, **options)
    function = name.replace("-", "_")
    if function in (ours.replace("-", "_") for ours in _OURS):
        return getattr(import_module(f"rlm_loop.tasks.{function}"), function)(**options)
    if (made := plugin("suites", name)) is not None:
        return made(**options)
    hint = nearest(name, list_suites()) or ";"
    raise ValueError(
        f"there is no suite {name!r}{hint} known are {', '.join(list_suites())}, or a file that ends in .jsonl"
    )
