"""An agent: a frozen record of a strategy and its settings, with a friendly `.run()`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from rlm_loop.accounting.budget import Account, Budget
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents.checking import asked, checked, in_workspace, refuse_settings, unscored, with_context
from rlm_loop.agents.compaction import Compaction, Policy, plan_of, window_of
from rlm_loop.agents.config import record_problem, record_start, settings_of
from rlm_loop.agents.conversation import Conversation
from rlm_loop.agents.environment import Environment, quietly
from rlm_loop.agents.localise import Localise
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.rules import Rules, SubCalls
from rlm_loop.agents.run import Interrupted, Run
from rlm_loop.agents.session import AgentSession
from rlm_loop.agents.subcalls import Recursion, SubcallRunner, query_tools
from rlm_loop.dialects.base import Dialect, Problem
from rlm_loop.dialects.injectors import Injected, Injector, Told
from rlm_loop.dialects.wording import MAY_BLOCK
from rlm_loop.messages import Prompt
from rlm_loop.models import ScriptedModel, get_model
from rlm_loop.models.base import Model
from rlm_loop.models.names import Seeded, default_model, model_name
from rlm_loop.outcome import Outcome
from rlm_loop.repl.contexts.context import describe_context, inline_context
from rlm_loop.repl.contexts.on_disk import Fingerprint
from rlm_loop.repl.session import ReplTool, Session
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import Tool, as_tool
from rlm_loop.tools.gateway import ToolLike
from rlm_loop.tools.hooks import NO_HOOKS, Hooks
from rlm_loop.tools.mcp import serving
from rlm_loop.traces.kept import kept_in_notebook
from rlm_loop.traces.trace import Trace
from rlm_loop.traces.values import drawing, plain
from rlm_loop.workspace import Workspace


@dataclass(frozen=True)
class FirstRequest:
    """The first request of a run and its parts, made without calling a model."""

    prompt: Prompt
    tools: tuple[Tool, ...]
    dialect: Dialect


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
    #: Fields of some strategies.
    answer_tool, window = True, 12_000

    def __post_init__(self, max_steps: int | None, seconds: float | None, max_depth: int | None) -> None:
        checked(self)
        limits = {name: limit for name, limit in (("steps", max_steps), ("seconds", seconds)) if limit is not None}
        object.__setattr__(self, "budget", replace(self.budget, **limits) if limits else self.budget)
        if max_depth is not None:
            object.__setattr__(self, "subcalls", replace(self.subcalls, depth=max_depth))
        sessions = [tool for tool in self.tools if isinstance(tool, (Session, ReplTool))]
        if len(sessions) > 1:
            raise ValueError("a session among the tools is the run's REPL: give one")
        if sessions:  # it stays the caller's
            held = sessions[0].session if isinstance(sessions[0], ReplTool) else sessions[0]
            object.__setattr__(self, "repl", held)
            object.__setattr__(self, "tools", tuple(tool for tool in self.tools if tool not in sessions))
        for tool in self.tools:
            as_tool(tool)

    # -- what the strategy is

    @property
    def name(self) -> str:
        """Name of the strategy in tables and traces."""
        return self.dialect.name

    @cached_property
    def dialect(self) -> Dialect:
        """The language of the strategy, its injectors included."""
        injectors = tuple(i for i in self.injectors if not isinstance(i, Localise))
        if self.rules.may_block:
            injectors = (*injectors, Told(MAY_BLOCK, "may_block"))
        return Injected(self._speaks(), injectors) if injectors else self._speaks()

    def _speaks(self) -> Dialect:
        raise NotImplementedError("use ToolLoopAgent, LeanAgent, ReActAgent or DirectAgent")

    def _words(self, *fields: str) -> dict[str, Any]:
        """Return the dialect's own text by the names of its fields, where `system` replaces it."""
        return {} if self.system is None else dict.fromkeys(fields, self.system)

    def settings(self) -> dict[str, Any]:
        """Return what identifies the strategy, as JSON types: not models, hooks, functions and tools' code."""
        return plain(settings_of(self))

    def own_model(self) -> Model:
        """Return the agent's model.  Raises as `get_model` does."""
        if isinstance(self.model, Model):
            return self.model
        return get_model(self.model, **({"seed": self.model.seed} if isinstance(self.model, Seeded) else {}))

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
        **settings: Any,
    ) -> Outcome:
        """Work on a question until there is an answer or a limit is reached.

        `context` becomes the REPL variable of that name, of which the model is told type, size and a preview; a
        `Path` is the file that it names, read where the cells run (`docs/contexts.md`).
        `tools` replace the agent's own for this run; `trace` is a file to append to; without it a notebook's
        runs go to the log folder (`RLM_LOOP_LOG`).  `hooks` are told of this run besides the agent's own; `live` shows
        it while it goes on, in a notebook or as text.
        Raises `ModelError` (no reply could be had) and `Interrupted` (Ctrl-C), both with the partial outcome, and
        `ContextError` for a path that cannot be read.  `settings` raise `TypeError`: they are the agent's.
        """
        for name in settings:
            refuse_settings(self, name)
        agent = self if tools is None else replace(self, tools=tools)
        agent = agent.hearing(hooks, live) if hooks or live else agent
        return agent.attempt(asked(question, context), trace=kept_in_notebook(trace), workspace=workspace)

    async def arun(self, question: str, *, hooks: Iterable[object] = (), **options: Any) -> Outcome:
        """Run as `run` does, without blocking the event loop; the run stops where the awaiting task is cancelled."""
        from rlm_loop.agents.background import LiveRun, awaited  # asyncio takes 30 ms, which only who awaits should pay

        return await awaited(LiveRun(lambda run: self.run(question, hooks=(*hooks, run), **options)))

    def session(
        self,
        *,
        context: Any = None,
        tools: Iterable[ToolLike] | None = None,
        workspace: Workspace | None = None,
        trace: str | Path | Trace | None = None,
    ) -> AgentSession:
        """Return questions that follow each other: `with agent.session(context=df) as s: s.ask("...")`.

        Messages and REPL live on from question to question; each has the agent's budget anew.  `history` bounds the
        messages; an agent without it leaves out the oldest turns when the model's window is full.  The arguments are
        those of `run`.  Raises `ContextError` for a path that cannot be read.
        """
        agent = self if tools is None else replace(self, tools=tools)
        return AgentSession(agent, context, workspace, kept_in_notebook(trace))

    def attempt(
        self,
        task: Task,
        *,
        trace: str | Path | Trace | None = None,
        workspace: Workspace | None = None,
        exchange: AgentSession | None = None,
        resume: Callable[[Run], Sequence[str]] | None = None,
        **about: Any,
    ) -> Outcome:
        """Work on a task of a suite, or of the session `exchange`; raises as `run` does.

        `resume` brings the run to where another one was and returns notes; `about` are facts for the first event.
        """
        if task.context is not None:
            task = with_context(task)  # a deferred context is made before the clock starts
        model = self.own_model()
        record = trace.for_run() if isinstance(trace, Trace) else Trace(trace)
        hashed = None
        if task.context is not None and trace is not None and (exchange is None or record.path is not None):
            hashed = Fingerprint(task.context, lambda about: record.record("context", **about))
        account, recursion = Account(self.budget, price=model.price), Recursion(self.subcalls, self.budget)
        meter = Meter(
            model,
            account,
            Ledger(),
            record,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            slots=recursion.calls,
            hooks=Hooks(self.hooks) if self.hooks else NO_HOOKS,
        )
        record_start(record, self, task, model, hashed and hashed.known, window=window_of(model), **about)
        run: Run | None = None
        left: float | None = 0.0  # to wait for the hash
        try:
            if meter.hooks is not NO_HOOKS:
                facts = {"agent": self.name, "model": model.name, "ledger": meter.ledger, "trace": record}
                meter.hooks.notify("on_run_start", task=task.id, question=task.question, **facts)
            with self.open(task, meter, recursion, workspace=workspace, exchange=exchange) as run:
                notes = () if resume is None else resume(run)
                outcome = run.solve()
            left = account.seconds_left()
            return replace(outcome, notes=(*outcome.notes, *notes)) if notes else outcome
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and run is not None and run.outcome is not None:
                raise Interrupted(run.outcome) from None  # also where it was being closed when Ctrl-C came
            if not hasattr(error, "outcome"):  # it never came to a turn
                meter.hooks.notify("on_run_error", error=error, trace=record)
            raise
        finally:
            meter.node.end_children()
            if hashed is not None:
                hashed.end(left)
            if not isinstance(trace, Trace):
                record.close()

    def first_request(self, task: Task) -> FirstRequest:
        """Return the first request of a run of this task.  No model is called or loaded, and no REPL is started."""
        model = ScriptedModel([], name=model_name(self.model))
        meter = Meter(model, Account(Budget(), price=(0.0, 0.0)), Ledger(), Trace())
        recursion = Recursion(replace(self.subcalls, model=None, models=()), self.budget)
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
        exchange: AgentSession | None = None,
    ) -> Generator[Run]:
        """Yield a run of the task that has been put and took no turn yet; what it opens is closed with it.

        A `workspace` that is given stays open.
        """
        mode = self.dialect.action_mode
        with ExitStack() as stack:
            tools: Sequence[ToolLike] = (*task.tools, *self.tools)
            if tools:
                tools = stack.enter_context(serving(tools))
            if workspace is None and mode != "none" and task.workspace is not None:
                workspace = task.workspace()
                stack.callback(quietly, "the workspace could not be closed", workspace.close)
            queries = query_tools(SubcallRunner(meter, recursion, partial(self._solve_below, tools, recursion)))
            acts, conversation = self, Conversation(self.dialect, plan_of(self.history))
            if exchange is not None:
                acts, conversation = replace(self, repl=exchange.repl), exchange.conversation
                meter.turn = conversation.number
            place = Environment(acts, task, tools, queries, meter, workspace)
            stack.callback(place.close)
            ended = meter.node.scope.at_end(threading.Thread(target=place.close, daemon=True).start)
            stack.callback(meter.node.scope.forget, ended)
            run = Run(task, conversation, place, meter, began=meter.account.seconds if meter.node.depth else 0.0)
            problem, brief = self.problem(task, workspace)
            record_problem(meter, task, problem, place, brief, mode)
            if exchange is not None:
                problem = exchange.begin(problem, meter)
            if workspace is not None:
                problem = in_workspace(problem, place.tools)
            asks = exchange is None or exchange.about.get("asks", True)
            conversation.start(problem, place.tools, meter, brief, asks=asks)
            yield run

    def problem(self, task: Task, workspace: Workspace | None) -> tuple[Problem, tuple[Injector, ...]]:
        """Return the task as the model is told it, with what it is told of the workspace's files."""
        if self.dialect.action_mode == "none":
            inline = "\n\n".join(filter(None, [task.inline, inline_context(task.context, limit=self.window)]))
            problem = Problem(task.question, "", inline)
        else:
            problem = Problem(task.question, "" if task.context is None else describe_context(task.context))
        if workspace is None:
            return problem, ()
        ranked = [one for one in self.injectors if isinstance(one, Localise)]
        return problem, tuple([text for one in ranked for text in one.told(task.question, workspace)])

    def _solve_below(
        self, tools: Sequence[ToolLike], recursion: Recursion, question: str, context: Any, meter: Meter
    ) -> Outcome:
        """Run this strategy one level down, with the tools of this run and a REPL of its own.

        The answer is not checked: checks are for the whole question.
        """
        repl = "auto" if isinstance(self.repl, Session) else self.repl
        below = replace(self, model=meter.model, tools=tools, answer_type=None, verify=None, repl=repl)
        about = Task("llm_query", question, unscored, context=context)
        with below.open(about, meter, recursion) as inner:
            return inner.solve()

    def hearing(self, hooks: Iterable[object], live: bool) -> Agent:
        """Return the agent with more hooks, and with a live view where one is wanted."""
        view = (drawing("rlm_loop.report.notebook.live.LiveView")(),) if live else ()
        return replace(self, hooks=(*self.hooks, *hooks, *view))
