"""How an agent was made, as JSON: only what was given, so that defaults are today's when it is made again.

What a trace names is looked up among the registered classes alone: reading a trace of others runs none of their code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeVar, cast

from rlm_loop.models.names import model_name
from rlm_loop.tools.function import as_tool

#: Where the classes are that a trace may name, each by its own name; it does not say in which module, so they may move.
_MODULES = (
    "agents.strategies",
    "agents.compaction",
    "dialects.code_blocks",
    "dialects.direct",
    "dialects.function_calls",
    "dialects.injectors",
    "dialects.react",
    "accounting.limits",
    "agents.localise",
    "agents.rules",
)
A = TypeVar("A")
_PLAIN = (bool, int, float, str, type(None))
_SKIPPED = ("hooks", "model", "tools")
#: Fields that do not identify a strategy: objects of the caller's, and what `settings_of` writes in its own way.
#: `scaffold` is in the recorded dialect as well.
_NOT_SETTINGS = {*_SKIPPED, "repl", "verify", "answer_type", "budget", "rules", "subcalls", "scaffold"}


class NotMade(ValueError):
    """An agent cannot be made again of what a trace says; the message says what is missing."""


@dataclass(frozen=True)
class Unknown:
    """A value that a trace only names: a function or an object of the caller's own."""

    what: str
    name: str = ""


def settings_of(agent: Any) -> dict[str, Any]:
    """Return the settings that identify a strategy, also defaults: without functions, and models by name."""
    rules, subcalls = agent.rules, agent.subcalls
    return {
        "agent": type(agent).__name__,
        "dialect": agent.dialect,
        **{name: getattr(agent, name) for name in _settings(type(agent))},
        "budget": agent.budget,
        "rules": {
            "allow": rules.allow,
            "require_code": rules.require_code,
            "one_action": rules.one_action,
            "may_block": rules.may_block,
        },
        "subcalls": {
            **vars(subcalls),
            "model": None if subcalls.model is None else model_name(subcalls.model),
            "models": {name: model_name(model) for name, model in subcalls.listed.items()} if subcalls.models else {},
        },
    }


@functools.cache
def _settings(kind: type[Any]) -> tuple[str, ...]:
    return tuple([f.name for f in fields(kind) if f.name not in _NOT_SETTINGS])


def agent_config(agent: Any) -> dict[str, Any]:
    """The agent's class and what differs from its defaults; its tools by name."""
    return {**_object(agent, _SKIPPED), "tools": [as_tool(t).name for t in agent.tools] if agent.tools else []}


def agent_from_config(
    made: Mapping[str, Any],
    family: type[A],
    unknown: Callable[[str, Unknown], Any],
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> A:
    """The agent, one of a `family` of classes; `unknown` is asked for what is not known here, by its field.

    `settings` are all that the run recorded: its numbers and words hold also where today's default is another.  Its
    model and tools are to be given.  Raises `NotMade` for an agent of the caller's own class.
    """
    kind = class_named(str(made["is"]))
    if kind is None or not issubclass(kind, family):
        raise NotMade(f"the agent is of the class {made['is']}, which is not part of rlm_loop: give agent=")
    given = {name: _value(value, name, unknown) for name, value in made["with"].items()}
    known = {f.name for f in fields(cast("Any", kind)) if f.init}
    plain = {name: value for name, value in settings.items() if name in known and isinstance(value, _PLAIN)}
    given = plain | given
    if missing := sorted(given.keys() - known):
        raise NotMade(f"{kind.__name__} has no setting {', '.join(missing)} any more: give agent=")
    try:
        return kind(**given)
    except (TypeError, ValueError) as error:
        raise NotMade(f"{kind.__name__} does not take the recorded settings any more: {error}") from error


def _object(value: Any, skipped: tuple[str, ...] = ()) -> dict[str, Any]:
    kind = type(value)
    given: dict[str, Any] = {}
    for name, default in _defaults(kind).items():
        if name not in skipped and (default is MISSING or default != getattr(value, name)):
            given[name] = _plain(getattr(value, name))
    name = kind.__name__ if _registered(kind) else f"{kind.__module__}.{kind.__qualname__}"
    return {"is": name, "with": given}


@functools.cache
def _defaults(kind: type[Any]) -> Mapping[str, Any]:
    """The defaults of a dataclass by field of `__init__`; `MISSING` where there is none."""
    found = [f for f in fields(kind) if f.init]
    return {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in found}


def _plain(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in cast("list[Any]", value)]
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(map(str, cast("set[Any]", value)))}
    kind = type(value)
    if _registered(kind):
        return _object(value)
    return {"unknown": f"{kind.__module__}.{kind.__qualname__}", "name": _name(value)}


def _name(value: Any) -> str:
    name = getattr(value, "name", None) or getattr(value, "__name__", "")
    return name if isinstance(name, str) else ""


def _value(stored: Any, field: str, unknown: Callable[[str, Unknown], Any]) -> Any:
    if isinstance(stored, list):
        return tuple(_value(v, field, unknown) for v in cast("list[Any]", stored))
    if not isinstance(stored, dict):
        return stored
    data = cast("dict[str, Any]", stored)
    if "set" in data:
        return frozenset(data["set"])
    if "unknown" in data:
        return unknown(field, Unknown(str(data["unknown"]), str(data.get("name", ""))))
    kind = class_named(str(data["is"]))
    if kind is None:
        name = data["with"].get("name", "")
        return unknown(field, Unknown(str(data["is"]), str(name)))
    return kind(**{k: _value(v, field, unknown) for k, v in data["with"].items()})


def class_named(name: str) -> type[Any] | None:
    """The registered class of that name; `None` for any other.  Older traces say in which module it was."""
    module, _, short = name.rpartition(".")
    return classes().get(short) if not module or module.startswith("rlm_loop.") else None


@functools.cache
def classes() -> Mapping[str, type[Any]]:
    """The registered classes by name: agents, budgets, histories, injectors and what else an agent is made with."""
    found: dict[str, type[Any]] = {}
    for name in _MODULES:
        module = import_module(f"rlm_loop.{name}")
        own = {k: v for k, v in vars(module).items() if is_dataclass(v) and v.__module__ == module.__name__}
        assert not own.keys() & found.keys(), "two registered classes have one name"
        found |= cast("dict[str, type[Any]]", own)
    return found


def _registered(kind: type[Any]) -> bool:
    return classes().get(kind.__name__) is kind
