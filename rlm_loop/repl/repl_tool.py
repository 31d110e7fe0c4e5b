"""A session as one tool of a function-calling loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rlm_loop.repl.base import Session

DESCRIPTION = (
    "Run Python code in a persistent session. Variables stay between calls. Returns what the code printed, "
    "or the value of its last expression."
)


@dataclass(frozen=True)
class ReplTool:
    """The REPL as one tool of a function-calling loop."""

    run: Callable[[str], str]
    session: Session
    name: str = "python"
    description: str = DESCRIPTION


def tool_of(session: Session) -> ReplTool:
    """The tool that runs a cell and returns what it showed, and the reason where it was stopped."""

    def run(input_data: str) -> str:
        result = session.run(input_data)
        stopped = result.error not in (None, "runtime")
        return "\n".join(filter(None, [result.output, result.message if stopped else ""]))

    return ReplTool(run, session)
