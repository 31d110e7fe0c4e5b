"""The agent of a recorded run, made again by today's code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rlm_loop.agents import Agent
from rlm_loop.agents.config import NotMade, Unknown, agent_from_config
from rlm_loop.replay.errors import ReplayError
from rlm_loop.replay.recorded import NodeRecord, Recorded
from rlm_loop.replay.stubs import RecordedInjector

_TYPES = {kind.__name__: kind for kind in (bool, int, float, str, list, dict)}


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
        if "made" not in start:
            raise NotMade(f"the trace says not enough of the agent ({start.get('agent')}): give agent=")
        agent = agent_from_config(start["made"], Agent, unknown, start.get("settings", {}))
    except NotMade as error:
        raise ReplayError(str(error)) from None
    if isinstance(agent.repl, str) and agent.repl not in ("auto", "sandbox", "container"):
        notes.append(f"cells of the record ran in repl={agent.repl!r}; give repl= to go on so, this is repl='auto'")
        agent = replace(agent, repl="auto")  # a trace may come from a stranger: it never lowers the isolation
    agent = replace(agent, model=str(start["model"]), hooks=(), sub_models=())
    return Again(agent, tuple(notes), tuple(functions))
