"""A session as one tool of a function-calling loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from rlm_loop.repl.base import CellResult, Session

DESCRIPTION = (
    "Run Python code in a persistent session. Variables stay between calls. Returns what the code printed, "
    "or the value of its last expression."
)


@dataclass(frozen=True)
class ReplTool:
    """The REPL as one tool of a function-calling loop."""

    session: Session
    name: str = "python"
    description: str = DESCRIPTION

    def run(self, input_data: str) -> str:
        """Run a cell; what it showed, and the reason where it was stopped."""
        result = self.session.run(input_data)
        stopped = result.error not in (None, "runtime")
        return "\n".join(filter(None, [result.output, result.message if stopped else ""]))


class ToolSession(Session):
    """What all our sessions have beyond the protocol: they are tools, and end with a `with` block."""

    name = "python"
    description = DESCRIPTION
    last: CellResult | None = None
    """The result of the latest cell, also where `run` raised."""

    def as_tool(self) -> ReplTool:
        """This session as a tool: `name`, `description`, and `run(input_data)` which returns text."""
        return ReplTool(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
