"""Small agent loops side by side: what each costs in tokens, and what each resolves.

    >>> from rlm_loop import ToolLoopAgent
    >>> outcome = ToolLoopAgent(model="local").run("What is 17 to the power of 9?")  # doctest: +SKIP

The public names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlm_loop.versions import __version__

if TYPE_CHECKING:
    from rlm_loop.accounting.budget import Budget
    from rlm_loop.agents import DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
    from rlm_loop.agents.compaction import Compaction
    from rlm_loop.meter import arm
    from rlm_loop.models import ScriptedModel
    from rlm_loop.outcome import Outcome
    from rlm_loop.repl import PythonREPL
    from rlm_loop.study import Study
    from rlm_loop.tasks import Suite, Task
    from rlm_loop.tasks.match import Match
    from rlm_loop.tools import tool
    from rlm_loop.workspace import Workspace

__all__ = ["Budget", "Compaction", "DirectAgent", "LeanAgent", "Match", "Outcome", "PythonREPL", "ReActAgent"]
__all__ += ["ScriptedModel", "Study", "Suite", "Task", "ToolLoopAgent", "Workspace", "__version__", "arm"]
__all__ += ["tool"]

_NAMES = {
    "accounting.budget": "Budget",
    "agents": "DirectAgent LeanAgent ReActAgent ToolLoopAgent",
    "agents.compaction": "Compaction",
    "meter": "arm",
    "models": "ScriptedModel",
    "outcome": "Outcome",
    "repl": "PythonREPL",
    "study": "Study",
    "tasks": "Suite Task",
    "tasks.match": "Match",
    "tools": "tool",
    "workspace": "Workspace",
}
_HOME = {name: f"rlm_loop.{module}" for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=__import__(__name__))
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOME[name]), name)  # the next look-up does not come here
    return value


def load_ipython_extension(shell: Any) -> None:
    """Add the cell magic `%%rlm`, as `%load_ext rlm_loop` asks (see `rlm_loop.report.notebook.magic`)."""
    from rlm_loop.report.notebook.magic import register

    register(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
