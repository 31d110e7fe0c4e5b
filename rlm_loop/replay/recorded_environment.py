"""The environment of a replay: what an action led to, sub-calls included, is read from the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rlm_loop.actions import Action, Observation
from rlm_loop.agents.environment import Environment, Unfinished
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.past_run import value_of
from rlm_loop.agents.recursion import SubcallRunner
from rlm_loop.agents.runner import MakeEnvironment, environment_of
from rlm_loop.agents.setup import NO_LIMITS, RunSetup
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.injectors import Injector, Told
from rlm_loop.replay.differences import Difference
from rlm_loop.replay.playback import Playback
from rlm_loop.replay.recorded import RecordEnds
from rlm_loop.replay.replies import ReplayState, error_again
from rlm_loop.replay.stubs import RecordedInjector, ToldContext, told_names
from rlm_loop.traces.trace import plain
from rlm_loop.workspace import Workspace


def recorded_environment(course: ReplayState) -> MakeEnvironment:
    """Makes the environment of the run, of what was recorded of it."""

    def make(setup: RunSetup, model: Metered, asking: SubcallRunner, workspace: Workspace | None) -> Environment:
        return environment_of(setup, model, asking, workspace, make=partial(RecordedEnvironment, course, asking))

    return make


class RecordedEnvironment(Environment):
    """Where nothing is done: an action leads to what it led to."""

    def __init__(self, course: ReplayState, asking: SubcallRunner, *tools: Any, **settings: Any) -> None:
        super().__init__(*tools, **settings)
        self._course, self._node, self._agent = course, course.recorded.root, asking.agent
        self._playback = Playback(course, asking)

    def tell(self, setup: RunSetup) -> tuple[Problem, tuple[Injector, ...]]:
        """Today's words about a context that is at hand, else the recorded ones."""
        node, task = self._node, setup.task
        said = [(name, RecordedInjector(name, node)) for name in told_names(node)]
        told = tuple(Told(injector.opening(Problem(task.question)), name) for name, injector in said)
        if isinstance(task.context, ToldContext):
            return task.context.problem(task.question), told
        return super().tell(replace(setup, localise=None))[0], told

    def begin(self, patch: str) -> bool:
        problem = self._node.problem
        return problem is not None and problem["workspace"] is not None

    @property
    def isolation(self) -> str:
        return str((self._node.end or {}).get("isolation", ""))

    def perform(self, actions: Sequence[Action]) -> tuple[Observation, ...]:
        """The recorded observations of this turn; its sub-calls are charged as they were."""
        number, end = self._agent.turn, self._node.end
        step = self._node.steps.get(number)
        if step is None:
            self._broken_off()
            raise RecordEnds
        limits, self._agent.account.budget = self._agent.account.budget, NO_LIMITS
        self._playback.turn(number)
        self._agent.account.budget = limits
        self._course.at(step.event)
        last = not any(int(call.event["turn"]) > number for call in self._node.calls)
        if end is not None and last and end["stop"] == "seconds":
            self._to_the_end()
        if plain(tuple(actions)) != plain(step.actions):
            old, new = (", ".join(map(_named, a)) for a in (step.actions, actions))
            self._course.differs(Difference(number, "what the reply asks for", old, new))
            if len(actions) != len(step.actions):
                raise RecordEnds
        if end is not None and last and end["stop"] == "interrupted":
            raise Unfinished(step.observations)
        return step.observations

    def collect(self, expression: str) -> Any:
        return self.partial_artifact()

    def partial_artifact(self) -> Any:
        if self._node.end is None:
            return None
        self._to_the_end()
        return value_of(self._node.end.get("artifact"))

    def _to_the_end(self) -> None:
        assert self._node.end is not None
        self._course.seconds += max(0.0, float(self._node.end["seconds"]) - self._agent.account.seconds)

    def _broken_off(self) -> None:
        """The reply is there, but not what came of it: raise what ended the run, where it is known."""
        end = self._node.end
        if end is not None and end["stop"] == "interrupted":
            raise KeyboardInterrupt
        if end is not None and end["stop"] == "failed":
            raise error_again(str(end["reason"]), "")


def _named(action: Action) -> str:
    return f"{type(action).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(action).items() if v)})"
