"""What arms should have alike and do not: limits, history, reply length, sessions.  It is said before a token is spent.

Strategies differ by what they are: their loop, texts and tools.  These settings are not what a strategy is, but their
defaults may differ between strategies, and then a difference in results has more than one reason.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from rlm_loop.study.plan.contract_value import Contract

ALIKE = ("budget", "history", "sampling", "repl")
"""The factors of a contract that are meant."""


def unequal(contract: Contract, crossed: Collection[str] = ()) -> list[str]:
    """One line for each setting in which arms differ though nobody said so; none where the study declares `differs`.

    `crossed` are the settings that the study varies itself (`factors=`).
    """
    if contract.differs is not None:
        return []
    every = tuple(dict.fromkeys(d.factor for d in contract.differences))
    found: dict[str, None] = {}
    for difference in contract.differences:
        if difference.factor not in ALIKE:
            continue
        have = difference.probe.arms
        acting = [([a for a in arms if _acts(have[a])], value) for arms, value in difference.groups]
        leaves = [(arms, dict(_leaves(value))) for arms, value in acting if arms]
        for name in dict.fromkeys(name for _, of in leaves for name in of):
            by_value: dict[str, list[str]] = {}
            for arms, of in leaves:
                if name in of and (name or of[name] is not None):  # an agent of another kind has settings of its own
                    by_value.setdefault(json.dumps(of[name]), []).extend(arms)
            if len(by_value) > 1 and not {name, name.rpartition(".")[2], f"max_{name}"} & {*crossed}:
                values = "; ".join(f"{value} for {', '.join(arms)}" for value, arms in by_value.items())
                what = f"{difference.factor}, {name}" if name else difference.factor
                found[f"{contract.study}: arms differ in {what}: {values}"] = None
    return [f"{line} (set it alike, or declare differs={every})" for line in found]


def _acts(have: Mapping[str, Any]) -> bool:
    """A strategy that takes one reply has no use for limits of steps, cells and tools."""
    return (have.get("tool_presentation") or {}).get("hands") != "none"


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting with its name; those within another (`budget` in `budget`) by their own."""
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, inner in cast("Mapping[str, Any]", value).items():
        if key != "is":
            yield from _leaves(inner, key)
