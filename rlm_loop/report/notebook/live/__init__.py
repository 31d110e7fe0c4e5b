"""A run that is watched while it goes on: its steps, its tokens by cause, its sub-calls.

>>> from rlm_loop import ToolLoopAgent
>>> ToolLoopAgent(model="local").run("What is 17 to the power of 9?", live=True)  # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.report.notebook.live.view import LiveView

__all__ = ["LiveView"]
