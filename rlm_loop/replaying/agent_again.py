"""The agent of a recorded run, made again by today's code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from rlm_loop.agents import AGENTS, Agent
from rlm_loop.agents.made import NotMade, Unknown, class_named, remade
from rlm_loop.budget import Budget
from rlm_loop.dialects import injectors as known_injectors
from rlm_loop.replaying.errors import ReplayError
from rlm_loop.replaying.recorded import NodeRecord, Recorded
from rlm_loop.replaying.stand_ins import RecordedInjector

_TYPES = {kind.__name__: kind for kind in (bool, int, float, str, list, dict)}
_CLASSES = {kind.__name__: kind for kind in AGENTS.values()}
#: Settings of old traces that have another form there, or that an agent does not take.
_OWN = ("agent", "dialect", "injectors", "budget", "sub_budget", "history", "localise", "sub_model", "max_iterations")


@dataclass(frozen=True)
class Again:
    """The agent, and what of it is not as it was: one line each."""

    agent: Agent
    notes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    """Settings that were functions or objects of the caller's own, such as `verify`."""


def agent_again(recorded: Recorded, now: Callable[[], NodeRecord]) -> Again:
    """The agent that made a run, without its tools; wordings that were not given are today's.

    Raises `ReplayError` where it was of a class of the caller's own, or of several agents.
    """
    start = recorded.start
    notes: list[str] = []
    functions: list[str] = []

    def unknown(field: str, what: Unknown) -> Any:
        if field == "injectors":
            notes.append(f"the injector {what.name or what.what} is not part of rlm_loop: its text is as recorded")
            return RecordedInjector(what.name, now)
        if field == "sub_model" and what.name:
            return what.name
        if field == "answer_type" and what.name in _TYPES:
            return _TYPES[what.name]
        functions.append(field)
        return "auto" if field == "repl" else None

    try:
        if recorded.attempts or "made" not in start:
            agent = _of_settings(start, notes, now)
        else:
            agent = remade(start["made"], Agent, unknown)
    except NotMade as error:
        raise ReplayError(str(error)) from None
    if isinstance(agent.repl, str) and agent.repl not in ("auto", "sandbox", "container"):
        notes.append(f"cells of the record ran in repl={agent.repl!r}; give repl= to go on so, this is repl='auto'")
        agent = replace(agent, repl="auto")  # a trace may come from a stranger: it never lowers the isolation
    agent = replace(agent, model=str(start["model"]), hooks=(), sub_models=())
    return Again(agent, tuple(notes), tuple(functions))


def _of_settings(start: Mapping[str, Any], notes: list[str], now: Callable[[], NodeRecord]) -> Agent:
    """From what traces before schema 4 hold: all settings, default or not."""
    settings: Mapping[str, Any] = start.get("settings") or {}
    kind = _CLASSES.get(str(settings.get("agent")))
    if kind is None:
        raise NotMade(
            f"the trace says not enough of the agent ({settings.get('agent') or start.get('agent')}): give agent="
        )
    known = {f.name for f in fields(kind) if f.init}
    given = {k: _tuple(v) for k, v in settings.items() if k in known and k not in _OWN}
    given["injectors"] = tuple(_injector(i, notes, now) for i in settings.get("injectors") or ())
    given["budget"] = Budget(**_bare(settings["budget"]))
    for name in ("sub_budget", "history", "localise"):
        if (value := settings.get(name)) is not None:
            found = class_named(f"rlm_loop.{_HOMES[name]}") if isinstance(value, dict) else None
            given[name] = value if found is None else found(**{k: _tuple(v) for k, v in _bare(value).items()})
    if "max_iterations" in known:
        given["max_iterations"] = None  # it is in the budget's steps
    return kind(**given)


_HOMES = {"sub_budget": "limits.Budget", "history": "compaction.Compaction", "localise": "localise.brief.Localise"}


def _injector(stored: Mapping[str, Any], notes: list[str], now: Callable[[], NodeRecord]) -> Any:
    name = str(stored.get("is", ""))
    kind = getattr(known_injectors, name, None)
    if isinstance(kind, type):
        return kind(**_bare(stored))
    own = str(stored.get("name", ""))
    notes.append(f"the injector {own or name} is not known here: its text is as recorded")
    return RecordedInjector(own, now)


def _bare(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in stored.items() if k != "is"}


def _tuple(value: Any) -> Any:
    return tuple(cast("Sequence[Any]", value)) if isinstance(value, list) else value
