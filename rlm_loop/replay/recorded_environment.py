"""The environment of a replay: what an action led to is read from the record, and sub-calls are driven again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.accounting.call_tree import Caller
from rlm_loop.accounting.scope import Cancelled
from rlm_loop.actions import Action, Observation
from rlm_loop.agents.environment import Environment, Unfinished
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.past_run import value_of
from rlm_loop.agents.recursion import SubCallError, SubcallRunner
from rlm_loop.agents.recursion.record import SubCall, sha256_of
from rlm_loop.agents.runner import MakeEnvironment, environment_of
from rlm_loop.agents.setup import RunSetup
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.injectors import Injector, Told
from rlm_loop.replay.differences import Difference
from rlm_loop.replay.recorded import ROOT, NodeRecord, RecordEnds
from rlm_loop.replay.replies import REDACTED, ReplayState, error_again
from rlm_loop.replay.stubs import RecordedInjector, ToldContext, told_context, told_names
from rlm_loop.traces.trace import plain
from rlm_loop.workspace import Workspace


def recorded_environment(course: ReplayState) -> MakeEnvironment:
    """Makes the environment of each run of the tree, of what was recorded of it."""

    def make(setup: RunSetup, model: Metered, asking: SubcallRunner, workspace: Workspace | None) -> Environment:
        return environment_of(setup, model, asking, workspace, make=partial(RecordedEnvironment, course, asking))

    return make


class RecordedEnvironment(Environment):
    """Where nothing is done: an action leads to what it led to."""

    def __init__(self, course: ReplayState, asking: SubcallRunner, *tools: Any, **settings: Any) -> None:
        super().__init__(*tools, **settings)
        self._course, self._node, self._asking = course, course.node, asking

    def tell(self, setup: RunSetup) -> tuple[Problem, tuple[Injector, ...]]:
        """Today's words about a context that is at hand, else the recorded ones."""
        node, task = self._node, setup.task
        said = [(name, RecordedInjector(name, lambda: node)) for name in told_names(node)]
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
        """The recorded observations of this turn; its sub-calls are driven again."""
        number = self._asking.agent.turn
        step = self._node.steps.get(number)
        last = not any(int(call.event["turn"]) > number for call in self._node.calls)
        for start in self._node.children.get(number, ()):
            self._ask_again(start)
        if step is None:
            self._broken_off()
            raise RecordEnds
        self._course.at(step.event)
        if (end := self._node.end) is not None and last and end["stop"] == "seconds":
            self._course.seconds += max(0.0, float(end["seconds"]) - self._asking.agent.account.seconds)
        if plain(tuple(actions)) != plain(step.actions):
            old, new = (", ".join(map(_named, a)) for a in (step.actions, actions))
            where = f"turn {number}" if self._node.path == ROOT else f"turn {number} of sub-call {self._node.path}"
            self._course.differs(Difference("turn", f"{where}, what the reply asks for", old, new, self._node.path))
            if len(actions) != len(step.actions):
                raise RecordEnds
        if end is not None and last and end["stop"] == "interrupted":
            raise Unfinished(step.observations)
        return step.observations

    def collect(self, expression: str) -> Any:
        return self.partial_artifact()

    def partial_artifact(self) -> Any:
        end = self._node.end
        if end is None:
            return None
        self._course.seconds += max(0.0, float(end["seconds"]) - self._asking.agent.account.seconds)
        return value_of(end.get("artifact"))

    def _broken_off(self) -> None:
        """The reply is there, but not what came of it: raise what ended the run, where it is known."""
        end = self._node.end
        if end is not None and end["stop"] == "interrupted":
            raise KeyboardInterrupt
        if end is not None and end["stop"] == "failed":
            raise error_again(str(end["reason"]), "")

    def _ask_again(self, start: Mapping[str, Any]) -> None:
        """Drive one sub-call again, in this thread, and compare what it comes to."""
        course, path = self._course, str(start["node"])
        node = course.recorded.node(path)
        question = course.recorded.text(start.get("prompt_sha256"))
        if question is None and not node.calls and node.over is None:
            return  # the record ends here
        if question is None:
            course.differs(Difference("record", f"sub-call {path}", "its prompt is not in the trace", "-", path))
            return
        asked = SubCall(
            question, _context_of(start, node, question), None, _limit(start, node, self._asking),
            start.get("batch"), start.get("index"),
        )  # fmt: skip
        course.path.append(path)
        answer: str | None = None
        error: BaseException | None = None
        try:
            child = Caller(self._asking.agent.node, int(path.rpartition(".")[2]))
            answer = self._asking.ask(asked, child)
        except (SubCallError, BudgetSpent, Cancelled) as raised:
            error = raised
        finally:
            course.path.pop()
        _compare_ends(course, node, answer, error)


def _context_of(start: Mapping[str, Any], node: NodeRecord, question: str) -> ToldContext | None:
    if start.get("context") is None:
        return None
    if start["kind"] == "agent":
        action_mode = node.problem is not None and node.problem["inline_chars"] and not node.problem["context"]
        return told_context(node, question, "none" if action_mode else "code") or ToldContext()
    text = node.calls[0].prompt.messages[0].text if node.calls else ""
    return ToldContext(inline=text.removeprefix(f"{question}\n\n"))


def _limit(start: Mapping[str, Any], node: NodeRecord, asking: SubcallRunner) -> int | None:
    """The `max_tokens` that was asked for; where the trace does not have it, what came of it."""
    if "max_tokens" in start:
        return start["max_tokens"]
    held = node.calls[0].event.get("max_tokens") if node.calls else None
    return None if held == asking.agent.max_tokens else held


def _compare_ends(course: ReplayState, node: NodeRecord, answer: str | None, error: BaseException | None) -> None:
    over = node.over
    if over is None or (over["error"] or {}).get("kind") in ("cancelled", "interrupted"):
        return  # it came too late: nobody was told what it came to
    today = "an answer" if answer is not None else f"{type(error).__name__}: {error}"
    said = over["error"]
    if (answer is not None) != bool(over["ok"]):
        recorded = "an answer" if over["ok"] else f"{said['kind']}: {said['message']}"
    elif answer is None and said is not None:
        reason = getattr(error, "reason", str(error))
        if said["message"] == reason:
            return
        recorded = str(said["message"])
    elif answer is not None and over["answer_chars"] is not None:
        if over["answer_sha256"] == sha256_of(answer) or REDACTED in answer:
            return
        recorded, today = f"another answer of {over['answer_chars']} characters", f"one of {len(answer)}"
    else:
        return
    course.differs(Difference("sub-call", f"sub-call {node.path}", recorded, today, node.path))


def _named(action: Action) -> str:
    return f"{type(action).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(action).items() if v)})"
