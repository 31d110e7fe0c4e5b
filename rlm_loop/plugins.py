"""Suites, models and executors of other packages, found by entry points and imported when they are asked for.

A package offers them in its `pyproject.toml`:

    [project.entry-points."rlm_loop.suites"]
    mine = "my_package:my_suite"        # a function that returns a Suite; options of get_suite go to it

The groups are `rlm_loop.suites`, `rlm_loop.models` (a function of what follows `mine/` in a model's name, returning a
`Model`) and `rlm_loop.executors` (a function without arguments that returns a `concurrent.futures.Executor`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal

Group = Literal["suites", "models", "executors"]


@functools.cache
def offered(group: Group) -> Mapping[str, Any]:
    """Return the entry points that installed packages offer in a group, by name."""
    from importlib.metadata import entry_points  # here, since `import rlm_loop` needs none

    return {point.name: point for point in sorted(entry_points(group=f"rlm_loop.{group}"))}


def plugin(group: Group, name: str) -> Callable[..., Any] | None:
    """Return the function that a package offers under a name, or `None`.  Raises what importing it raises."""
    return offered(group)[name].load() if name in offered(group) else None
