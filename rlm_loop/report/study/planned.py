"""The units and arms of a study: those of its rows, then those of its plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm_loop.study import Results
from rlm_loop.study.compare.pair_keys import PairKey, pair_key


def planned(results: Results) -> list[PairKey]:
    """Every unit (model, suite, task, seed) of the study: those of its rows, then those of its plan without any."""
    there = dict.fromkeys(pair_key(row) for row in results.rows)
    tasks: Mapping[str, Mapping[str, Any]] = results.lock.get("tasks", {})
    for model in results.lock.get("models", ()):
        for suite, marks in tasks.items():
            for task in marks:
                there |= dict.fromkeys((model, suite, task, seed) for seed in results.lock.get("seeds", ()))
    return list(there)


def arms_of(results: Results) -> list[str]:
    """The arms with rows in their order, then those of the plan that have none yet."""
    return list(dict.fromkeys([*results.arms, *results.lock.get("arms", {})]))
