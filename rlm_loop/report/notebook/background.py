"""A run that leaves the notebook free: the next cells work meanwhile, and one of them can stop it."""

from __future__ import annotations

from typing import Any

from rlm_loop.agents import Agent
from rlm_loop.agents.background import LiveRun
from rlm_loop.agents.session import AgentSession
from rlm_loop.report.notebook.live import LiveView

HOW = "to stop: run.stop() in a cell; what was done until then is kept"


def start_live(agent: Agent | AgentSession, question: str, *, show: bool = True, **options: Any) -> LiveRun:
    """Run an agent, or ask a session, in the background: returns at once, and the cell's output shows how far it is.

    `show=False` shows nothing.  `options` are those of `Agent.run` (`context`, `tools`, `workspace`, `trace`) or of a
    session's `ask`.
    """
    ask = agent.ask if isinstance(agent, AgentSession) else agent.run
    view = (LiveView(how_to_stop=HOW),) if show else ()
    return LiveRun(lambda run: ask(question, hooks=(*view, run), **options))
