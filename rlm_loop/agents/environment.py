"""Where actions happen: the tools, the REPL, the workspace and the answer of one run.

Every strategy acts through the same `perform`, so results, errors and clipping do not depend on how it speaks.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from rlm_loop.accounting.limits import BudgetSpent
from rlm_loop.actions import Action, Answer, CallTool, Failure, FinalAnswer, Malformed, Observation, RunCode
from rlm_loop.agents.answers import AnswerCheck, Approval
from rlm_loop.agents.cells import Cells
from rlm_loop.agents.loop_tools import FINAL_ANSWER, OF_THE_LOOP, python_tool, require_own_names
from rlm_loop.agents.observations import Effects, bounded, cell_observation, failed_action
from rlm_loop.agents.record import RunLog
from rlm_loop.agents.rules import Rules
from rlm_loop.dialects.base import ActionMode
from rlm_loop.repl.base import CellResult, EvaluationFailed, ReplError
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.repl.text import HARD_CAP, dedented
from rlm_loop.tools.calls import KEY, describe
from rlm_loop.tools.function import Tool
from rlm_loop.tools.gateway import ToolGateway
from rlm_loop.workspace import Workspace

_log = logging.getLogger(__name__)
LOOK_FIRST = "Work it out with code before you answer."
ONE_ACTION = "not run: one action a reply is run; send it again alone"


class Unfinished(KeyboardInterrupt):
    """Ctrl-C while actions were performed; `observations` holds one for each, the rest as skipped."""

    def __init__(self, observations: tuple[Observation, ...]) -> None:
        super().__init__("interrupted while actions were performed")
        self.observations = observations


@dataclass(frozen=True)
class Offer:
    """Tools of a run, and how they are reached.

    `listed` are those that the model is told of; `quiet` ones can be called from cells too.  By `code` tools are
    functions in the REPL.  By `calls` the REPL is the tool `python`, and the tool `final_answer` gives the answer
    (without `answer_tool` a reply that calls nothing does).  By `none` nothing is offered.
    """

    listed: tuple[Tool, ...] = ()
    quiet: tuple[Tool, ...] = ()
    mode: ActionMode = "code"
    answer_tool: bool = True


@dataclass(frozen=True)
class ActionLimits:
    """Seconds of a cell and of a tool call (`None`: no limit of their own), and the characters that a model sees."""

    cell_seconds: float | None
    tool_seconds: float | None
    characters: int
    seconds_left: Callable[[], float | None]


class Environment:
    """Performs the actions of one run: calls of tools, cells of the REPL, answers.

    `rules` are the agent's, with the check of answers; `record` is told of what happens, for trace, logs and hooks.
    Closing (twice is harmless) closes the session that the run opened; a session of the caller's stays open, as it was
    before.  A workspace is closed by who opened it.  Raises `ValueError` where tool names clash, and names all of them.
    """

    def __init__(
        self,
        repl: Cells | None,
        tools: Offer,
        workspace: Workspace | None,
        rules: tuple[Rules, AnswerCheck],
        limits: ActionLimits,
        record: RunLog,
    ) -> None:
        own = [*tools.listed, *(workspace.tools() if workspace is not None else ())]
        if own:
            require_own_names(own, tools.quiet)
        self.faults: list[str] = []  # faults of cleaning up, a line each
        self.cells, self.workspace = repl, workspace
        self._rules, self.check = rules
        approve = self._rules.approve
        self._approval = None if approve is None else Approval(approve, record.approval)
        self._limits, self._record = limits, record
        self._characters = min(limits.characters, HARD_CAP)
        self._ask_for_code = self._rules.require_code
        self._effects = None if workspace is None else Effects(workspace, record.tree)
        self._answer: FinalAnswer | None = None
        self._cell: CellResult | None = None  # the latest, of this action
        self._fault: Exception | None = None  # of ours in `python`: it ends the run, as that of a fenced cell does
        self._may_repeat = False
        called = list(own)
        if tools.mode == "calls":
            called += ([python_tool(self._python)] if repl is not None else []) + FINAL_ANSWER * tools.answer_tool
        allow = self._rules.allow
        allowed = None if allow is None else {*allow, *OF_THE_LOOP}  # no list of tools is about these
        self._gateway = ToolGateway(
            called,
            tools.quiet,
            allow=allowed,
            timeout=limits.tool_seconds,
            cap=self._characters,
            hooks=record.hooks,
            node=record.node,
            about=record.about,
            seconds_left=limits.seconds_left,
            approve=self._approval,
        )
        functions = dict[str, Callable[..., Any]]()
        self._polls = set[str]()
        for tool in (*own, *tools.quiet):
            functions[tool.name] = self._caller(tool)
            if tool.polls:
                self._polls.add(tool.name)
        if repl is not None:
            repl.functions = functions
        self.tools: Mapping[str, Tool] = {} if tools.mode == "none" else {t.name: t for t in self._gateway.tools}

    def __enter__(self) -> Environment:
        return self

    def __exit__(self, *_: object) -> None:
        with shielded():
            self.close()

    def close(self) -> None:
        """Close the session that the run opened.  Never raises `Exception`: see `faults`."""
        if self.cells is not None:
            self.quietly("the session could not be closed", self.cells.leave)

    def quietly(self, fault: str, clean_up: Callable[[], None]) -> None:
        """Clean up; what goes wrong is noted, since an outcome is not lost over its cleaning up."""
        try:
            clean_up()
        except Exception as error:
            self.faults.append(f"{fault}: {describe(error):.200}")
            _log.warning(self.faults[-1])

    @property
    def isolation(self) -> str:
        """How cells are kept apart from this machine; empty as long as no session was opened, or without isolation."""
        return "" if self.cells is None else self.cells.isolation

    def acted(self) -> None:
        """Code was run before this run began, in the part that it goes on from: it is not asked for again."""
        self._ask_for_code = False

    def perform(self, actions: Sequence[Action]) -> tuple[Observation, ...]:
        """Perform the actions in order; one observation for each.

        Calls that end the run are done last, so that others in the same reply still happen.  After an answer, or after
        a cell that raised, further cells are skipped, and their observation says so.  Raises `Unfinished` on Ctrl-C.
        """
        done: dict[int, Observation] = {}
        failed = False
        order: Sequence[int] = range(len(actions))
        if len(actions) > 1 and not self._rules.one_action:
            order = sorted(order, key=lambda i: _ends(actions[i]))
        for index in order:
            action = actions[index]
            if self._rules.one_action and index:
                done[index] = failed_action("skipped", ONE_ACTION)
            elif self._answer is not None:
                done[index] = failed_action("skipped", "not run: the answer had been given")
            elif failed and isinstance(action, RunCode):
                done[index] = failed_action("skipped", "not run: an earlier block failed")
            else:
                self._may_repeat, self._cell = False, None
                try:
                    seen = self._perform(action) if self._effects is None else self._observed(action)
                    if len(seen.text) > self._characters:
                        seen = bounded(seen, self._characters)
                    done[index] = replace(seen, repeatable=True) if self._may_repeat else seen
                except KeyboardInterrupt:
                    seen = failed_action("interrupted", "the user interrupted it")
                    if self._cell is not None:  # what it had printed
                        seen = self._cell_observation(self._cell)
                    done[index] = bounded(self._with_effects(seen), self._characters)
                    rest = failed_action("skipped", "not run: the run was interrupted")
                    raise Unfinished(tuple(done.get(i, rest) for i in range(len(actions)))) from None
                failed = failed or (isinstance(action, RunCode) and done[index].failure is not None)
        return tuple(map(done.__getitem__, range(len(actions))))

    def collect(self, expression: str) -> Any:
        """The task's artifact: the git diff of a workspace, else the value of an expression in the REPL.

        `None` where the model left nothing that can be evaluated.  Raises `ReplError` and `WorkspaceError` for faults
        of the machine.
        """
        if self.workspace is not None:
            return self.workspace.diff()
        if not expression or self.cells is None:
            return None
        with suppress(EvaluationFailed):
            return self.cells.evaluate(expression, self._limits.cell_seconds, self._limits.seconds_left())
        return None

    def partial_artifact(self) -> str | None:
        """The patch where a run broke off: the git diff if it can still be taken, else the last one that was seen."""
        if self.workspace is None:
            return None
        with suppress(Exception):  # the workspace itself may be what broke
            return self.workspace.diff()
        return "" if self._effects is None else self._effects.patch

    def _observed(self, action: Action) -> Observation:
        """Perform one action; in a workspace, see which files changed since the action before."""
        if self._effects is None or isinstance(action, (Answer, Malformed)):
            return self._perform(action)
        self._effects.begin()
        return self._with_effects(self._perform(action))

    def _with_effects(self, observation: Observation) -> Observation:
        return observation if self._effects is None else replace(observation, effects=self._effects())

    def _perform(self, action: Action) -> Observation:
        match action:
            case Malformed(reason, kind):
                return failed_action(kind, reason)
            case Answer(value):
                return self._text_answer(value)
            case RunCode(code):
                if self._approval is not None and (refused := self._approval(action)) is not None:
                    return failed_action("denied", refused)
                return self._cell_observation(self._run(code))
            case CallTool():
                return self._call(action)

    def _text_answer(self, value: Any) -> Observation:
        if self._ask_for_code:  # asked once: small models like to answer at once without looking
            self._ask_for_code = False
            return failed_action("rejected", LOOK_FIRST)
        return self._offer(FinalAnswer(value, "text"), Observation())

    def _call(self, action: CallTool) -> Observation:
        name = action.name
        try:
            result = self._gateway.call(name, action.arguments, call_id=action.call_id, intent=action.intent)
        except BudgetSpent as spent:
            return failed_action("budget", spent.reason)
        self._may_repeat |= name in self._polls or result.repeated
        if self._fault is not None:
            raise self._fault
        if self._cell is not None:
            return self._cell_observation(self._cell)
        seen = Observation(
            result.text,
            seconds=result.seconds,
            truncated=result.truncated,
            full=result.full,
            printed=result.printed,
        )
        if result.failure is not None:
            return replace(seen, failure=result.failure, cause="error")
        return self._offer(FinalAnswer(result.data, "object"), seen) if name == "final_answer" else seen

    def _run(self, code: str) -> CellResult:
        self._ask_for_code = False
        if self.cells is None:
            raise RuntimeError("this task has no REPL; open the environment with repl=...")
        try:
            return self.cells.run(code, self._limits.cell_seconds, self._limits.seconds_left())
        except BudgetSpent as spent:
            return CellResult(error="budget", message=spent.reason)
        except OSError as error:  # of ours: what a cell's own code raises is in its result
            where = f" ({error.filename})" if error.filename else ""
            raise ReplError(
                f"the REPL's files cannot be written: {error.strerror or error}{where}; free some space, or set TMPDIR "
                "to another disk"
            ) from error
        finally:
            self._cell = self.cells.new_result()
            if self._cell is not None and self._cell.calls:
                self._record.cell_calls(self._cell.calls)

    def _cell_observation(self, cell: CellResult) -> Observation:
        seen = cell_observation(cell, self._characters)
        return seen if cell.error is not None or cell.answer is None else self._offer(cell.answer, seen)

    def _offer(self, offered: FinalAnswer, seen: Observation) -> Observation:
        """Take an answer, or say why it is refused."""
        answer, problem = self.check(offered)
        if problem is not None:
            text = "\n".join(filter(None, [seen.text, problem]))
            refused = Observation(text, Failure("rejected", problem), "error", pending=answer, seconds=seen.seconds)
            return replace(refused, truncated=seen.truncated, full=seen.full)
        self._answer = answer
        return replace(seen, answer=answer)

    def _caller(self, tool: Tool) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if tool.polls or kwargs.get(KEY) is not None:
                self._may_repeat = True
            return self._gateway.call_function(tool.name, args, kwargs)

        # so that `help(tool)` in a cell has its text
        call.__doc__, call.__signature__ = inspect.getdoc(tool.function), inspect.signature(tool.function)  # pyright: ignore[reportFunctionMemberAccess]
        return call

    def _python(self, code: str) -> str:
        try:
            self._cell = self._run(dedented(code))  # as a fenced block is
        except Exception as fault:
            self._fault = fault
            raise
        return self._cell.output


def _ends(action: Action) -> bool:
    return isinstance(action, CallTool) and action.name == "final_answer"
