"""Where actions happen: the tools, the REPL, the workspace and the answer of one task.

Every strategy acts through the same `perform`, so results, errors and clipping do not depend on how it speaks.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.actions import Action, Answer, CallTool, Failure, FinalAnswer, Malformed, Note, Observation, RunCode
from rlm_loop.agents.answers import AnswerCheck
from rlm_loop.agents.loop_tools import FINAL_ANSWER, OF_THE_LOOP, python_tool, require_own_names
from rlm_loop.agents.observations import Effects, bounded, cell_observation, failed_action
from rlm_loop.agents.setup import RunSetup, ToolLike
from rlm_loop.dialects.base import Dialect, Problem
from rlm_loop.dialects.injectors import Injector
from rlm_loop.repl.base import CellResult, ReplError, Session
from rlm_loop.repl.cell_calls import CellCall, Noted
from rlm_loop.repl.contexts.context import describe_context
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.repl.rebuild import Fallback, PastCell, run_again
from rlm_loop.repl.text import HARD_CAP, dedented
from rlm_loop.tools.calls import KEY, IdempotencyCache, describe
from rlm_loop.tools.function import Tool, as_tool
from rlm_loop.tools.gateway import ToolGateway
from rlm_loop.tools.hooks import Hooks
from rlm_loop.workspace import Workspace

_log = logging.getLogger(__name__)

_LAST = 2.0  # seconds to take the artifact of a run whose time is up; a `__repr__` of a cell's may never end
_HURRY = 0.2  # seconds for a cell to stop at the time limit of the run, which is to be kept

LOOK_FIRST = "Work it out with code before you answer."


class Unfinished(KeyboardInterrupt):
    """Ctrl-C while actions were performed; `observations` holds one for each, the rest as skipped."""

    def __init__(self, observations: tuple[Observation, ...]) -> None:
        super().__init__("interrupted while actions were performed")
        self.observations = observations


class Environment:
    """Performs the actions of one run: calls of tools, cells of the REPL, answers.

    `action_mode` says how the strategy acts.  `code`: tools are functions in the REPL.  `calls`: the REPL is the tool
    `python`, and the tool `final_answer` gives the answer (without `answer_tool` a reply that calls nothing does).
    `none`: nothing is offered.  `unlisted` tools can be called from cells, but the model is not told of them.  `repl`
    makes the session when it is first needed, or is a session of the caller's.  `observation_cap` is the most
    characters of a result that a model sees (at most 65,536; the rest is recorded).  `allow` names the tools that may
    run; a call of another one is `denied`, but for the REPL and `final_answer`.  `hooks` are told of each tool
    call, with the id `node`; `about` gives more fields for log lines.  `keep_tree` gets the tree id and the patch of
    each new state of the workspace, `keep_calls` what each cell asked of the host.  `sampled` says that a
    repeated reply is chance.

    Closing (twice is harmless) closes the session that `repl` made and an `owned` workspace; a session of the caller's
    stays open, without the run's tools.  Raises `ValueError` where tool names clash, and names all of them.
    """

    def __init__(
        self,
        tools: Iterable[ToolLike] = (),
        *,
        unlisted: Iterable[ToolLike] = (),
        action_mode: str = "code",
        repl: Callable[[], Session] | Session | None = None,
        workspace: Workspace | None = None,
        owned: bool = True,
        context: Any = None,
        cell_timeout: float | None = 60.0,
        tool_timeout: float | None = 60.0,
        observation_cap: int = HARD_CAP,
        allow: Collection[str] | None = None,
        check: AnswerCheck | None = None,
        require_code: bool = False,
        seconds_left: Callable[[], float | None] = lambda: None,
        hooks: Sequence[object] = (),
        node: str = "",
        about: Callable[[], Mapping[str, Any]] = dict,
        keep_tree: Callable[[str, str], None] | None = None,
        keep_calls: Callable[[Sequence[CellCall]], None] | None = None,
        answer_tool: bool = True,
        sampled: bool = False,
        approve: Callable[[RunCode | CallTool], str | None] | None = None,
    ) -> None:
        own = list(map(as_tool, (*tools, *(workspace.tools() if workspace is not None else ()))))
        quiet = list(map(as_tool, unlisted))
        require_own_names(own, quiet)
        self.faults: list[str] = []  # what went wrong when it was closed, a line each
        self._sampled, self._may_repeat = sampled, False
        self._lent = repl if isinstance(repl, Session) else None
        self._open_repl = repl if not isinstance(repl, Session) else lambda: repl
        self._session: Session | None = None
        self._context, self._cell_timeout, self._seconds_left = context, cell_timeout, seconds_left
        self._cap = cap = min(observation_cap, HARD_CAP)
        self.check, self._ask_for_code = check or AnswerCheck(), require_code
        self.workspace, self._owned = workspace, owned
        self._effects = None if workspace is None else Effects(workspace, keep_tree)
        self._answer: FinalAnswer | None = None
        self._result = ""  # of the last action that did not fail
        self._cell: CellResult | None = None
        self._fault: Exception | None = (
            None  # of ours, where `python` was called: it ends the run as a fenced cell's does
        )
        called = list(own)
        if action_mode == "calls":
            called += ([python_tool(self._python)] if repl is not None else []) + (FINAL_ANSWER if answer_tool else [])
        self._approve = approve
        told: dict[str, Any] = {"hooks": Hooks(hooks), "node": node, "about": about, "seconds_left": seconds_left}
        told["approve"] = approve
        allowed = None if allow is None else {*allow, *OF_THE_LOOP}  # no list of tools is about these
        kept = IdempotencyCache()  # one for both gates: a key is the same in a cell and in a call
        self._gateway = ToolGateway(called, timeout=tool_timeout, cap=cap, allow=allowed, kept=kept, **told)
        # cells call through a gate of their own: a model is never told of an unlisted tool, in an error either
        in_cell = ToolGateway([*own, *quiet], timeout=tool_timeout, cap=cap, allow=allow, kept=kept, **told)
        self._keep_calls, self._noted = keep_calls, Noted()
        self._in_cell = {name: self._noted.told(name, self._caller(in_cell, name)) for name in in_cell.names}
        self._polls = {t.name for t in (*own, *quiet) if t.polls}
        self.tools: Mapping[str, Tool] = {} if action_mode == "none" else {t.name: t for t in self._gateway.tools}

    def __enter__(self) -> Environment:
        return self

    def __exit__(self, *_: object) -> None:
        with shielded():
            self.close()

    def close(self) -> None:
        """Never raises `Exception`: what a run came to is not lost over its cleaning up (see `faults`)."""
        if self._session is not None and self._session is self._lent:
            with suppress(ReplError), self._noting("the run's tools could not be taken from the session"):
                self._session.remove_tools(self._in_cell)
        elif self._session is not None:
            with self._noting("the session could not be closed"):
                self._session.close()
        if self.workspace is not None and self._owned:
            with self._noting("the workspace could not be closed"):
                self.workspace.close()

    @contextmanager
    def _noting(self, what: str) -> Generator[None]:
        try:
            yield
        except Exception as error:
            self.faults.append(f"{what}: {describe(error):.200}")
            _log.warning(self.faults[-1])

    @property
    def isolation(self) -> str:
        """What keeps the cells apart from this machine; empty as long as no session was opened, or where it is none."""
        return "" if self._session is None else self._session.isolation

    def tell(self, setup: RunSetup) -> tuple[Problem, tuple[Injector, ...]]:
        """What the model is told of the task, and of the files of its workspace (where none is open, the task's)."""
        task = setup.task
        if setup.dialect.action_mode == "none":
            inline = "\n\n".join(filter(None, [task.inline, setup.inlined(task.context)]))
            problem = Problem(task.question, "", inline)
        else:
            problem = Problem(
                task.question,
                describe_context(task.context, tokens=setup.context_tokens) if task.context is not None else "",
            )
        if setup.localise is None:
            return problem, ()
        if self.workspace is not None:
            return problem, setup.localise.told(task.question, self.workspace)
        if task.workspace is None:
            return problem, ()
        with task.workspace() as opened:
            return problem, setup.localise.told(task.question, opened)

    def speaking(self, dialect: Dialect) -> Dialect:
        """The dialect of the run."""
        return dialect

    def begin(self, patch: str) -> bool:
        """Apply a patch to the workspace, where there is one; says whether there is."""
        if self.workspace is not None:
            self.workspace.apply(patch)
        return self.workspace is not None

    def resume(
        self, cells: Sequence[PastCell], fallback: Callable[[PastCell], Fallback | None], *, acted: bool
    ) -> tuple[str, ...]:
        """Bring the session to where a recorded run was: its cells are run again, what they asked of the host is not
        asked again.  `acted` is whether anything was done there.  Returns what was not as before, a line each."""
        self._ask_for_code = self._ask_for_code and not acted
        if not cells:
            return ()
        session = self._repl()
        try:
            return run_again(session, cells, self._in_cell, fallback)
        finally:
            session.new_run()

    @property
    def has_repl(self) -> bool:
        """Whether there is, or would be, a session for cells."""
        return self._open_repl is not None

    def perform(self, actions: Sequence[Action]) -> tuple[Observation, ...]:
        """Do what was asked, in order; one observation for each action.

        Calls that end the run are done last, so that others in the same reply still happen.  After an answer,
        or after a cell that raised, further cells are skipped, and their observation says so.
        Raises `Unfinished` on Ctrl-C.
        """
        done: dict[int, Observation] = {}
        failed = False
        order: Sequence[int] = range(len(actions))
        if len(actions) > 1:
            order = sorted(order, key=lambda i: _ends(actions[i]))
        for index in order:
            action = actions[index]
            if self._answer is not None:
                done[index] = failed_action("skipped", "not run: the answer had been given")
            elif failed and isinstance(action, RunCode):
                done[index] = failed_action("skipped", "not run: an earlier block failed")
            else:
                before = None if self._session is None else self._session.last
                self._may_repeat = self._sampled
                try:
                    seen = bounded(self._observed(action), self._cap)
                    done[index] = replace(seen, repeatable=True) if self._may_repeat else seen
                except KeyboardInterrupt:
                    done[index] = bounded(self._with_effects(self._interrupted(action, before)), self._cap)
                    rest = failed_action("skipped", "not run: the run was interrupted")
                    raise Unfinished(tuple(done.get(i, rest) for i in range(len(actions)))) from None
                if isinstance(action, (RunCode, CallTool)):
                    if done[index].ok:
                        self._result = done[index].text.strip()
                    else:
                        failed = failed or isinstance(action, RunCode)
        return tuple([done[i] for i in range(len(actions))])

    def _interrupted(self, action: Action, before: CellResult | None) -> Observation:
        """What an action led to until Ctrl-C: of a cell, what it had printed."""
        cell = None if self._session is None else self._session.last
        if cell is None or cell is before or not isinstance(action, (RunCode, CallTool)):
            return failed_action("interrupted", "the user interrupted it")
        return self._cell_observation(cell)

    def collect(self, expression: str) -> Any:
        """The task's artifact: the git diff of a workspace, else the value of an expression in the REPL."""
        if self.workspace is not None:
            return self.workspace.diff()
        if not expression or self._open_repl is None:
            return None
        left = self._seconds_left()
        with suppress(Exception):  # what the model left in the REPL may raise anything; then there is no artifact
            session = self._repl()
            if left is None:
                return session.get(expression)
            own = self._cell_timeout
            return session.get(expression, timeout=max(left, _LAST) if own is None else min(own, max(left, _LAST)))
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
                ends = self._result and Note.RESULT_ANSWERS in action.notes
                return self._text_answer(self._result) if ends else failed_action(kind, reason)
            case Answer(value):
                return self._text_answer(value)
            case RunCode(code):
                if self._approve is not None and (refused := self._approve(action)) is not None:
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
        self._cell, name = None, action.name
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
        own, left = self._cell_timeout, self._seconds_left()
        try:
            if left is None or (own is not None and own < left):
                return self._repl().run(code, timeout=own)
            if left == 0:
                raise BudgetSpent("seconds", "the time of the run is up: the cell was not run")
            return self._repl().run(code, timeout=left, grace=_HURRY)
        except BudgetSpent as spent:
            return CellResult(error="budget", message=spent.reason)
        except OSError as error:  # of ours: what a cell's own code raises is in its result
            where = f" ({error.filename})" if error.filename else ""
            raise ReplError(
                f"the REPL's files cannot be written: {error.strerror or error}{where}; free some space, or set TMPDIR "
                "to another disk"
            ) from error
        finally:
            if (calls := self._noted.taken()) and self._keep_calls is not None:
                self._keep_calls(calls)

    def _cell_observation(self, cell: CellResult) -> Observation:
        seen = cell_observation(cell, self._cap)
        return seen if cell.error is not None or cell.answer is None else self._offer(cell.answer, seen)

    def _offer(self, given: FinalAnswer, seen: Observation) -> Observation:
        """Take an answer, or say why it is refused."""
        given, problem = self.check(given)
        if problem is not None:
            text = "\n".join(filter(None, [seen.text, problem]))
            refused = Observation(text, Failure("rejected", problem), "error", pending=given, seconds=seen.seconds)
            return replace(refused, truncated=seen.truncated, full=seen.full)
        self._answer = given
        return replace(seen, answer=given)

    def _caller(self, gateway: ToolGateway, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if name in self._polls or kwargs.get(KEY) is not None:
                self._may_repeat = True
            return gateway.call_function(name, args, kwargs)

        function = gateway.tool(name).function  # so that `help(tool)` in a cell says what there is to know
        call.__doc__, call.__signature__ = inspect.getdoc(function), inspect.signature(function)  # pyright: ignore[reportFunctionMemberAccess]
        return call

    def _python(self, code: str) -> str:
        try:
            self._cell = self._run(dedented(code))  # as a fenced block is
        except Exception as fault:
            self._fault = fault
            raise
        return self._cell.output

    def _repl(self) -> Session:
        if self._session is None:
            if self._open_repl is None:
                raise RuntimeError("this task has no REPL; open the environment with repl=...")
            session = self._open_repl()
            try:
                session.new_run()
                if self._context is not None:
                    session.set("context", self._context, reserved=True)
                session.add_tools(self._in_cell)
            except BaseException:
                if session is not self._lent:
                    session.close()
                raise
            self._session = session
        return self._session


def _ends(action: Action) -> bool:
    return isinstance(action, CallTool) and action.name == "final_answer"
