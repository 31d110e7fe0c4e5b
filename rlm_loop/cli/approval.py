"""`rlm-loop run --approve`: each action is shown in the terminal and runs when the user says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rlm_loop.cli.steps import LiveSteps
from rlm_loop.report.notebook.formatting import action_text, visible

if TYPE_CHECKING:
    from rich.console import Console

    from rlm_loop.actions import CallTool, RunCode

_QUESTION = "Run this? [y]es, [a]ll from now on, [n]o, or a reason for the model: "


class AskInTerminal:
    """An agent's `approve=` that shows the whole action and reads one line.

    "y" runs it, "a" runs it and all that follow, "n" or an empty line refuses it, and any other text refuses it with
    that text as the reason the model is told.  The end of the input refuses, too.  `read` gives the line.
    """

    __name__ = "user"  # the trace names this as the one who decided

    def __init__(self, console: Console, live: LiveSteps | None, read: Callable[[], str] = input) -> None:
        self._console, self._live, self._read = console, live, read
        self._all = False

    def __call__(self, action: RunCode | CallTool) -> bool | str:
        if self._all:
            return True
        if self._live is not None:
            self._live.stop()  # an animation would write over the question
        label, text = action_text(action)
        self._console.print(f"\n{label}:\n{visible(text)}", markup=False, highlight=False, soft_wrap=True)
        self._console.print(_QUESTION, end="", markup=False, soft_wrap=True)
        said = self._read().strip()
        self._all = said.lower() in ("a", "all")
        if self._all or said.lower() in ("y", "yes"):
            return True
        return said if said.lower() not in ("n", "no", "") else False
