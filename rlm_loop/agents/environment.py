"""The place where actions happen: the tools, the REPL, the workspace and the answer of one run.

Every strategy acts through the same `perform`, so results, errors and clipping do not depend on how it speaks.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.actions import Action, Answer, CallTool, Failure, FinalAnswer, Malformed, Observation, RunCode
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.rules import approval, refusal, typed
from rlm_loop.repl import open_repl
from rlm_loop.repl.base import CellResult, EvaluationFailed, ReplError
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.repl.records import CellRecord
from rlm_loop.repl.session import Session
from rlm_loop.repl.text import HARD_CAP, RECORD_CAP, clip, clip_again, dedented
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import Tool, as_tool, describe
from rlm_loop.tools.gateway import KEY, ToolGateway, ToolLike
from rlm_loop.workspace import Workspace, WorkspaceError

_log = logging.getLogger(__name__)
LOOK_FIRST = "Work it out with code before you answer."
#: Tools that belong to a loop of function calls itself: the REPL, and the one that ends the run.
OF_THE_LOOP = ("python", "final_answer")
#: Names that belong to the REPL protocol as well; no tool may take them.
_RESERVED = frozenset(("context", *OF_THE_LOOP))
_PYTHON_HELP = "Run Python code in a persistent REPL and get what it prints."
_LAST = 2.0  # seconds to take the artifact of a run whose time is up; a `__repr__` of a cell's may never end
_HURRY = 0.2  # seconds for a cell to stop at the time limit of the run, which is to be kept
_MOST = 1000  # names told of one look: a trace stays small also where a cell unpacks an archive
PENDING = "final_answer was set, but the cell failed: set it again to confirm it."


def _final_answer(answer: Any) -> Any:
    return answer


FINAL_ANSWER = Tool("final_answer", "Give the answer and end the task.", _final_answer)


class Environment:
    """Performs the actions of one run of an agent: calls of tools, cells of the REPL, answers.

    `tools` are the task's and the agent's own, `queries` those that make sub-calls; `record` has the trace, the hooks
    and the time left.  By code tools are functions in the REPL.  By calls the REPL is the tool `python`, and the tool
    `final_answer` gives the answer (without `answer_tool` a reply that calls nothing does).  An agent that does not act
    is offered nothing.  A session is made when a cell first needs it; one that is given stays open.  A workspace is
    closed by who opened it.
    Raises `ValueError` where tool names clash, and names all of them.
    """

    def __init__(
        self,
        agent: Any,
        task: Task,
        tools: Iterable[ToolLike],
        queries: Sequence[Tool],
        record: Meter,
        workspace: Workspace | None = None,
    ) -> None:
        mode, depth, self._rules = agent.dialect.action_mode, agent.subcalls.depth, agent.rules
        queries = queries if mode != "none" and depth > 0 else ()
        quiet = queries if task.context is None and depth == 1 else ()  # cells may ask, and the model is not told of it
        own = [*map(as_tool, tools), *(() if quiet else queries), *(workspace.tools() if workspace is not None else ())]
        reached = (*own, *quiet)
        names = [tool.name for tool in reached]
        if clashes := [n for n in names if names.count(n) > 1 or n in _RESERVED]:
            raise ValueError(f"these tool names are taken or used twice: {', '.join(sorted({*clashes}))}; rename them")
        self.workspace, self._context = workspace, task.context
        self.has_repl = mode != "none" and (task.needs_repl or mode == "code" or isinstance(agent.repl, Session))
        self._source: Callable[[], Session] | Session | None = None
        if self.has_repl:
            repl: Any = agent.repl
            named = isinstance(repl, str)
            self._source = partial(open_repl, repl, files=task.files, setup=task.setup) if named else repl
        self._session: Session | None = None
        self._answer_type, self._verify = agent.answer_type, agent.verify
        self.evidence: dict[str, Any] | None = None
        """The check that an answer has passed, for the outcome."""
        approve = self._rules.approve
        self._approval = None if approve is None else approval(approve, partial(record.record, "approval"))
        self._limits, self._record = agent.budget, record
        self._characters = min(agent.dialect.observation_cap, HARD_CAP)
        self.interrupted = False
        self.asks_for_code = self._rules.require_code
        """True while a text answer would be sent back once, since no code has run."""
        self._effects = None if workspace is None else Effects(workspace, record)
        self._answer: FinalAnswer | None = None
        self._cell: CellResult | None = None  # the latest, of this action
        self._fault: Exception | None = None  # of ours in `python`: it ends the run, as that of a fenced cell does
        self._may_repeat = False
        called = list(own)
        if mode == "calls":
            called += [Tool("python", _PYTHON_HELP, self._python, timeout=float("inf"))] if self.has_repl else []
            called += [FINAL_ANSWER] if agent.answer_tool else []
        allow = self._rules.allow
        self._gateway = ToolGateway(
            called,
            quiet,
            allow=None if allow is None else {*allow, *OF_THE_LOOP},  # no list of tools is about these
            timeout=agent.budget.tool_seconds,
            cap=self._characters,
            hooks=record.hooks,
            node=record.node.path,
            about=record.about,
            seconds_left=record.account.seconds_left,
            approve=self._approval,
        )
        self._functions = {tool.name: self._caller(tool) for tool in reached} if self.has_repl else {}
        self.tools: Mapping[str, Tool] = {} if mode == "none" else {t.name: t for t in self._gateway.tools}

    @property
    def isolation(self) -> str:
        """The isolation of the cells from this machine; empty where no cell was run."""
        return "" if self._session is None else self._session.isolation

    def resume(self, cells: Sequence[CellRecord]) -> tuple[str, ...]:
        """Run recorded cells again, with recorded answers of the host; returns what differed, a line each."""
        session = self._open()
        try:
            return session.run_again(cells, self._functions)
        finally:
            session.new_run()

    def close(self) -> None:
        """Close the session that the run opened, or take from one of the caller's the names that the run put there."""
        session, self._session = self._session, None
        if session is None:
            return
        with shielded():
            if session is not self._source:
                quietly("the session could not be closed", session.close)
                return
            with suppress(ReplError):  # it was closed meanwhile, or is broken: there is nothing to give back
                session.give_back(self._functions if self._context is None else ["context", *self._functions])

    def perform(self, actions: Sequence[Action]) -> tuple[Observation, ...]:
        """Perform the actions in order; one observation for each.

        Calls that end the run are done last, so that others in the same reply still happen.  After an answer, after a
        cell that raised (further cells) and after Ctrl-C (`interrupted` is true then) the rest is skipped, and its
        observations say so.
        """
        done: dict[int, Observation] = {}
        failed = False
        order = list(enumerate(actions))
        if len(actions) > 1 and not self._rules.one_action:
            order.sort(key=lambda one: isinstance(one[1], CallTool) and one[1].name == "final_answer")
        for index, action in order:
            skipped = None
            if self.interrupted:
                skipped = "the run was interrupted"
            elif self._rules.one_action and index:
                skipped = "one action a reply is run; send it again alone"
            elif self._answer is not None:
                skipped = "the answer had been given"
            elif failed and isinstance(action, RunCode):
                skipped = "an earlier block failed"
            done[index] = Observation.failed("skipped", f"not run: {skipped}") if skipped else self._observed(action)
            failed = failed or (isinstance(action, RunCode) and done[index].failure is not None)
        return tuple([done[index] for index in range(len(actions))])

    def collect(self, expression: str) -> Any:
        """Return the task's artifact: the git diff of a workspace, else the value of an expression in the REPL.

        `None` where the model left nothing that can be evaluated.  Raises `ReplError` and `WorkspaceError` for faults
        of the machine.
        """
        if self.workspace is not None:
            return self.workspace.diff()
        if not expression or (self._session is None and not isinstance(self._source, Session)):
            return None
        limits = self._limits.cell_seconds, self._record.account.seconds_left()
        seconds = min([max(limit, _LAST) for limit in limits if limit is not None], default=None)
        with suppress(EvaluationFailed):
            return self._open().get(expression, timeout=seconds)
        return None

    def patch_so_far(self) -> str | None:
        """Return the patch where a run broke off: the git diff, else the last one that was seen."""
        if self.workspace is None or self._effects is None:
            return None
        try:
            return self.workspace.diff()
        except Exception:  # the workspace itself may be what broke
            return self._effects.patch

    def _observed(self, action: Action) -> Observation:
        """Perform one action; in a workspace, see which files changed since the action before."""
        self._may_repeat, self._cell = self._record.samples, None  # a repeated reply is chance where it is drawn
        effects = self._effects if isinstance(action, (RunCode, CallTool)) else None
        try:
            seen = self._perform(action)
            seen = seen if effects is None else replace(seen, effects=effects())
        except KeyboardInterrupt:
            self.interrupted = True
            seen = Observation.failed("interrupted", "the user interrupted it")
            if self._cell is not None:  # what it had printed
                seen = self._cell_observation(self._cell)
            seen = seen if effects is None else replace(seen, effects=effects())
        if len(seen.text) > self._characters:
            text, _ = clip_again(seen.text, self._characters)
            seen = replace(seen, text=text, truncated=True, full=seen.full or clip(seen.text, RECORD_CAP)[0])
        return replace(seen, repeatable=True) if self._may_repeat else seen

    def _perform(self, action: Action) -> Observation:
        match action:
            case Malformed(reason, kind):
                return Observation.failed(kind, reason)
            case Answer() if self.asks_for_code:  # asked once: small models like to answer at once without looking
                self.asks_for_code = False
                return Observation.failed("rejected", LOOK_FIRST)
            case Answer(value):
                return self._offer(FinalAnswer(value, "text"), Observation())
            case RunCode(code):
                if self._approval is not None and (refused := self._approval(action)) is not None:
                    return Observation.failed("denied", refused)
                return self._cell_observation(self._run(code))
            case CallTool():
                return self._call(action)

    def _call(self, action: CallTool) -> Observation:
        name = action.name
        try:
            result = self._gateway.call(name, action.arguments, call_id=action.call_id, intent=action.intent)
        except BudgetSpent as spent:
            return Observation.failed("budget", spent.reason)
        self._may_repeat |= result.repeated or (name in self.tools and self.tools[name].polls)
        if self._fault is not None:
            raise self._fault
        if self._cell is not None:
            return self._cell_observation(self._cell)
        about = dict[str, Any](truncated=result.truncated, full=result.full, printed=result.printed)
        about |= {"seconds": result.seconds, "cause": "tool_result" if result.ok else "error"}
        seen = Observation(result.text, result.failure, **about)
        return self._offer(FinalAnswer(result.data, "object"), seen) if result.ok and name == "final_answer" else seen

    def _run(self, code: str) -> CellResult:
        self.asks_for_code = False
        limit, left = self._limits.cell_seconds, self._record.account.seconds_left()
        if left == 0:
            return CellResult(error="budget", message="the time of the run is up: the cell was not run")
        try:
            session = self._open()
            session.last = None
            if left is None or (limit is not None and limit < left):
                return session.run(code, timeout=limit)
            return session.run(code, timeout=left, grace=_HURRY)
        except BudgetSpent as spent:
            return CellResult(error="budget", message=spent.reason)
        except OSError as error:  # of ours: what a cell's own code raises is in its result
            raise ReplError(
                f"the REPL's files cannot be written: {error}; free some space, or set TMPDIR to another disk"
            ) from error
        finally:
            self._cell = None if self._session is None else self._session.last
            if self._cell is not None and self._cell.calls:
                made = [{"name": c.name, "asked": c.asked, "outcome": c.outcome} for c in self._cell.calls]
                self._record.record("cell_calls", calls=made)

    def _open(self) -> Session:
        if self._session is None:
            assert self._source is not None  # else no cell could be asked for
            session = self._session = self._source if isinstance(self._source, Session) else self._source()
            session.new_run()
            if self._context is not None:
                session.set("context", self._context, reserved=True)
            session.add_tools(self._functions)
        return self._session

    def _cell_observation(self, cell: CellResult) -> Observation:
        """Join what a cell printed, and below it what went wrong; take an answer that it set."""
        below = [cell.message] if cell.error not in (None, "runtime") else []
        below += [PENDING] if cell.pending is not None else []
        more, _ = clip("\n".join(below), self._characters // 2)
        shorten = clip_again if cell.truncated else clip  # what looks like a mark may be the cell's own
        text, cut = shorten(cell.output, self._characters - len(more) - (1 if more else 0))
        seen = Observation(
            "\n".join(filter(None, [text, more])),
            None if cell.error is None else Failure(cell.error, cell.message),
            "repl_output",
            pending=None if cell.error is None else cell.pending,
            seconds=cell.seconds,
            truncated=cell.truncated or cut,
            displays=cell.displays,
            full=cell.full or (cell.output if cut else ""),
            effects=cell.effects,
        )
        return seen if cell.error is not None or cell.answer is None else self._offer(cell.answer, seen)

    def _offer(self, offered: FinalAnswer, seen: Observation) -> Observation:
        """Take an answer, or say why it is refused."""
        answer, problem = offered, None
        if self._answer_type is not None:
            answer, problem = typed(offered, self._answer_type)
        if problem is None and self._verify is not None:
            problem = refusal(answer, self._verify)
        if problem is None:
            self.evidence = self._verify and {"verify": getattr(self._verify, "__name__", "verify")}
            self._answer = answer
            return replace(seen, answer=answer)
        text = "\n".join(filter(None, [seen.text, problem]))
        failure = Failure("rejected", problem)
        return replace(seen, text=text, failure=failure, cause="error", pending=answer, effects={}, displays=())

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


class Effects:
    """Calling it tells what changed in the workspace since the last call.

    `added`, `changed` and `removed` are names, `hashes` git's hash of each one's contents before and after (empty: no
    such file), `tree` git's id of all files now.  Beyond 1000 names `left_out` counts the rest.  No change is an empty
    mapping; where git cannot look (the folder was removed), `unknown` says why.  The tree and the patch of every state
    are recorded; `patch` is that of the latest.
    """

    def __init__(self, workspace: Workspace, record: Meter) -> None:
        self._workspace, self._record = workspace, record
        self._seen = workspace.snapshot()  # the latest tree
        self.patch = ""

    def __call__(self) -> Mapping[str, Any]:
        try:
            before, self._seen = self._seen, self._workspace.snapshot()
            now = self._seen
            if now == before:
                return {}
            hashes = self._workspace.hashes_between(before, now)
        except (WorkspaceError, OSError) as error:
            return {"unknown": str(error)}
        self.patch = self._workspace.diff(until=now)
        self._record.trace.patch(now, self.patch, **self._record.where)
        found: dict[str, Any] = {"added": [], "changed": [], "removed": [], "hashes": {}, "tree": now}
        for name, (old, new) in list(hashes.items())[:_MOST]:
            found["added" if not old else "changed" if new else "removed"].append(name)
            found["hashes"][name] = [old, new]
        return found if len(hashes) <= _MOST else {**found, "left_out": len(hashes) - _MOST}


def quietly(fault: str, clean_up: Callable[[], None]) -> None:
    """Clean up; what goes wrong is a line of the log, since an outcome is not lost over it."""
    try:
        clean_up()
    except Exception as error:
        _log.warning("%s: %.200s", fault, describe(error))
