"""Small agent loops side by side: what each costs in tokens, and what each resolves.

    >>> from rlm_loop import ToolLoopAgent
    >>> outcome = ToolLoopAgent(model="local").run("What is 17 to the power of 9?")  # doctest: +SKIP

The public names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlm_loop.traces.versions import __version__

if TYPE_CHECKING:
    from rlm_loop.accounting.budget import Budget
    from rlm_loop.agents import DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
    from rlm_loop.agents.compaction import Compaction
    from rlm_loop.agents.patches import generate_patch
    from rlm_loop.meter import arm
    from rlm_loop.models import ScriptedModel
    from rlm_loop.outcome import Outcome
    from rlm_loop.repl import PythonREPL
    from rlm_loop.study import Study
    from rlm_loop.tasks import Suite, Task
    from rlm_loop.tasks.match import Match
    from rlm_loop.tools import tool
    from rlm_loop.workspace import Workspace

__all__ = [
    "Budget",
    "Compaction",
    "DirectAgent",
    "LeanAgent",
    "Match",
    "Outcome",
    "PythonREPL",
    "ReActAgent",
    "ScriptedModel",
    "Study",
    "Suite",
    "Task",
    "ToolLoopAgent",
    "Workspace",
    "__version__",
    "arm",
    "generate_patch",
    "tool",
]

_HOME = {
    "Budget": "rlm_loop.accounting.budget",
    "Compaction": "rlm_loop.agents.compaction",
    "DirectAgent": "rlm_loop.agents",
    "LeanAgent": "rlm_loop.agents",
    "Match": "rlm_loop.tasks.match",
    "Outcome": "rlm_loop.outcome",
    "PythonREPL": "rlm_loop.repl",
    "ReActAgent": "rlm_loop.agents",
    "ScriptedModel": "rlm_loop.models",
    "Study": "rlm_loop.study",
    "Suite": "rlm_loop.tasks",
    "Task": "rlm_loop.tasks",
    "ToolLoopAgent": "rlm_loop.agents",
    "Workspace": "rlm_loop.workspace",
    "arm": "rlm_loop.meter",
    "generate_patch": "rlm_loop.agents.patches",
    "tool": "rlm_loop.tools",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=__import__(__name__))
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext rlm_loop` calls: the cell magic `%%rlm` (see `rlm_loop.report.notebook.jupyter`)."""
    from rlm_loop.report.notebook.jupyter.magic import register

    register(shell)


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext rlm_loop` calls."""
    from rlm_loop.report.notebook.jupyter.magic import unregister

    unregister(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
