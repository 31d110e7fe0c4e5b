"""The agent of a recorded run made again, with the tools and injectors that the record has in their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rlm_loop.agents import Agent
from rlm_loop.agents.config import agent_from_config, class_named
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.injectors import Injector
from rlm_loop.outcome import Turn
from rlm_loop.replay.recorded import NodeRecord, Recorded, ReplayError
from rlm_loop.tools.function import Tool


def not_here(question: str = "", context: Any = None, meter: Any = None) -> Any:
    """Stand for what a replay never does: run a tool or code, or ask a model."""
    raise ReplayError("a replay runs no code and asks no model")


def recorded_tool(told: Mapping[str, Any]) -> Tool:
    """Return a tool as a model was told of it, which is never run."""
    tool = Tool(str(told["name"]), str(told["description"]), not_here)
    parameters: dict[str, Any] = dict(told.get("parameters") or {})
    fields = tuple((str(name), Any, False) for name in parameters.get("properties", ()))
    vars(tool).update(signature=str(told["signature"]), parameters=parameters, _fields=fields)  # names are read
    return tool


@dataclass(frozen=True)
class RecordedInjector(Injector):
    """An injector of an unknown class, which says what it said when the run was recorded."""

    name: str
    node: NodeRecord = field(compare=False, repr=False)

    def opening(self, problem: Problem) -> str:
        return self._text(0)

    def after(self, turn: Turn) -> str:
        return self._text(turn.index)

    def _text(self, turn: int) -> str:
        for message in self.node.added(turn):
            for place, span in enumerate(message.spans):
                if span.cause == f"scaffold:{self.name}":
                    return span.text.removeprefix("\n") if place else span.text
        return ""


def agent_of(recorded: Recorded) -> tuple[Agent, list[str], list[str]]:
    """Return the agent of a run made again, without its tools; it speaks as recorded, whatever today's defaults are.

    With it come its differences from the recorded one, a line each, and the names of settings that a trace cannot hold,
    such as `verify`.  Raises `ReplayError` for an agent of the caller's own class and a program that was only metered.
    """
    start = recorded.start
    settings: Mapping[str, Any] = start.get("settings", {})
    notes, functions = list[str](), list[str]()
    if "made" not in start:
        raise ReplayError(f"the trace does not say how {start.get('agent')} is made: give agent= if it is one of yours")

    def unknown(field: str, name: str) -> Any:
        if field == "injectors":
            notes.append(f"the injector {name} is not part of rlm_loop: its text is as recorded")
            return RecordedInjector(name, recorded.root)
        if field in ("model", "models"):  # of sub-calls
            return name
        functions.append(field)
        return "auto" if field == "repl" else None

    try:
        made = _in_todays_settings(start["made"], settings, str(start.get("agent", "")))
        agent = agent_from_config(made, Agent, unknown, {**settings, **_words(settings)})
    except ValueError as error:
        raise ReplayError(str(error)) from None
    if isinstance(agent.repl, str) and agent.repl not in ("auto", "sandbox"):
        notes.append(f"cells of the record ran in repl={agent.repl!r}; give repl= to go on so, this is repl='auto'")
        agent = replace(agent, repl="auto")  # a trace may come from a stranger: it never lowers the isolation
    subcalls = replace(agent.subcalls, models=())  # a cell may ask no model that only the trace lists
    return replace(agent, model=str(start["model"]), hooks=(), subcalls=subcalls), notes, functions


def _words(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the agent's settings by which its dialect says what was recorded."""
    dialect = settings
    while isinstance(inner := dialect.get("dialect"), Mapping):  # injectors are around it
        dialect = inner
    words = {name: dialect[told] for name, told in (("system", "rule"), ("presentation",) * 2) if told in dialect}
    if words.get("presentation") == "native":  # its schemas say it all
        words.pop("system", None)
    return words


#: Where settings of before 26 November 2026 are today; of sub-calls only what decides whether they are offered.
_MOVED: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "require_code": ("rules", "Rules", "require_code", {}),
    "max_depth": ("subcalls", "SubCalls", "depth", {}),
    "max_history": ("history", "Compaction", "max_messages", {"policy": "window", "threshold_tokens": None}),
}
_GONE = ("seed", "max_iterations", "concurrency", "sub_budget", "cell_timeout", "tool_timeout", "localise")


def _in_todays_settings(made: Mapping[str, Any], settings: Mapping[str, Any], agent: str) -> Mapping[str, Any]:
    """Return how an agent was made, with settings of before 26 November 2026 as today's.

    Injectors of a class that is gone have their names from the agent's (`calls+nudge/2`).
    """
    own = {name: value for name, value in made["with"].items() if name not in _GONE}
    ran: Any = settings.get("budget")
    if isinstance(ran, Mapping):  # all limits as recorded, whatever today's defaults are
        own["budget"] = {"is": "Budget", "with": {name: value for name, value in ran.items() if name != "is"}}
    for name, (part, kind, inner, others) in _MOVED.items():
        if (value := own.pop(name, settings.get(name))) is not None:
            own[part] = {"is": kind, "with": {**others, inner: value}}
    stored = list[Any](own.get("injectors", ()))
    names = [name for name in agent.split("+")[1:] if name != "may_block"][-len(stored) :]
    for place, (one, name) in enumerate(zip(stored, names, strict=False)):
        if "is" in one and class_named(one["is"]) is None:
            stored[place] = {"is": one["is"], "with": {"name": name, **one["with"]}}
    return {**made, "with": {**own, "injectors": stored}}
