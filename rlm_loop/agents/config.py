"""The settings of an agent, and what a run begins with, as a trace has it: only what was given, so that defaults are
today's when the agent is made again.

What a trace names is looked up among the registered classes alone: reading a trace of others runs none of their code.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any, TypeVar, cast

from rlm_loop.agents.environment import Environment
from rlm_loop.agents.meter import Meter
from rlm_loop.dialects.base import ActionMode, Problem
from rlm_loop.dialects.injectors import Injector
from rlm_loop.models.base import Model
from rlm_loop.models.names import model_name
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import as_tool
from rlm_loop.traces.trace import Trace
from rlm_loop.versions import versions

#: Where the classes are that a trace may name, each by its own name; it does not say in which module, so they may move.
_MODULES = (
    *("agents.strategies", "agents.compaction", "agents.localise", "agents.rules"),
    *("dialects.injectors", "accounting.budget"),
)
#: Tools that the loop makes itself; all others are the task's, the workspace's or the caller's.
OURS = ("llm_query", "llm_query_batched", "python", "final_answer")
A = TypeVar("A")
_PLAIN = (bool, int, float, str, type(None))
_SKIPPED = ("hooks", "model", "tools")
#: Fields that do not identify a strategy: objects of the caller's, and what `settings_of` writes in its own way.
#: `scaffold` is in the recorded dialect as well.
_NOT_SETTINGS = {*_SKIPPED, "repl", "verify", "answer_type", "budget", "rules", "subcalls", "scaffold", "answer_tool"}


def settings_of(agent: Any) -> dict[str, Any]:
    """Return the settings that identify a strategy, also defaults: without functions, and models by name."""
    subcalls, rules = agent.subcalls, dict(vars(agent.rules))
    del rules["approve"]
    return {
        "agent": type(agent).__name__,
        "dialect": agent.dialect,
        **{f.name: getattr(agent, f.name) for f in fields(agent) if f.name not in _NOT_SETTINGS},
        **({"answer_tool": False} if not agent.answer_tool else {}),
        "budget": agent.budget,
        "rules": rules,
        "subcalls": {
            **vars(subcalls),
            "model": None if subcalls.model is None else model_name(subcalls.model),
            "models": {name: model_name(model) for name, model in subcalls.models},
        },
    }


def agent_from_config(
    made: Mapping[str, Any], family: type[A], unknown: Callable[[str, str], Any], settings: Mapping[str, Any]
) -> A:
    """Return the agent, one of a `family` of classes; `unknown` is asked by field and name for what is not known here.

    `settings` are all that the run recorded: its numbers and words hold also where today's default is another.  Its
    model and tools are to be given.  Raises `ValueError` for an agent of the caller's own class.
    """
    kind = class_named(str(made["is"]))
    if kind is None or not issubclass(kind, family):
        raise ValueError(f"the agent is of the class {made['is']}, which is not part of rlm_loop: give agent=")
    given = {name: _value(value, name, unknown) for name, value in made["with"].items()}
    known = {f.name for f in fields(cast("Any", kind)) if f.init}
    plain = {name: value for name, value in settings.items() if name in known and isinstance(value, _PLAIN)}
    try:
        return kind(**(plain | given))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{kind.__name__} does not take the recorded settings any more: {error}") from error


def _stored(value: Any, skipped: tuple[str, ...] | None = None) -> Any:
    """Return a value as a trace holds it; an object of `skipped` fields is an agent, whatever its class."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, (list, tuple)):
        return [_stored(v) for v in cast("list[Any]", value)]
    kind = type(value)
    known, full_name = _classes().get(kind.__name__) is kind, f"{kind.__module__}.{kind.__qualname__}"
    if known or skipped is not None:
        parts = {name: getattr(value, name) for name in _defaults(kind) if name not in (skipped or ())}
        given = {name: _stored(part) for name, part in parts.items() if part != _defaults(kind)[name]}
        return {"is": kind.__name__ if known else full_name, "with": given}
    name = getattr(value, "name", None) or getattr(value, "__name__", "")
    return {"unknown": full_name, "name": name if isinstance(name, str) else ""}


@functools.cache
def _defaults(kind: type[Any]) -> Mapping[str, Any]:
    """Return the defaults of a dataclass by field of `__init__`; `MISSING` where there is none."""
    made = [f for f in fields(kind) if f.init]
    return {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in made}


def _value(stored: Any, field: str, unknown: Callable[[str, str], Any]) -> Any:
    if isinstance(stored, list):
        return tuple(_value(v, field, unknown) for v in cast("list[Any]", stored))
    if not isinstance(stored, dict):
        return stored
    data = cast("dict[str, Any]", stored)
    given = data.get("with", data)
    if (kind := class_named(str(data.get("is")))) is None:
        return unknown(field, str(given.get("name") or data.get("is") or data.get("unknown")))
    return kind(**{k: _value(v, field, unknown) for k, v in given.items()})


def class_named(name: str) -> type[Any] | None:
    """Return the registered class of that name; `None` for any other.  Older traces say in which module it was."""
    module, _, short = name.rpartition(".")
    return _classes().get(short) if not module or module.startswith("rlm_loop.") else None


@functools.cache
def _classes() -> Mapping[str, type[Any]]:
    """Return by name the classes that an agent is made with: agents, budgets, histories, injectors."""
    modules = [import_module(f"rlm_loop.{name}") for name in _MODULES]
    own = [value for m in modules for value in vars(m).values() if getattr(value, "__module__", "") == m.__name__]
    return {kind.__name__: kind for kind in own if isinstance(kind, type) and is_dataclass(kind)}


def record_start(trace: Trace, agent: Any, task: Task, model: Model, context: Any, **more: Any) -> None:
    """Write the first event of a run; `context` is what is known of the context."""
    trace.start(
        task=task.id,
        question=task.question,
        agent=agent.dialect.name,
        settings=settings_of(agent),
        model=model.name,
        budget=agent.budget,
        versions=versions(),
        context=context,
        made={**_stored(agent, _SKIPPED), "tools": [as_tool(tool).name for tool in agent.tools]},
        price=model.price,
        **more,
    )


def record_problem(
    meter: Meter, task: Task, problem: Problem, place: Environment, brief: Iterable[Injector], mode: ActionMode
) -> None:
    """Record the line about the context, the tools that are not ours, and what else a later run needs of the task.

    Texts that stand in the first request anyway are named, not repeated.
    """
    trace = meter.trace
    told = [
        {"name": t.name, "description": t.description, "signature": t.signature}
        | ({"parameters": t.parameters} if mode == "calls" else {})
        for t in place.tools.values()
        if t.name not in OURS
    ]
    meter.record(
        "problem",
        context=problem.context,
        inline_chars=len(problem.inline),
        told=[i.name for i in brief],
        tools=trace.once("tools", tools=told) if told else None,
        repl=place.has_repl,
        workspace=None if place.workspace is None else place.workspace.base,
        setup=trace.text(task.setup) if task.setup else None,
        files={name: sha256(content) for name, content in task.files.items()},
    )


def sha256(content: str | bytes) -> str:
    """Return the hash by which events name a text or a file."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()
