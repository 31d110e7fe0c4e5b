"""Parts of a run made again from its record: the agent, tools, a context, an injector's text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rlm_loop.agents import Agent
from rlm_loop.agents.config import NotMade, Unknown, agent_from_config, class_named
from rlm_loop.dialects.base import Problem
from rlm_loop.messages import Message
from rlm_loop.outcome import Turn
from rlm_loop.replay.recorded import NodeRecord, Recorded, ReplayError
from rlm_loop.tools.function import Tool


@dataclass(frozen=True)
class RecordedTool(Tool):
    """A tool as a model was told of it.  It is never run: what its calls gave is on record."""

    told: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    @property
    def signature(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return str(self.told["signature"])

    @property
    def parameters(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return dict(self.told["parameters"])


def recorded_tool(told: Mapping[str, Any]) -> RecordedTool:
    """A tool of a recorded name, description, signature and, where it was told, JSON schema of the arguments."""

    def not_run() -> str:
        raise RuntimeError("a recorded tool is not run")

    parameters = told.get("parameters") or {}  # of a function in a cell nobody is told a schema
    return RecordedTool(str(told["name"]), str(told["description"]), not_run, told={**told, "parameters": parameters})


def tools_of(recorded: Recorded, node: NodeRecord) -> list[RecordedTool]:
    """The tools that were offered besides those of ours, in their order."""
    known = {} if node.problem is None else recorded.stored(node.problem["tools"])
    return [recorded_tool(t) for t in known.get("tools", ())]


@dataclass(frozen=True)
class ToldContext:
    """A context of which the record has only what was told: a line, or the text in full where it was inlined."""

    line: str = ""
    inline: str = ""

    def __str__(self) -> str:
        return self.inline

    def problem(self, question: str) -> Problem:
        return Problem(question, self.line, self.inline)


def told_context(node: NodeRecord, question: str, action_mode: str) -> ToldContext | None:
    """What the first request says of the context."""
    brief = next((m for m in node.said(0) if m.role == "user"), None) or _first_user(node)
    task = "" if brief is None else "".join(s.text for s in brief.spans if s.cause == "task")
    if action_mode == "none":
        before = task[: len(task) - len(question)].removesuffix("\n\n") if task.endswith(question) else ""
        return ToldContext(inline=before) if before else None
    line = "" if node.problem is None else str(node.problem["context"])
    return ToldContext(line=line) if line else None


def _first_user(node: NodeRecord) -> Message | None:
    return next((m for c in node.calls[:1] for m in c.prompt.messages if m.role == "user"), None)


@dataclass(frozen=True)
class RecordedInjector:
    """An injector of the caller's own class: its text is what it said when the run was recorded."""

    name: str
    node: NodeRecord = field(compare=False, repr=False)

    def opening(self, problem: Problem) -> str:
        return _injected(self.node.said(0) or self._first(), self.name)

    def after(self, turn: Turn) -> str:
        return _injected(self.node.said(turn.index), self.name)

    def _first(self) -> Sequence[Message]:
        return [m for c in self.node.calls[:1] for m in c.prompt.messages if not m.turn]


def _injected(messages: Sequence[Message], name: str) -> str:
    for message in messages:
        for place, span in enumerate(message.spans):
            if span.cause == f"scaffold:{name}":
                return span.text.removeprefix("\n") if place else span.text
    return ""


def told_names(node: NodeRecord) -> list[str]:
    """The names of what was said of a workspace's files."""
    return [] if node.problem is None else [str(name) for name in node.problem["told"]]


_ANSWER_TYPES = {kind.__name__: kind for kind in (bool, int, float, str, list, dict)}


@dataclass(frozen=True)
class RebuiltAgent:
    """The agent made from a trace; `notes` say what of it is not as it was, a line each."""

    agent: Agent
    notes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    """Settings that were functions or objects of the caller's own, such as `verify`."""


def agent_of(recorded: Recorded) -> RebuiltAgent:
    """The agent that made a run, without its tools; what its dialect says is as recorded, whatever today's default.

    Raises `ReplayError` where it was of a class of the caller's own, or of several agents.
    """
    start = recorded.start
    settings: Mapping[str, Any] = start.get("settings", {})
    notes: list[str] = []
    functions: list[str] = []
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
        if "made" not in start:
            raise NotMade(
                f"the trace does not say how {start.get('agent')} is made (a class of your own, or a program that was "
                "only metered): give agent= where it is an agent of yours"
            )
        agent = agent_from_config(_today(start["made"], settings), Agent, unknown, settings)
    except NotMade as error:
        raise ReplayError(str(error)) from None
    if isinstance(agent.repl, str) and agent.repl not in ("auto", "sandbox", "container"):
        notes.append(f"cells of the record ran in repl={agent.repl!r}; give repl= to go on so, this is repl='auto'")
        agent = replace(agent, repl="auto")  # a trace may come from a stranger: it never lowers the isolation
    subcalls = replace(agent.subcalls, models=())  # a cell may ask no model that only the trace lists
    agent = replace(agent, model=str(start["model"]), hooks=(), subcalls=subcalls)
    if other := _other_words(agent, settings, start["made"]["with"]):
        notes.append(f"today's default is another for {', '.join(sorted(other))}: it is as recorded")
        try:
            agent = replace(agent, **other)
        except (TypeError, ValueError) as error:  # a trace that somebody edited
            raise ReplayError(f"{type(agent).__name__} cannot speak as recorded: {error}") from error
    return RebuiltAgent(agent, tuple(notes), tuple(functions))


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


def _today(made: Mapping[str, Any], settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """How an agent was made, where the trace is of before 26 November 2026 by the settings of today."""
    if "subcalls" in settings:
        return made
    own = dict(made["with"])

    def take(name: str) -> Any:
        return own.pop(name, settings.get(name))

    rules = {name: value for name in _RULES if (value := take(name)) is not None}
    subcalls = {name: value for old, name in _SUBCALLS.items() if (value := take(old)) is not None}
    if isinstance(budget := subcalls.get("budget"), dict) and "with" not in budget:
        subcalls["budget"] = {"is": "Budget", "with": {k: v for k, v in budget.items() if k != "is"}}
    limits = {"cell_seconds": take("cell_timeout"), "tool_seconds": settings.get("tool_timeout")}
    if made["is"] != "ReActAgent":
        own.pop("tool_timeout", None)
        if (most := own.pop("max_history", None)) is not None:
            window: dict[str, Any] = {"policy": "window", "threshold_tokens": None}
            asked: Any = own.get("history") or {"with": window}
            kept = {"policy": asked} if isinstance(asked, str) else dict(asked["with"])
            own["history"] = {"is": "Compaction", "with": {**kept, "max_messages": most}}
    if (localise := own.pop("localise", None)) is not None:
        own["injectors"] = [*own.get("injectors", ()), localise]
    budget = own.get("budget", {"is": "Budget", "with": {}})
    own["budget"] = {**budget, "with": {**budget["with"], **{k: v for k, v in limits.items() if v is not None}}}
    own |= {"rules": {"is": "Rules", "with": rules}, "subcalls": {"is": "SubCalls", "with": subcalls}}
    return {**made, "with": {name: value for name, value in own.items() if name not in _GONE}}


def _unnamed_injectors(start: Mapping[str, Any]) -> Iterator[str]:
    """The names of injectors of a class that is gone, where only the agent's name has them (`calls+nudge/2`)."""
    stored: Sequence[Mapping[str, Any]] = start["made"]["with"].get("injectors", ())
    names = [name for name in str(start.get("agent", "")).split("+")[1:] if name != "may_block"]
    for one, name in zip(stored, names[-len(stored) :], strict=False):
        if "is" in one and "name" not in one["with"] and class_named(str(one["is"])) is None:
            yield name


#: Settings of a dialect, and the agent's of which they are made.
_WORDS = {"rule": "system", "presentation": "presentation", "finish_with_result": "finish_with_result"}


def _other_words(agent: Agent, settings: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """What to set, besides what was `given`, so that the agent's dialect says what was recorded."""
    then, now = _innermost(settings), _innermost(agent.settings())
    if then.get("is") != now.get("is"):
        return {}
    own = {f.name for f in fields(agent)} - set(given)
    found = {
        mine: then[word]
        for word, mine in _WORDS.items()
        if mine in own and word in then and then[word] != now.get(word)
    }
    if then.get("presentation") == "native":  # its schemas say it all
        found.pop("system", None)
    return found


def _innermost(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The dialect that the injectors are around; what it says only where it is on is there as off, too."""
    while isinstance(inner := settings.get("dialect"), Mapping):
        settings = inner
    return {"finish_with_result": False, **settings}
