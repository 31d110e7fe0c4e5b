"""The agents: one loop, four strategies.

>>> from rlm_loop import ToolLoopAgent
>>> ToolLoopAgent(model="local").run("What is 6 times 7?").answer  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping

from rlm_loop.agents.agent import Agent
from rlm_loop.agents.compaction import Compaction
from rlm_loop.agents.past_run import outcome_of, turns_of
from rlm_loop.agents.rules import Approve, Rules, SubCalls
from rlm_loop.agents.run import Interrupted
from rlm_loop.agents.session import AgentSession
from rlm_loop.agents.strategies import DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent

__all__ = [
    "AGENTS",
    "Agent",
    "AgentSession",
    "Approve",
    "Compaction",
    "DirectAgent",
    "Interrupted",
    "LeanAgent",
    "ReActAgent",
    "Rules",
    "SubCalls",
    "ToolLoopAgent",
    "outcome_of",
    "turns_of",
]

#: By their names on the command line.
AGENTS: Mapping[str, type[Agent]] = {
    "tool-loop": ToolLoopAgent,
    "lean": LeanAgent,
    "react": ReActAgent,
    "direct": DirectAgent,
}
