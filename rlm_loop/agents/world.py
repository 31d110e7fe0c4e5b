"""What a run is told and meets besides the model: what is really there, or the record of it (see `replaying`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rlm_loop.agents.environment import Environment
from rlm_loop.agents.loop import Place
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.recursion import Asking
from rlm_loop.dialects.base import Dialect, Hands, Problem
from rlm_loop.dialects.injectors import Injector
from rlm_loop.repl.contexts.context import describe_context
from rlm_loop.tasks.base import Task
from rlm_loop.workspace import Workspace

if TYPE_CHECKING:
    from rlm_loop.agents.agent import Agent


class World(Protocol):
    """The seam between an agent's run and its surroundings; `model.node` says which run of the tree it is."""

    def problem(self, agent: Agent, task: Task, hands: Hands) -> Problem:
        """What is told of the task."""
        ...

    def told(self, agent: Agent, task: Task, workspace: Workspace | None) -> tuple[Injector, ...]:
        """What is said of the workspace's files."""
        ...

    def place(self, opened: Environment, asking: Asking) -> Place:
        """Where the actions happen; `asking` makes the sub-calls."""
        ...

    def begin(self, opened: Environment, model: Metered, patch: str) -> bool:
        """Make ready for the first turn; says whether there is a workspace."""
        ...

    def speaks(self, dialect: Dialect, model: Metered) -> Dialect:
        """How the run is put and shown."""
        ...


class Real:
    """The world as it is."""

    def problem(self, agent: Agent, task: Task, hands: Hands) -> Problem:
        if hands == "none":
            return Problem(task.question, "", "\n\n".join(filter(None, [task.inline, agent.inlined(task.context)])))
        return Problem(task.question, describe_context(task.context) if task.context is not None else "")

    def told(self, agent: Agent, task: Task, workspace: Workspace | None) -> tuple[Injector, ...]:
        """A strategy that has no workspace open is told of the task's."""
        if agent.localise is None:
            return ()
        if workspace is not None:
            return agent.localise.told(task.question, workspace)
        if task.workspace is None:
            return ()
        with task.workspace() as opened:
            return agent.localise.told(task.question, opened)

    def place(self, opened: Environment, asking: Asking) -> Place:
        return opened

    def begin(self, opened: Environment, model: Metered, patch: str) -> bool:
        return opened.begin(patch)

    def speaks(self, dialect: Dialect, model: Metered) -> Dialect:
        return dialect


REAL = Real()
