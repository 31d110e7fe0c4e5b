"""What all agents are: a frozen record of a strategy and its settings, with a friendly `.run()`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from typing import Any

from rlm_loop.accounting.budget import Account, Budget, UnknownPrice
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents.answers import Approve
from rlm_loop.agents.background import BackgroundRun, awaited, started
from rlm_loop.agents.checking import checked, limited, listed, repl_of, session_in, workspace_of
from rlm_loop.agents.compaction import Compaction, Policy, plan_of
from rlm_loop.agents.config import agent_config
from rlm_loop.agents.conversation import WHOLE_WINDOW, Conversation
from rlm_loop.agents.exchange import Exchange, KeptSession
from rlm_loop.agents.first_request import FirstRequest, first_request
from rlm_loop.agents.identity import identifying
from rlm_loop.agents.localise import Localise
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.record_setup import record_start
from rlm_loop.agents.recursion import OnDepth, Recursion, Tree
from rlm_loop.agents.run_hooks import run_hooks
from rlm_loop.agents.runner import drive, unscored
from rlm_loop.agents.setup import RunSetup, ToolLike
from rlm_loop.agents.window import window_of
from rlm_loop.dialects.base import Dialect
from rlm_loop.dialects.earlier import FIRST_ATTEMPT, AttemptContext
from rlm_loop.dialects.injectors import Injected, Injector, Told
from rlm_loop.dialects.wording import MAY_BLOCK
from rlm_loop.models import get_model
from rlm_loop.models.base import Model
from rlm_loop.models.names import default_model
from rlm_loop.outcome import Outcome
from rlm_loop.repl import open_repl
from rlm_loop.repl.base import Session
from rlm_loop.repl.contexts.context import inline_context
from rlm_loop.repl.contexts.fingerprint import Fingerprint
from rlm_loop.repl.contexts.on_disk import as_context
from rlm_loop.tasks.base import Task
from rlm_loop.traces.display import drawing
from rlm_loop.traces.trace import Trace
from rlm_loop.workspace import Workspace


@dataclass(frozen=True)
class Agent:
    """The settings that all strategies share.

    Who answers, and within what limits:

    - `model`: a name (see `models.get_model`) or a model; by default what the environment's `RLM_LOOP_MODEL` names,
      else `local`.
    - `seed`: passed to a model that is made by name.
    - `temperature`: 0 to 2, sent with each request to this model in place of its own; `None` leaves it to the model.
    - `budget`: the limits of each run.
    - `max_steps`: replaces the budget's limit of steps, where it is given; `limits()` has what holds.
    - `seconds`: replaces the budget's limit of seconds, where it is given.
    - `max_tokens`: the tokens of each reply at most.
    - `cell_timeout`: the seconds of each cell at most.
    - `tool_timeout`: the seconds of each tool call at most.

    What it can use:

    - `tools`: offered beside the task's own.
    - `allow`: names of the tools that may run; others are not offered, and a call of one is `denied` (`None`: all may).
    - `repl`: the kind of session (`"auto"`), a function that makes a session for each run, or a session of yours,
      which stays open and can be used again.
    - `approve`: told of each cell and tool call before it runs, those of sub-agents and in cells too.  `True` or
      `None` let it run; `False`, a reason or an exception make it `denied`.

    What it is told:

    - `system`: replaces the dialect's own fixed text.
    - `injectors`: add text (see `dialects.injectors`).
    - `context_tokens`: the most that the line about a context takes, 30 or more; `None` is 120 for a data frame, else
      60 (see `docs/contexts.md`).
    - `localise`: tells of a workspace's files after the question (`agents/localise`).
    - `may_block`: tells the model that it may end with a line `BLOCKED: reason`, which is read only then.
    - `history`: leaves parts of a long history out (`"drop_outputs"`, `"window"`, `"summary"` or a `Compaction`;
      `None`: nothing).
    - `max_history`: drops whole turns beyond so many messages.

    When an answer counts:

    - `answer_type`: what the answer must be; another is refused, with the reason.
    - `verify`: a function of the answer; `False` or a text refuses it.
    - `require_code`: asks once for code before a text answer counts.

    Sub-calls (`llm_query`):

    - `max_depth`: their levels: 0 forbids them, 1 makes each one plain completion.
    - `on_depth`: what happens beyond: `"error"`, `"flat"` (a plain completion) or `"text"` (a fallback string).
    - `sub_model`: answers them, with a temperature of its own.
    - `sub_models`: others that a cell may name in `llm_query(..., model=)`: a list of names, or a mapping from your
      names to models or their names.
    - `sub_budget`: limits each of them, besides what is left of the whole run.
    - `concurrency`: the model calls of the whole tree at one time, at most.
    - `cache_subcalls`: makes identical ones once.

    Who watches:

    - `hooks`: told of each step, tool call and sub-call (see `rlm_loop.tools.hooks`).
    """

    model: str | Model = field(default_factory=default_model)
    budget: Budget = field(default_factory=Budget)
    tools: tuple[ToolLike, ...] = ()
    repl: str | Callable[[], Session] | Session = "auto"
    cell_timeout: float | None = 60.0
    tool_timeout: float | None = 60.0
    max_tokens: int | None = None
    require_code: bool = False
    max_depth: int = 1
    on_depth: OnDepth = "error"
    sub_model: str | Model | None = None
    sub_budget: Budget | None = None
    concurrency: int = 8
    cache_subcalls: bool = False
    injectors: tuple[Injector, ...] = ()
    hooks: tuple[object, ...] = ()
    answer_type: Any = None
    verify: Callable[[Any], bool | str | None] | None = None
    system: str | None = None
    seed: int | None = None
    history: Policy | Compaction | None = None
    max_history: int | None = None
    localise: Localise | None = None
    allow: tuple[str, ...] | None = None
    sub_models: tuple[tuple[str, str | Model], ...] = ()
    may_block: bool = False
    approve: Approve | None = None
    context_tokens: int | None = None
    temperature: float | None = None
    max_steps: InitVar[int | None] = field(default=None, kw_only=True)
    seconds: InitVar[float | None] = field(default=None, kw_only=True)

    def __post_init__(self, max_steps: int | None, seconds: float | None) -> None:
        checked(self)
        object.__setattr__(self, "budget", limited(self.budget, max_steps, seconds))
        if self.history is not None or self.max_history is not None:
            plan_of(self.history, self.max_history)  # bad values are refused here
        if self.allow is not None:
            object.__setattr__(self, "allow", tuple(self.allow))
        if (named := self.sub_models) != ():
            pairs = (
                named.items() if isinstance(named, Mapping) else [(m, m) if isinstance(m, str) else m for m in named]
            )
            object.__setattr__(self, "sub_models", tuple((str(n), m) for n, m in pairs))
        for name, one in (("tools", "tools"), ("injectors", "injectors"), ("hooks", "objects")):
            object.__setattr__(self, name, listed(name, getattr(self, name), one))  # never shared with the caller
        if self.tools:
            object.__setattr__(self, "repl", repl_of(self.repl, self.tools))
            object.__setattr__(self, "tools", tuple(t for t in self.tools if session_in(t) is None))

    @property
    def name(self) -> str:
        """What the strategy is called in tables and traces."""
        return self.dialect().name

    def dialect(self) -> Dialect:
        """How the strategy speaks, its injectors included; built once."""
        made: Dialect | None = self.__dict__.get("_dialect")
        if made is None:
            injectors = (*self.injectors, *((Told(MAY_BLOCK, "may_block"),) if self.may_block else ()))
            made = self._speaks()
            made = Injected(made, injectors) if injectors else made
            object.__setattr__(self, "_dialect", made)
        return made

    def setup(self, task: Task) -> RunSetup:
        """The record of one run on a task, which everything below takes."""

        def below(model: Model, asked: Task) -> RunSetup:
            own = self.repl if isinstance(self.repl, str) or callable(self.repl) else "auto"  # a REPL for itself
            return replace(self, model=model, answer_type=None, verify=None, repl=own).setup(asked)

        return RunSetup(
            agent=self.name,
            task=task,
            dialect=self.dialect(),
            tools=self.tools,
            repl=self.repl,
            cell_timeout=self.cell_timeout,
            tool_timeout=self.tool_timeout,
            require_code=self.require_code,
            max_depth=self.max_depth,
            answer_type=self.answer_type,
            verify=self.verify,
            history=plan_of(self.history, self.max_history),
            hooks=self.hooks,
            localise=self.localise,
            allow=self.allow,
            approve=self.approve,
            context_tokens=self.context_tokens,
            answer_tool=self._answers_by_tool(),
            inlined=self.inlined,
            below=below,
        )

    def recursion(self) -> Recursion:
        """How sub-calls are made in one run; raises `UnknownPrice` where a cost limit could not be kept."""
        limits = (self.budget, self.sub_budget)
        asked = None if self.sub_model is None else get_model(self.sub_model)
        if asked is not None and asked.price is None and any(b is not None and b.cost is not None for b in limits):
            raise UnknownPrice("a cost limit needs a sub_model whose price is known; limit tokens or calls instead")
        most = self.max_depth if self.budget.depth is None else min(self.max_depth, int(self.budget.depth))
        tree = Tree(self.concurrency, cache=self.cache_subcalls)
        named = dict(self.sub_models)
        return Recursion(most, self.on_depth, asked, named, self.sub_budget, self.hooks, tree)

    def _answers_by_tool(self) -> bool:
        return True

    def _speaks(self) -> Dialect:
        raise NotImplementedError("use ToolLoopAgent, LeanAgent, ReActAgent or DirectAgent")

    def settings(self) -> dict[str, Any]:
        """What identifies the strategy, as JSON types: everything but the model, hooks and tools' code."""
        return identifying(self, self.dialect())

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
        `Path` is the file or folder that it names, read where the cells run (`docs/contexts.md`).
        `tools` replace the agent's own for this run; `trace` is a file to append to.  `hooks` are told of this run
        besides the agent's own; `live` shows it while it goes on, in a notebook or as text.
        Raises `ModelError` (no reply could be had) and `Interrupted` (Ctrl-C), both with the partial outcome, and
        `ContextError` for a path that cannot be read.
        """
        agent = (self if tools is None else replace(self, tools=tools))._hearing(hooks, live)
        return agent.attempt(_asked(question, context), trace=trace, workspace=workspace)

    def start(self, question: str, *, hooks: Iterable[object] = (), **options: Any) -> BackgroundRun:
        """Run in the background: returns at once; `.stop()` ends the run, `.result()` waits for its outcome.

        `options` are those of `run`.
        """
        return started(lambda more: self.run(question, hooks=(*hooks, *more), **options))

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
    ) -> Conversation:
        """Questions that follow each other: `with agent.session(context=df) as s: s.ask("...")`.

        Messages and REPL live on from question to question; each has the agent's budget anew.  `history` and
        `max_history` bound the messages; an agent without either leaves out the oldest turns when the model's window is
        full.  The arguments are those of `run`.  Raises `ContextError` for a path that cannot be read.
        """
        agent = self if tools is None else replace(self, tools=tools)
        if agent.history is None and agent.max_history is None:
            agent = replace(agent, history=WHOLE_WINDOW)
        repl, record = agent.repl, trace if isinstance(trace, Trace) else Trace(trace)

        def answering(asked: str, about: Any, hooks: tuple[object, ...], live: bool, exchange: Exchange) -> Outcome:
            hearing, task = agent._hearing(hooks, live), _asked(asked, about)
            return hearing.attempt(task, trace=record, workspace=workspace, exchange=exchange)

        def opened() -> Session:
            return open_repl(repl) if isinstance(repl, str) else repl if isinstance(repl, Session) else repl()

        kept = KeptSession(opened, owned=not isinstance(repl, Session))
        return Conversation(answering, agent.dialect(), kept, context, record, owned=record is not trace)

    def _hearing(self, hooks: Iterable[object], live: bool) -> Agent:
        """The agent with more hooks, and with a live view where one is wanted."""
        more = (*hooks, *((drawing("rlm_loop.report.notebook.live.LiveView")(),) if live else ()))
        return replace(self, hooks=(*self.hooks, *more)) if more else self

    def attempt(
        self,
        task: Task,
        *,
        trace: str | Path | Trace | None = None,
        workspace: Workspace | None = None,
        exchange: Exchange | None = None,
    ) -> Outcome:
        """Work on a task of a suite; raises as `run` does.  `exchange` is its place in a session."""
        workspace = workspace_of(workspace)
        context = as_context(task.material())  # a deferred context is made before the clock starts
        task = task if context is task.context else replace(task, context=context)
        model = self.own_model()
        price = model.price
        account = Account(self.budget, price=price)
        recursion, setup = self.recursion(), self.setup(task)
        record = trace.for_run() if isinstance(trace, Trace) else Trace(trace)
        slots = recursion.tree.calls
        sent: dict[str, Any] = {"max_tokens": self.max_tokens, "temperature": self.temperature, "hooks": self.hooks}
        metered = Metered(model, account, Ledger(), record, slots=slots, price=price, **sent)
        kept = trace is not None and (exchange is None or record.path is not None)  # else nobody reads the hash
        hashed = Fingerprint(task.context if kept else None, lambda found: record.record("context", **found))
        more: dict[str, Any] = {"made": agent_config(self), "price": price, "window": window_of(model)}
        if exchange is not None:
            setup = exchange.begin(setup, metered)
            more["session"] = exchange.about
        record_start(record, task, setup.agent, self.settings(), model.name, self.budget, hashed.known, **more)
        if exchange is not None:
            exchange.record(record)
        try:
            hashed.begin()
            with run_hooks(self.hooks, task, setup.agent, metered) as told:
                outcome = told(drive(setup, metered, recursion, workspace))
            hashed.end(account.seconds_left())
            return outcome
        finally:
            metered.node.end_children()
            hashed.end(0)
            if not isinstance(trace, Trace):
                record.close()

    def own_model(self) -> Model:
        """The agent's model; one that is made by name is given the seed.  Raises as `get_model` does."""
        seeded = isinstance(self.model, str) and self.seed is not None
        return get_model(self.model, **({"seed": self.seed} if seeded else {}))

    def first_request(self, task: Task) -> FirstRequest:
        """What a run of this task would send first.  No model is called, and none is loaded."""
        name = self.model if isinstance(self.model, str) else self.model.name
        setup = self.setup(replace(task, context=as_context(task.material())))
        return first_request(setup, name, replace(self, sub_model=None).recursion())

    def inlined(self, context: Any) -> str:
        """The context as text, for a strategy without action_mode."""
        return inline_context(context)

    def limits(self) -> Budget:
        """The budget that holds for a run."""
        return self.budget

    def attempt_on(
        self,
        task: Task,
        model: Metered,
        *,
        turn_offset: int = 0,
        earlier: AttemptContext = FIRST_ATTEMPT,
        limits: Budget | None = None,
    ) -> Outcome:
        """One of several attempts at a task, with the account, ledger, trace and node of `model` (`agents/attempts`).

        The model itself is the agent's own.  `turn_offset` is how many turns earlier attempts took, `earlier` what this
        one is given of them, `limits` replace the agent's own.  The outcome's usage and ledger are the
        account's, so earlier attempts are in them.  Raises as `run` does.
        """
        own = self.own_model()
        price, recursion = own.price, self.recursion()
        account = model.account.scope(self.limits() if limits is None else limits, price=price)
        if account.priced and price is None:
            raise UnknownPrice("a cost limit needs a model whose price is known; limit tokens or calls instead")
        metered = model.scoped(
            model.node,
            purpose="agent",
            model=own,
            price=price,
            max_tokens=self.max_tokens,
            account=account,
            temperature=self.temperature,
        )
        metered = replace(metered, slots=recursion.tree.calls)
        with run_hooks(self.hooks, task, self.name, metered) as told:
            setup = replace(self.setup(task), turn_offset=turn_offset, earlier=earlier)
            return told(drive(setup, metered, recursion))


def _asked(question: str, context: Any) -> Task:
    """A question of the user's as a task; raises `TypeError` and `ValueError` for what is none."""
    if not isinstance(question, str):
        raise TypeError(f"the question is a text, not {question!r:.60}; data goes into context=")
    if not question.strip():
        raise ValueError("the question is empty; say what is to be done")
    return Task("question", question, unscored, context=context)
