"""The agents: one loop, four strategies.

>>> from rlm_loop import ToolLoopAgent
>>> ToolLoopAgent(model="local").run("What is 6 times 7?").answer  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping

from rlm_loop.agents.agent import Agent
from rlm_loop.agents.strategies import DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent

__all__ = ["AGENTS", "Agent", "DirectAgent", "LeanAgent", "ReActAgent", "ToolLoopAgent"]

#: By their names on the command line.
AGENTS: Mapping[str, type[Agent]] = {
    "tool-loop": ToolLoopAgent,
    "lean": LeanAgent,
    "react": ReActAgent,
    "direct": DirectAgent,
}
