"""An agent: a frozen record of a strategy and its settings, with a friendly `.run()`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

from rlm_loop.accounting.budget import Account, Budget, UnknownPrice
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents.answers import AnswerCheck
from rlm_loop.agents.background import BackgroundRun, awaited
from rlm_loop.agents.cells import Cells
from rlm_loop.agents.checking import checked, limited, listed, repl_of, session_in
from rlm_loop.agents.compaction import Compaction, Policy, plan_of
from rlm_loop.agents.config import agent_config, settings_of
from rlm_loop.agents.conversation import Conversation
from rlm_loop.agents.environment import ActionLimits, Environment, Offer
from rlm_loop.agents.localise import Localise
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.question import asked, in_workspace, unscored, with_context
from rlm_loop.agents.record import RunLog, record_start
from rlm_loop.agents.recursion import Recursion, SubcallRunner, query_tools
from rlm_loop.agents.rules import Rules, SubCalls
from rlm_loop.agents.run import Interrupted, Run, attach, noted, with_hooks
from rlm_loop.agents.session import AgentSession, Exchange
from rlm_loop.agents.window import window_of
from rlm_loop.dialects.base import Dialect, Problem
from rlm_loop.dialects.injectors import Injected, Injector, Told
from rlm_loop.dialects.wording import MAY_BLOCK
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import get_model
from rlm_loop.models.base import Model, ModelError
from rlm_loop.models.names import Seeded, default_model
from rlm_loop.outcome import Outcome
from rlm_loop.repl import open_repl
from rlm_loop.repl.base import Session
from rlm_loop.repl.contexts.context import describe_context, inline_context
from rlm_loop.repl.contexts.fingerprint import Fingerprint
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import Tool, as_tool
from rlm_loop.tools.hooks import NO_HOOKS, Hooks
from rlm_loop.tools.serving import ToolLike, serving
from rlm_loop.traces.display import drawing
from rlm_loop.traces.trace import Trace
from rlm_loop.traces.values import plain
from rlm_loop.workspace import Workspace

#: The history of a session whose agent has none: the oldest turns go only when the model's window is full.
_WHOLE_WINDOW = Compaction("window", threshold_tokens=1_000_000_000)


@dataclass(frozen=True)
class FirstRequest:
    """The first request of a run and its parts, made without calling a model."""

    prompt: Prompt
    tools: tuple[Tool, ...]
    dialect: Dialect


class Unasked(Model):
    """A model that is never called, and says why."""

    def __init__(self, name: str, reason: str = "only the request was to be made; no model is called for it") -> None:
        self.name, self.reason = name, reason

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        raise ModelError(self.reason, self.name)


@dataclass(frozen=True)
class Agent:
    """The settings that all strategies share.

    Who answers:

    - `model`: a name (see `models.get_model`) or a model; by default what the environment's `RLM_LOOP_MODEL` names,
      else `local`.
    - `temperature`: 0 to 2, sent with each request in place of the model's own; `None` leaves it to the model.
    - `max_tokens`: tokens of each reply at most.

    Limits of each run:

    - `budget`: all limits, seconds of a cell and of a tool call included.
    - `max_steps`: short form of the budget's limit of steps.
    - `seconds`: short form of the budget's limit of seconds.

    What it can use:

    - `tools`: offered beside the task's own.
    - `repl`: the kind of session (`"auto"`), a function that makes a session for each run, or a session of yours,
      which stays open and can be used again.
    - `subcalls`: how it may ask models (`SubCalls`).
    - `max_depth`: short form of the levels of sub-calls; 0 forbids them.
    - `rules`: what may run, and how it may end (`Rules`).

    What it is told:

    - `system`: replaces the dialect's own fixed text.
    - `injectors`: add text (see `dialects.injectors`); `Localise` tells of a workspace's files after the question.
    - `history`: shortens a long history (`"drop_outputs"`, `"window"`, `"summary"`, a number of messages or a
      `Compaction`; `None`: never).

    When an answer counts:

    - `answer_type`: what the answer must be; another is refused, with the reason.
    - `verify`: a function of the answer; `False` or a text refuses it.

    Who watches:

    - `hooks`: told of each step, tool call and sub-call (see `rlm_loop.tools.hooks`).
    """

    model: str | Model = field(default_factory=default_model)
    budget: Budget = field(default_factory=Budget)
    temperature: float | None = None
    max_tokens: int | None = None
    tools: tuple[ToolLike, ...] = ()
    repl: str | Callable[[], Session] | Session = "auto"
    system: str | None = None
    injectors: tuple[Injector | Localise, ...] = ()
    history: Policy | int | Compaction | None = None
    hooks: tuple[object, ...] = ()
    answer_type: Any = None
    verify: Callable[[Any], bool | str | None] | None = None
    subcalls: SubCalls = field(default_factory=SubCalls)
    rules: Rules = field(default_factory=Rules)
    max_steps: InitVar[int | None] = field(default=None, kw_only=True)
    seconds: InitVar[float | None] = field(default=None, kw_only=True)
    max_depth: InitVar[int | None] = field(default=None, kw_only=True)

    def __post_init__(self, max_steps: int | None, seconds: float | None, max_depth: int | None) -> None:
        checked(self)
        object.__setattr__(self, "budget", limited(self.budget, max_steps, seconds))
        if max_depth is not None:
            object.__setattr__(self, "subcalls", replace(self.subcalls, depth=max_depth))
        for name, one in (("tools", "tools"), ("injectors", "injectors"), ("hooks", "objects")):
            object.__setattr__(self, name, listed(name, getattr(self, name), one))  # never shared with the caller
        if self.tools:
            object.__setattr__(self, "repl", repl_of(self.repl, self.tools))
            object.__setattr__(self, "tools", tuple(t for t in self.tools if session_in(t) is None))

    # -- what the strategy is

    @property
    def name(self) -> str:
        """Name of the strategy in tables and traces."""
        return self.dialect.name

    @cached_property
    def dialect(self) -> Dialect:
        """The language of the strategy, its injectors included."""
        injectors = tuple(i for i in self.injectors if not isinstance(i, Localise)) if self.injectors else ()
        if self.rules.may_block:
            injectors = (*injectors, Told(MAY_BLOCK, "may_block"))
        return Injected(self._speaks(), injectors) if injectors else self._speaks()

    def _speaks(self) -> Dialect:
        raise NotImplementedError("use ToolLoopAgent, LeanAgent, ReActAgent or DirectAgent")

    def _answers_by_tool(self) -> bool:
        return True

    def compaction(self) -> Compaction | None:
        """Return when a long history is shortened; `None`: never."""
        return None if self.history is None else plan_of(self.history)

    def inlined(self, context: Any) -> str:
        """The context as text, for a strategy that does not act."""
        return inline_context(context)

    def settings(self) -> dict[str, Any]:
        """Return what identifies the strategy, as JSON types: not models, hooks, functions and tools' code."""
        return plain(self.described())

    def described(self) -> dict[str, Any]:
        """The settings as values, which a trace writes as JSON."""
        return settings_of(self)

    def own_model(self) -> Model:
        """The agent's model.  Raises as `get_model` does."""
        if isinstance(self.model, Model):
            return self.model
        return get_model(self.model, **({"seed": self.model.seed} if isinstance(self.model, Seeded) else {}))

    def recursion(self) -> Recursion:
        """Return the settings of one run's sub-calls; raises `UnknownPrice` where a cost limit could not be kept."""
        return Recursion.of(self.subcalls, self.budget)

    # -- running

    def run(
        self,
        question: str,
        *,
        context: Any = None,
        tools: Iterable[ToolLike] | None = None,
        workspace: Workspace | None = None,
        trace: str | Path | Trace | None = None,
        hooks: Iterable[object] = (),
        live: bool = False,
    ) -> Outcome:
        """Work on a question until there is an answer or a limit is reached.

        `context` becomes the REPL variable of that name, of which the model is told type, size and a preview; a
        `Path` is the file that it names, read where the cells run (`docs/contexts.md`).
        `tools` replace the agent's own for this run; `trace` is a file to append to.  `hooks` are told of this run
        besides the agent's own; `live` shows it while it goes on, in a notebook or as text.
        Raises `ModelError` (no reply could be had) and `Interrupted` (Ctrl-C), both with the partial outcome, and
        `ContextError` for a path that cannot be read.
        """
        agent = self if tools is None else replace(self, tools=tools)
        agent = agent.hearing(hooks, live) if hooks or live else agent
        return agent.attempt(asked(question, context), trace=trace, workspace=workspace)

    def start(self, question: str, *, hooks: Iterable[object] = (), **options: Any) -> BackgroundRun:
        """Run in the background: returns at once; `.stop()` ends the run, `.result()` waits for its outcome.

        `options` are those of `run`.
        """
        return BackgroundRun(lambda more: self.run(question, hooks=(*hooks, *more), **options)).begin()

    async def arun(self, question: str, *, hooks: Iterable[object] = (), **options: Any) -> Outcome:
        """Run without blocking the event loop; where the task that awaits it is cancelled, the run is stopped.

        `options` are those of `run`, and it raises as `run` does.
        """
        return await awaited(lambda more: self.run(question, hooks=(*hooks, *more), **options))

    def session(
        self,
        *,
        context: Any = None,
        tools: Iterable[ToolLike] | None = None,
        workspace: Workspace | None = None,
        trace: str | Path | Trace | None = None,
    ) -> AgentSession:
        """Questions that follow each other: `with agent.session(context=df) as s: s.ask("...")`.

        Messages and REPL live on from question to question; each has the agent's budget anew.  `history` bounds the
        messages; an agent without it leaves out the oldest turns when the model's window is full.  The arguments are
        those of `run`.  Raises `ContextError` for a path that cannot be read.
        """
        agent = self if tools is None else replace(self, tools=tools)
        source = partial(open_repl, agent.repl) if isinstance(agent.repl, str) else agent.repl
        conversation = Conversation(agent.dialect, agent.compaction() or _WHOLE_WINDOW)
        return AgentSession(agent, conversation, Cells(source, kept=True), context, workspace, trace)

    def attempt(
        self,
        task: Task,
        *,
        trace: str | Path | Trace | None = None,
        workspace: Workspace | None = None,
        exchange: Exchange | None = None,
    ) -> Outcome:
        """Work on a task of a suite; raises as `run` does.  `exchange` is its place in a session."""
        if isinstance(workspace, (str, PathLike)):
            raise TypeError(f"workspace is a Workspace, not a path: write workspace=Workspace({str(workspace)!r})")
        if task.context is not None:
            task = with_context(task)  # a deferred context is made before the clock starts
        model = self.own_model()
        record = trace.for_run() if isinstance(trace, Trace) else Trace(trace)
        kept = trace is not None and (exchange is None or record.path is not None)  # else nobody reads the hash
        hashed = None
        if kept and task.context is not None:
            hashed = Fingerprint(task.context, lambda about: record.record("context", **about))
        account, recursion = Account(self.budget, price=model.price), self.recursion()
        meter = self._meter(Meter(model, account, Ledger(), record), recursion)
        more: dict[str, Any] = {"made": agent_config(self), "price": model.price, "window": window_of(model)}
        if exchange is not None:
            more["session"] = exchange.about
        known = None if hashed is None else hashed.known
        record_start(record, task, self.dialect.name, self.described(), model.name, account.budget, known, **more)
        try:
            if hashed is None:
                return self._solved(task, meter, recursion, workspace, exchange)
            hashed.begin()
            outcome = self._solved(task, meter, recursion, workspace, exchange)
            hashed.end(account.seconds_left())
            return outcome
        finally:
            meter.node.end_children()
            if hashed is not None:
                hashed.end(0)
            if not isinstance(trace, Trace):
                record.close()

    def attempt_on(self, task: Task, meter: Meter, told: Sequence[Injector] = ()) -> Outcome:
        """Make one of several attempts at a task, with the account, ledger, trace, node and turn of `meter`.

        The model itself is the agent's own; the texts of `told` follow the question.  The outcome's usage and ledger
        are the account's, so earlier attempts are in them.  Raises as `run` does.
        """
        own, recursion = self.own_model(), self.recursion()
        account = meter.account.scope(self.budget, price=own.price)
        if account.priced and own.price is None:
            raise UnknownPrice("a cost limit needs a model whose price is known; limit tokens or calls instead")
        inner = meter.scoped(meter.node, purpose="agent", model=own, account=account)
        return self._solved(task, self._meter(replace(inner, turn=meter.turn), recursion), recursion, told=told)

    def _meter(self, meter: Meter, recursion: Recursion) -> Meter:
        """The meter with what the agent decides."""
        return replace(
            meter,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            hooks=Hooks(self.hooks) if self.hooks else NO_HOOKS,
            slots=recursion.tree.calls,
            price=meter.model.price,
        )

    def _solved(
        self,
        task: Task,
        meter: Meter,
        recursion: Recursion,
        workspace: Workspace | None = None,
        exchange: Exchange | None = None,
        told: Sequence[Injector] = (),
    ) -> Outcome:
        """The outcome of the whole run, of which the hooks are told."""

        def solve() -> Outcome:
            with self.open(task, meter, recursion, workspace=workspace, exchange=exchange, told=told) as run:
                outcome = run.solve()
            return noted(outcome, run.environment.faults) if run.environment.faults else outcome

        return solve() if meter.hooks is NO_HOOKS else with_hooks(task, self.dialect.name, meter, solve)

    def first_request(self, task: Task) -> FirstRequest:
        """The first request of a run of this task.  No model is called, none is loaded, and no REPL is started."""
        model = Unasked(self.model if isinstance(self.model, str) else self.model.name)
        meter = Meter(model, Account(Budget(), price=(0.0, 0.0)), Ledger(), Trace())
        recursion = replace(self, subcalls=replace(self.subcalls, model=None)).recursion()
        with self.open(with_context(task), meter, recursion) as run:
            speaks = run.conversation.dialect
            return FirstRequest(run.conversation.prompt, tuple(run.environment.tools.values()), speaks)

    @contextmanager
    def open(
        self,
        task: Task,
        meter: Meter,
        recursion: Recursion,
        *,
        workspace: Workspace | None = None,
        exchange: Exchange | None = None,
        told: Sequence[Injector] = (),
    ) -> Generator[Run]:
        """A run of the task that has been put and took no turn yet; what it opens is closed with it.

        A `workspace` that is given stays open.  The texts of `told` follow the question.
        """
        dialect = self.dialect
        mode = dialect.action_mode
        run: Run | None = None
        try:
            with ExitStack() as stack:
                own: Sequence[ToolLike] = ()
                if self.tools or task.tools:
                    own, offered = stack.enter_context(serving(self.tools, task.tools))
                    task = replace(task, tools=tuple(offered)) if offered is not task.tools else task
                opened = None
                if workspace is None and mode != "none" and task.workspace is not None:
                    workspace = opened = task.workspace()
                log = RunLog(meter)
                queries = SubcallRunner(meter, recursion, self._sub_agent(task, own, recursion))
                place = self.environment(task, own, queries, meter, log, workspace, exchange)
                if opened is not None:
                    stack.callback(place.quietly, "the workspace could not be closed", opened.close)
                stack.enter_context(place)
                ends = partial(threading.Thread, target=place.close, daemon=True)
                ended = meter.node.scope.at_end(lambda: ends().start())
                stack.callback(meter.node.scope.forget, ended)
                if exchange is None:
                    compaction = None if self.history is None else plan_of(self.history)
                    conversation = Conversation(dialect, compaction, number=meter.turn)
                else:
                    conversation = exchange.conversation
                meter.turn = conversation.number
                began = meter.account.seconds if meter.node.depth else 0.0
                run = Run(task, conversation, place, meter, dialect.name, began=began)
                problem, brief = self.problem(task, workspace)
                log.problem(task, problem, place.tools.values(), brief, mode, place.cells is not None, workspace)
                if exchange is not None:
                    problem = exchange.begin(problem, meter)
                if workspace is not None:
                    problem = in_workspace(problem, place.tools)
                asks = exchange is None or exchange.asks
                conversation.start(problem, place.tools, meter, (*brief, *told), asks=asks)
                yield run
        except BaseException as error:
            if run is not None:
                _note_faults(error, run)
            raise

    def problem(self, task: Task, workspace: Workspace | None) -> tuple[Problem, tuple[Injector, ...]]:
        """The task as the model is told it, with what it is told of files (of the workspace, else of the task's)."""
        if self.dialect.action_mode == "none":
            inline = "\n\n".join(filter(None, [task.inline, self.inlined(task.context)]))
            problem = Problem(task.question, "", inline)
        else:
            problem = Problem(task.question, "" if task.context is None else describe_context(task.context))
        brief: list[Injector] = []
        for localise in self.injectors:
            if not isinstance(localise, Localise):
                continue
            if workspace is not None:
                brief += localise.told(task.question, workspace)
            elif task.workspace is not None:
                with task.workspace() as opened:
                    brief += localise.told(task.question, opened)
        return problem, tuple(brief)

    def environment(
        self,
        task: Task,
        tools: Iterable[ToolLike],
        asks: SubcallRunner,
        meter: Meter,
        log: RunLog,
        workspace: Workspace | None,
        exchange: Exchange | None,
        make: Callable[..., Environment] = Environment,
    ) -> Environment:
        """Make the environment of a run of the task."""
        dialect, depth, limits = self.dialect, self.subcalls.depth, self.budget
        mode = dialect.action_mode
        queries = query_tools(asks) if mode != "none" and (depth > 0 or self.subcalls.beyond != "error") else ()
        told = task.context is not None or depth > 1  # else a cell may ask, and the model is not told of it
        cells = None if exchange is None or mode == "none" else exchange.cells
        if cells is not None:
            cells.context = task.context
        elif mode != "none" and (task.needs_repl or mode == "code" or isinstance(self.repl, Session)):
            source = self.repl
            if isinstance(source, str):
                source = partial(open_repl, source, files=task.files, setup=task.setup)
            cells = Cells(source, task.context)
        own = tuple(map(as_tool, (*task.tools, *tools)))
        left = meter.account.seconds_left
        return make(
            cells,
            Offer((*own, *queries) if told else own, () if told else queries, mode, self._answers_by_tool()),
            workspace,
            (self.rules, AnswerCheck(self.answer_type, self.verify)),
            ActionLimits(limits.cell_seconds, limits.tool_seconds, dialect.observation_cap, left),
            log,
        )

    def _sub_agent(
        self, task: Task, tools: Iterable[ToolLike], recursion: Recursion
    ) -> Callable[[str, Any, Meter], Outcome]:
        """A function that runs this strategy one level down.

        It has the tools of this run, a REPL of its own, and no checks of the answer, which are for the whole question.
        """

        def run(question: str, context: Any, meter: Meter) -> Outcome:
            repl = self.repl if isinstance(self.repl, str) or callable(self.repl) else "auto"
            below = replace(self, model=meter.model, tools=tuple(tools), answer_type=None, verify=None, repl=repl)
            about = Task("llm_query", question, unscored, context=context, tools=task.tools)
            with below.open(about, meter, recursion) as inner:
                outcome = inner.solve()
            return noted(outcome, inner.environment.faults)

        return run

    def hearing(self, hooks: Iterable[object], live: bool) -> Agent:
        """The agent with more hooks, and with a live view where one is wanted."""
        view = (drawing("rlm_loop.report.notebook.live.LiveView")(),) if live else ()
        return replace(self, hooks=(*self.hooks, *hooks, *view))


def _note_faults(error: BaseException, run: Run) -> None:
    """Keep the outcome with an error, and say in it what could not be cleaned up."""
    left, faults = getattr(error, "outcome", None), run.environment.faults
    if isinstance(left, Outcome):
        attach(error, noted(left, faults))
    elif run.outcome is not None and isinstance(error, KeyboardInterrupt):  # it was being closed when Ctrl-C came
        raise Interrupted(noted(run.outcome, faults)) from None
