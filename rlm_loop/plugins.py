"""Suites, models and executors of other packages, found by entry points and imported when they are asked for.

A package offers them in its `pyproject.toml`:

    [project.entry-points."rlm_loop.suites"]
    mine = "my_package:my_suite"        # a function that returns a Suite; options of get_suite go to it

The groups are `rlm_loop.suites`, `rlm_loop.models` (a function of what follows `mine/` in a model's name, returning a
`Model`) and `rlm_loop.executors` (a function without arguments that returns a `concurrent.futures.Executor`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

Group = Literal["suites", "models", "executors"]


@functools.cache
def _offered(group: Group) -> dict[str, Any]:
    from importlib.metadata import entry_points  # here, since `import rlm_loop` needs none

    return {point.name: point for point in entry_points(group=f"rlm_loop.{group}")}


def offered(group: Group) -> tuple[str, ...]:
    """Return the names that installed packages offer in a group."""
    return tuple(sorted(_offered(group)))


def plugin(group: Group, name: str) -> Callable[..., Any] | None:
    """Return the function that a package offers under a name, or `None`.  Raises what importing it raises."""
    point = _offered(group).get(name)
    return None if point is None else point.load()
