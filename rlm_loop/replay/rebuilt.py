"""The agent of a recorded run made again, with the tools, context and injectors that the record has in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from rlm_loop.agents import Agent
from rlm_loop.agents.config import NotMade, Unknown, agent_from_config, class_named
from rlm_loop.dialects.base import Problem
from rlm_loop.messages import Message
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


def recorded_tools(recorded: Recorded) -> tuple[RecordedTool, ...]:
    """Return the tools that were offered besides ours, in their order."""
    return tuple(RecordedTool(str(t["name"]), str(t["description"]), _not_run, told=t) for t in recorded.tools())


def _not_run() -> str:
    raise RuntimeError("a recorded tool is not run")


@dataclass(frozen=True)
class RecordedContext:
    """The words about a context that is not at hand: a line, or the text in full where it was inlined."""

    line: str = ""
    inline: str = ""

    def __str__(self) -> str:
        return self.inline

    @classmethod
    def of(cls, node: NodeRecord, question: str, action_mode: str) -> RecordedContext | None:
        """Read the words from the first request; `None` where it has none."""
        if action_mode != "none":
            line = str((node.problem or {}).get("context", ""))
            return cls(line=line) if line else None
        user = next((m for m in node.brief() if m.role == "user"), Message("user"))
        task = "".join(span.text for span in user.spans if span.cause == "task")
        inline = task.removesuffix(question).removesuffix("\n\n") if task.endswith(question) else ""
        return cls(inline=inline) if inline else None


@dataclass(frozen=True)
class RecordedInjector:
    """An injector of an unknown class, which says what it said when the run was recorded."""

    name: str
    node: NodeRecord = field(compare=False, repr=False)

    def opening(self, problem: Problem) -> str:
        return self._text(self.node.brief())

    def after(self, turn: Turn) -> str:
        request = self.node.request_after(turn.index)
        return self._text([] if request is None else [m for m in request.messages if m.turn == turn.index])

    def _text(self, messages: Sequence[Message]) -> str:
        for message in messages:
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
    unnamed = _unnamed_injectors(start)

    def unknown(field: str, what: Unknown) -> Any:
        if field == "injectors":
            name = what.name or next(unnamed, "")
            notes.append(f"the injector {name or what.what} is not part of rlm_loop: its text is as recorded")
            return RecordedInjector(name, recorded.root)
        if field in ("model", "models") and what.name:  # of sub-calls
            return what.name
        if field == "answer_type" and what.name in _ANSWER_TYPES:
            return _ANSWER_TYPES[what.name]
        functions.append(field)
        return "auto" if field == "repl" else None

    try:
        made = _in_todays_settings(start["made"], settings)
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


_RULES = ("allow", "require_code", "may_block")
_SUBCALLS = {
    "max_depth": "depth",
    "on_depth": "beyond",
    "sub_model": "model",
    "sub_budget": "budget",
    "concurrency": "concurrency",
    "cache_subcalls": "cache",
}
_GONE = ("seed", "sub_models", "context_tokens", "approve")


def _in_todays_settings(made: Mapping[str, Any], settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how an agent was made, with settings of before 26 November 2026 as today's rules, sub-calls and limits."""
    own = dict(made["with"])
    if made["is"] == "ReActAgent":  # its limits were its own
        ran: Any = settings.get("budget")
        own = {k: v for k, v in own.items() if k not in ("max_iterations", "tool_timeout")}
        if isinstance(ran, Mapping) and "steps" in ran:
            given = own.get("budget", {"is": "Budget", "with": {}})
            own["budget"] = {**given, "with": {**given["with"], "steps": cast("Mapping[str, Any]", ran)["steps"]}}
    if "max_history" in own or "max_history" in settings:
        own = _with_history(own, own.pop("max_history", settings.get("max_history")))
    if "subcalls" in settings:
        return {**made, "with": own}

    def take(name: str) -> Any:
        return own.pop(name, settings.get(name))

    rules = {name: value for name in _RULES if (value := take(name)) is not None}
    subcalls = {name: value for old, name in _SUBCALLS.items() if (value := take(old)) is not None}
    if isinstance(budget := subcalls.get("budget"), dict) and "with" not in budget:
        subcalls["budget"] = {"is": "Budget", "with": {k: v for k, v in budget.items() if k != "is"}}
    limits = {"cell_seconds": take("cell_timeout"), "tool_seconds": settings.get("tool_timeout")}
    own.pop("tool_timeout", None)
    if (localise := own.pop("localise", None)) is not None:
        own["injectors"] = [*own.get("injectors", ()), localise]
    budget = own.get("budget", {"is": "Budget", "with": {}})
    own["budget"] = {**budget, "with": {**budget["with"], **{k: v for k, v in limits.items() if v is not None}}}
    own |= {"rules": {"is": "Rules", "with": rules}, "subcalls": {"is": "SubCalls", "with": subcalls}}
    return {**made, "with": {name: value for name, value in own.items() if name not in _GONE}}


def _with_history(own: Mapping[str, Any], most: int | None) -> dict[str, Any]:
    """Return the settings with the most messages, which were a setting of their own, as part of the history."""
    if most is None:
        return dict(own)
    asked: Any = own.get("history") or {"with": {"policy": "window", "threshold_tokens": None}}
    kept = {"policy": asked} if isinstance(asked, str) else dict(asked["with"])
    return {**own, "history": {"is": "Compaction", "with": {**kept, "max_messages": most}}}


def _unnamed_injectors(start: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of injectors of a class that is gone; only the agent's name has them (`calls+nudge/2`)."""
    stored: Sequence[Mapping[str, Any]] = start["made"]["with"].get("injectors", ())
    names = [name for name in str(start.get("agent", "")).split("+")[1:] if name != "may_block"]
    for one, name in zip(stored, names[-len(stored) :], strict=False):
        if "is" in one and "name" not in one["with"] and class_named(str(one["is"])) is None:
            yield name
