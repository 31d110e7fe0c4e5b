"""The agent of a recorded run made again, with the tools and injectors that the record has in their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rlm_loop.agents import Agent
from rlm_loop.agents.config import NotMade, Unknown, agent_from_config, class_named
from rlm_loop.dialects.base import Problem
from rlm_loop.outcome import Turn
from rlm_loop.replay.recorded import NodeRecord, Recorded, ReplayError
from rlm_loop.tools.function import Tool


@dataclass(frozen=True)
class RecordedTool(Tool):
    """A tool as a model was told of it, which is never run."""

    told: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    @property
    def signature(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return str(self.told["signature"])

    @property
    def parameters(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return dict(self.told.get("parameters") or {})  # no schema is told of a function in a cell


def not_here(question: str = "", context: Any = None, meter: Any = None) -> Any:
    """Stand for what a replay never does: run a tool or code, or ask a model."""
    raise ReplayError("a replay runs no code and asks no model")


@dataclass(frozen=True)
class RecordedInjector:
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


@dataclass(frozen=True)
class RebuiltAgent:
    """The agent made from a trace.

    `notes` name its differences from the recorded one, a line each; `functions` are settings that a trace cannot hold,
    such as `verify`.
    """

    agent: Agent
    notes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


_ANSWER_TYPES = {kind.__name__: kind for kind in (bool, int, float, str, list, dict)}


def agent_of(recorded: Recorded) -> RebuiltAgent:
    """Make the agent of a run again, without its tools; it speaks as recorded, whatever today's defaults are.

    Raises `ReplayError` for an agent of the caller's own class, and for a program that was only metered.
    """
    start = recorded.start
    settings: Mapping[str, Any] = start.get("settings", {})
    notes, functions = list[str](), list[str]()
    if "made" not in start:
        raise ReplayError(
            f"the trace does not say how {start.get('agent')} is made (a class of your own, or a program that was "
            "only metered): give agent= where it is an agent of yours"
        )

    def unknown(field: str, what: Unknown) -> Any:
        if field == "injectors":
            notes.append(f"the injector {what.name or what.what} is not part of rlm_loop: its text is as recorded")
            return RecordedInjector(what.name, recorded.root)
        if field in ("model", "models") and what.name:  # of sub-calls
            return what.name
        if field == "answer_type" and what.name in _ANSWER_TYPES:
            return _ANSWER_TYPES[what.name]
        functions.append(field)
        return "auto" if field == "repl" else None

    try:
        made = _in_todays_settings(start["made"], settings, str(start.get("agent", "")))
        agent = agent_from_config(made, Agent, unknown, {**settings, **_words(settings)})
    except NotMade as error:
        raise ReplayError(str(error)) from None
    if isinstance(agent.repl, str) and agent.repl not in ("auto", "sandbox", "container"):
        notes.append(f"cells of the record ran in repl={agent.repl!r}; give repl= to go on so, this is repl='auto'")
        agent = replace(agent, repl="auto")  # a trace may come from a stranger: it never lowers the isolation
    subcalls = replace(agent.subcalls, models=())  # a cell may ask no model that only the trace lists
    agent = replace(agent, model=str(start["model"]), hooks=(), subcalls=subcalls)
    return RebuiltAgent(agent, tuple(notes), tuple(functions))


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
_MOVED = {
    "allow": ("rules", "allow"),
    "require_code": ("rules", "require_code"),
    "may_block": ("rules", "may_block"),
    "max_depth": ("subcalls", "depth"),
    "on_depth": ("subcalls", "beyond"),
    "cell_timeout": ("budget", "cell_seconds"),
    "tool_timeout": ("budget", "tool_seconds"),
    "max_history": ("history", "max_messages"),
}
_CLASSES = {"rules": "Rules", "subcalls": "SubCalls", "budget": "Budget", "history": "Compaction"}
_GONE = {"sub_model", "sub_budget", "concurrency", "cache_subcalls"} | {
    *("max_iterations", "seed", "sub_models", "context_tokens", "approve")
}


def _in_todays_settings(made: Mapping[str, Any], settings: Mapping[str, Any], agent: str) -> Mapping[str, Any]:
    """Return how an agent was made, with settings of before 26 November 2026 as today's.

    Injectors of a class that is gone have their names from the agent's (`calls+nudge/2`).
    """
    own = {name: value for name, value in made["with"].items() if name not in _GONE}
    ran: Any = settings.get("budget")
    if isinstance(ran, Mapping):  # all limits as recorded, whatever today's defaults are
        own["budget"] = {"is": "Budget", "with": {name: value for name, value in ran.items() if name != "is"}}
    if isinstance(own.get("history"), str):
        own["history"] = {"is": "Compaction", "with": {"policy": own["history"]}}
    for name, (part, inner) in _MOVED.items():
        if (value := own.pop(name, settings.get(name))) is not None:
            nothing = {"policy": "window", "threshold_tokens": None} if part == "history" else {}
            given = (own.get(part) or {"with": nothing})["with"]
            own[part] = {"is": _CLASSES[part], "with": {**given, inner: value}}
    if stored := list[Any](own.get("injectors", ())):
        names = [name for name in agent.split("+")[1:] if name != "may_block"][-len(stored) :]
        for place, (one, name) in enumerate(zip(stored, names, strict=False)):
            if "is" in one and class_named(one["is"]) is None:
                stored[place] = {"is": one["is"], "with": {"name": name, **one["with"]}}
        own["injectors"] = stored
    if "localise" in own:
        own["injectors"] = [*own.get("injectors", ()), own.pop("localise")]
    return {**made, "with": own}
