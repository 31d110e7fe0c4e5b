"""Agents in a notebook: a live view, runs in the background with a stop button, and the cell magic `%%rlm`.

    %load_ext rlm_loop

    %%rlm --model local
    How many of the records failed?

All of it works in Jupyter, in VS Code, and as plain text in an IPython shell.
"""

from __future__ import annotations

from rlm_loop.report.notebook.jupyter.background import LiveRun, start_live
from rlm_loop.report.notebook.live import LiveView

__all__ = ["LiveRun", "LiveView", "start_live"]
