"""Ablation factors: every arm once with each value of each field, by names that say which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from inspect import signature
from itertools import product
from typing import Any

from rlm_loop.errors import nearest
from rlm_loop.study.errors import StudyError

#: A factor's values: a list, or a mapping of labels to values where a value is no number, text or named object.
Values = Sequence[Any] | Mapping[str, Any]

#: What a study varies by arguments of its own.
_OWN = {
    "model": "model=[...]",
    "seed": "seeds=[...]",
    "budget": "the factors max_steps and seconds, or arms of different budgets",
}


@dataclass(frozen=True)
class DesignedArm:
    """An arm of the grid: `base` is the arm that was declared, `values` the label it has of each factor."""

    name: str
    base: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    change: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


def checked(factors: Mapping[str, Values], study: str) -> dict[str, dict[str, Any]]:
    """The factors as values by label.  Raises `StudyError` where one has no values, or two of one label."""
    found: dict[str, dict[str, Any]] = {}
    for name, values in dict(factors).items():
        if name in _OWN:
            raise StudyError(f"study {study!r}: {name!r} is no factor; use {_OWN[name]} instead")
        if not isinstance(name, str) or not name.isidentifier():
            raise StudyError(f"study {study!r}: {name!r} is no factor; a factor is the name of a field of the agents")
        if isinstance(values, str) or not isinstance(values, (Mapping, Sequence)):
            raise StudyError(f"study {study!r}: factor {name!r} has {values!r}; give a list of values")
        pairs = list(values.items()) if isinstance(values, Mapping) else [(_text(v), v) for v in values]
        labels = [label for label, _ in pairs]
        twice = next((label for label in labels if labels.count(label) > 1), None)
        if not pairs or twice is not None:
            fault = "has no values" if not pairs else f"has two values called {twice!r}"
            raise StudyError(f"study {study!r}: factor {name!r} {fault}; give a list, or a mapping of labels to values")
        found[name] = dict(pairs)
    return found


def factorial_design(arms: Sequence[str], factors: Mapping[str, Mapping[str, Any]]) -> list[DesignedArm]:
    """Every arm with every combination of the factors' values, in order."""
    return [designed for arm in arms for designed in _of(arm, factors)]


def _of(arm: str, factors: Mapping[str, Mapping[str, Any]]) -> Iterator[DesignedArm]:
    if not factors:
        yield DesignedArm(arm, arm)
        return
    for chosen in product(*(by_label.items() for by_label in factors.values())):
        labels = ", ".join(f"{name}={label}" for name, (label, _) in zip(factors, chosen, strict=True))
        values = {n: v if _is_plain(v) else label for n, (label, v) in zip(factors, chosen, strict=True)}
        change = {name: value for name, (_, value) in zip(factors, chosen, strict=True)}
        yield DesignedArm(f"{arm}[{labels}]", arm, values, change)


def changed(agent: Any, change: Mapping[str, Any], arm: str) -> Any:
    """The agent with other fields.  Raises `StudyError` where it has no such field, or refuses the value."""
    if not change:
        return agent
    known = set(signature(type(agent)).parameters) if is_dataclass(agent) and not isinstance(agent, type) else set()
    unknown = [name for name in change if name not in known]
    if unknown:
        have = f"; it has {', '.join(sorted(known))}{nearest(unknown[0], known)}" if known else ""
        raise StudyError(f"arm {arm!r} ({type(agent).__name__}) has no field {unknown[0]!r}{have}")
    try:
        record: Any = agent
        return replace(record, **change)
    except (TypeError, ValueError) as error:
        raise StudyError(f"arm {arm!r}: {error}") from error


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _text(value: Any) -> str:
    """A value in a few characters: what is plain as it is, a list by its members, objects by their name."""
    if _is_plain(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "+".join(map(_text, value)) or "none"
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__
