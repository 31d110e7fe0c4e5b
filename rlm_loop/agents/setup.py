"""What an agent and a task make of a run: one frozen record that everything below the agent takes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rlm_loop.accounting.budget import Budget
from rlm_loop.agents.answers import Approve
from rlm_loop.agents.compaction import Compaction
from rlm_loop.agents.localise import Localise
from rlm_loop.dialects.base import Dialect
from rlm_loop.dialects.earlier import FIRST_ATTEMPT, AttemptContext
from rlm_loop.models.base import Model
from rlm_loop.repl.base import Session
from rlm_loop.tasks.base import Task
from rlm_loop.tools.serving import ToolLike, serving

#: For what has no limits of its own: what is recorded already, and several attempts together.
NO_LIMITS = Budget(steps=None, malformed=None, tool_failures=None)


@dataclass(frozen=True)
class RunSetup:
    """One run, made before it starts; the fields are those of the agent unless this says otherwise.

    `agent` is the name of the strategy, `dialect` how it speaks (built once), `tools` those that the agent brings
    besides the task's, `history` when the prompt is made shorter (`None`: never), `inlined` makes text of a context for
    a strategy that does not act.  `below` makes the setup of a sub-agent: the same strategy on another model and task,
    with a REPL of its own and without the checks of the answer, which are for the whole question.  `turn_offset` is how
    many turns earlier attempts at the task or earlier questions of a session took, `earlier` what is told of them.
    """

    agent: str
    task: Task
    dialect: Dialect
    tools: tuple[ToolLike, ...]
    repl: str | Callable[[], Session] | Session
    cell_timeout: float | None
    tool_timeout: float | None
    require_code: bool
    max_depth: int
    answer_type: Any
    verify: Callable[[Any], bool | str | None] | None
    history: Compaction | None
    hooks: tuple[object, ...]
    localise: Localise | None
    allow: tuple[str, ...] | None
    approve: Approve | None
    context_tokens: int | None
    answer_tool: bool
    inlined: Callable[[Any], str]
    below: Callable[[Model, Task], RunSetup]
    turn_offset: int = 0
    earlier: AttemptContext = FIRST_ATTEMPT


@contextmanager
def with_servers(setup: RunSetup) -> Generator[RunSetup]:
    """The setup with the servers that its tools need, which are ended when the run is (see `tools.serving`)."""
    with serving(setup.tools, setup.task.tools) as (own, given):
        if own == setup.tools and given == setup.task.tools:
            yield setup
        else:
            yield replace(setup, tools=own, task=replace(setup.task, tools=given))
