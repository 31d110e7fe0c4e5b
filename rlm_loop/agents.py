"""The agents: frozen records of a strategy and its settings, with a friendly `.run()`.

All of them drive the same loop; they differ in the dialect they speak and in the injectors around it.
"""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from rlm_loop.answers import AnswerCheck
from rlm_loop.budget import Account, Budget, UnknownPrice
from rlm_loop.compaction import Compaction, Policy, plan_of
from rlm_loop.context import describe_context, describe_workspace, inline_context
from rlm_loop.context_on_disk import as_context
from rlm_loop.dialects.base import Dialect, Hands, Problem
from rlm_loop.dialects.code_blocks import CodeBlocks
from rlm_loop.dialects.direct import Direct
from rlm_loop.dialects.function_calls import FunctionCalls, Presentation
from rlm_loop.dialects.handover import NOTHING, Handover
from rlm_loop.dialects.injectors import Initiator, Injected, Injector, ThoughtPrompt, told_first
from rlm_loop.dialects.react import ReActText
from rlm_loop.environment import Environment, ToolLike
from rlm_loop.fingerprint import Fingerprint
from rlm_loop.history import History, unchanged
from rlm_loop.hooks import notify
from rlm_loop.ledger import Ledger
from rlm_loop.localise import Localise
from rlm_loop.loop import run
from rlm_loop.models import catalog, get_model
from rlm_loop.models.base import Model
from rlm_loop.models.metered import Metered
from rlm_loop.outcome import Outcome
from rlm_loop.recursion import Asking, OnDepth, Recursion, Tree, query_tools
from rlm_loop.recursion.settings import price_of
from rlm_loop.repl import open_repl
from rlm_loop.repl.base import Session
from rlm_loop.repl.clip import HARD_CAP
from rlm_loop.tasks.base import Attempt, Score, Task
from rlm_loop.trace import Trace, plain
from rlm_loop.workspace import Workspace


@dataclass(frozen=True)
class Agent:
    """What all strategies share.

    `model` is a name (see `models.get_model`) or a model; `budget` limits each run; `tools` are offered besides the
    task's own; `repl` is the kind of session (`"auto"`, or a function that makes one); `cell_timeout` and
    `tool_timeout` are seconds; `max_tokens` limits each reply; `require_code` asks once for code before a text
    answer counts; `max_depth` limits `llm_query` (0 forbids it, 1 makes it one plain completion), `on_depth` says what
    happens beyond (`"error"`, `"flat"`: a plain completion, `"text"`: a fallback string), `sub_model` answers
    sub-calls, `sub_budget` limits each of them besides what is left of the whole, `concurrency` is how many model calls
    of the whole tree may be under way at once, `cache_subcalls` makes identical ones once; `injectors` add text (see
    `dialects.injectors`); `hooks` are told of each step, tool call and sub-call (see `rlm_loop.hooks`); `answer_type`
    and `verify` check an answer before it counts; `system` replaces the dialect's own fixed text; `seed` is passed to
    the model where it is made by name.
    `history` leaves parts of a long history out (`"drop_outputs"`, `"window"`, `"summary"` or a `Compaction`; `None`:
    nothing is), `max_history` whole turns beyond so many messages.  `allow` names the tools that may run: others are
    not offered, and a call of one is `denied` (`None`: all may).  `localise` tells of a workspace's files after the
    question (see `localise`).
    """

    model: str | Model = "local"
    budget: Budget = field(default_factory=Budget)
    tools: tuple[ToolLike, ...] = ()
    repl: str | Callable[[], Session] = "auto"
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

    def __post_init__(self) -> None:
        plan_of(self.history, self.max_history)  # bad values are refused here
        if isinstance(self.max_depth, bool) or not isinstance(self.max_depth, int) or self.max_depth < 0:
            raise ValueError(f"max_depth is a number of levels, 0 or more, not {self.max_depth!r}")
        if self.on_depth not in ("error", "flat", "text"):
            raise ValueError(f'on_depth is "error", "flat" or "text", not {self.on_depth!r}')
        if isinstance(self.allow, str):
            raise ValueError(f"allow is a list of tool names, not the text {self.allow!r}")
        if self.allow is not None:
            object.__setattr__(self, "allow", tuple(self.allow))
        for name in ("tools", "injectors", "hooks"):  # lists are welcome, and never shared with the caller
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def name(self) -> str:
        """What the strategy is called in tables and traces."""
        return self.dialect().name

    def dialect(self) -> Dialect:
        """How the strategy speaks, its injectors included."""
        inner = self._speaks()
        return Injected(inner, self.injectors) if self.injectors else inner

    def _speaks(self) -> Dialect:
        raise NotImplementedError("use ToolLoopAgent, LeanAgent, ReActAgent or DirectAgent")

    def settings(self) -> dict[str, Any]:
        """What identifies the strategy, as JSON types: everything but the model, hooks and tools' code."""
        skipped = {"model", "hooks", "tools", "repl", "verify", "answer_type"}
        own = {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name not in skipped}
        if self.allow is None:  # the rows of studies from before there was this setting stay theirs
            own.pop("allow")
        return {"agent": type(self).__name__, "dialect": plain(self.dialect()), **own}

    def run(
        self,
        question: str,
        *,
        context: Any = None,
        tools: Iterable[ToolLike] | None = None,
        workspace: Workspace | None = None,
        trace: str | Path | Trace | None = None,
    ) -> Outcome:
        """Work on a question until there is an answer or a limit is reached.

        `context` becomes the REPL variable of that name, of which the model is told type, size and a preview; a
        `Path` is the file or folder that it names, read where the cells run (`docs/contexts.md`).
        `tools` replace the agent's own for this run; `trace` is a file to append to.
        Raises `ModelError` (no reply could be had) and `Interrupted` (Ctrl-C), both with the partial outcome, and
        `ContextError` for a path that cannot be read.
        """
        if not isinstance(question, str) or not question.strip():
            raise ValueError("the question is empty; say what is to be done")
        task = Task("question", question, _unscored, context=context)
        agent = self if tools is None else replace(self, tools=tuple(tools))
        return agent.attempt(task, trace=trace, workspace=workspace)

    def attempt(
        self, task: Task, *, trace: str | Path | Trace | None = None, workspace: Workspace | None = None
    ) -> Outcome:
        """Work on a task of a suite; raises as `run` does."""
        seeded = isinstance(self.model, str) and self.seed is not None
        task = replace(task, context=as_context(task.material()))  # a deferred context is made before the clock starts
        model = get_model(self.model, **({"seed": self.seed} if seeded else {}))
        price = price_of(model)
        account = Account(self.budget, price=price)
        recursion = self._recursion()
        record = trace if isinstance(trace, Trace) else Trace(trace)
        slots = recursion.tree.calls
        metered = Metered(model, account, Ledger(), record, max_tokens=self.max_tokens, slots=slots, price=price)
        hashed = Fingerprint(task.context, lambda found: record.record("context", **found))
        record.start(
            task=task.id,
            question=task.question,
            agent=self.name,
            settings=self.settings(),
            model=model.name,
            budget=self.budget,
            versions=versions(),
            context=hashed.known,
        )
        try:
            hashed.begin()
            notify(self.hooks, "on_run_start", task=task.id, agent=self.name, model=model.name)
            outcome = self._drive(task, metered, recursion, workspace)
            notify(self.hooks, "on_run_end", outcome=outcome)
            hashed.end(wait=True)
            return outcome
        finally:
            metered.node.end_children()
            hashed.end(wait=False)
            if not isinstance(trace, Trace):
                record.close()

    def limits(self) -> Budget:
        """The budget that holds for a run."""
        return self.budget

    def attempt_on(
        self, task: Task, model: Metered, *, before: int = 0, handover: Handover = NOTHING, within: Budget | None = None
    ) -> Outcome:
        """One of several attempts at a task, with the account, ledger, trace and node of `model` (see `patching`).

        The model itself is the agent's own.  `before` is how many turns earlier attempts took, `handover` what this
        one is given of them, `within` replaces the agent's own limits.  The outcome's usage and ledger are the
        account's, so earlier attempts are in them.  Raises as `run` does.
        """
        seeded = isinstance(self.model, str) and self.seed is not None
        own = get_model(self.model, **({"seed": self.seed} if seeded else {}))
        price, recursion = price_of(own), self._recursion()
        account = model.account.scope(self.limits() if within is None else within, price=price)
        if account.priced and price is None:
            raise UnknownPrice("a cost limit needs a model whose price is known; limit tokens or calls instead")
        metered = model.scoped(
            model.node, purpose="agent", model=own, price=price, max_tokens=self.max_tokens, account=account
        )
        metered = replace(metered, slots=recursion.tree.calls)
        notify(self.hooks, "on_run_start", task=task.id, agent=self.name, model=own.name)
        outcome = self._drive(task, metered, recursion, before=before, handover=handover)
        notify(self.hooks, "on_run_end", outcome=outcome)
        return outcome

    def _drive(
        self,
        task: Task,
        model: Metered,
        recursion: Recursion,
        workspace: Workspace | None = None,
        *,
        before: int = 0,
        handover: Handover = NOTHING,
    ) -> Outcome:
        """One run at the model's depth: the root, or a sub-agent that `llm_query` asked for."""
        dialect = self.dialect()
        problem = Problem(
            task.question,
            describe_context(task.context) if task.context is not None and dialect.hands != "none" else "",
            "\n\n".join(filter(None, [task.inline, self._inlined(task.context)])) if dialect.hands == "none" else "",
        )
        plan = plan_of(self.history, self.max_history)
        history = unchanged if plan is None else History(plan, model)
        with (
            self._place(task, dialect.hands, model, recursion, workspace) as place,
            model.node.scope.waking(lambda: threading.Thread(target=place.close, daemon=True).start()),
        ):
            if place.workspace is not None:
                place.workspace.apply(handover.patch)
                seen = filter(None, [problem.context, describe_workspace(place.tools)])
                problem = replace(problem, context="\n".join(seen))
            speaks = handover.around(told_first(dialect, self._told(task, place.workspace)))
            return run(
                speaks,
                problem,
                place,
                model,
                hooks=self.hooks,
                collect=task.collect,
                agent=self.name,
                compact=lambda prompt, turns: history(prompt, (*handover.turns, *turns)),
                before=before,
            )

    def _told(self, task: Task, workspace: Workspace | None) -> tuple[Injector, ...]:
        """What is said of the workspace's files; a strategy that has none open is told of the task's."""
        if self.localise is None:
            return ()
        if workspace is not None:
            return self.localise.told(task.question, workspace)
        if task.workspace is None:
            return ()
        with task.workspace() as opened:
            return self.localise.told(task.question, opened)

    def _place(
        self, task: Task, hands: Hands, model: Metered, recursion: Recursion, workspace: Workspace | None
    ) -> Environment:
        asks = query_tools(self._asking(model, recursion)) if hands != "none" else ()
        told = self.max_depth > 0 and (task.context is not None or self.max_depth > 1)
        opened = workspace
        if opened is None and hands != "none" and task.workspace is not None:
            opened = task.workspace()
        return Environment(
            (*task.tools, *self.tools, *(asks if told else ())),
            unlisted=() if told else asks,
            hands=hands,
            repl=self._repl(task) if hands != "none" and (task.needs_repl or hands == "code") else None,
            workspace=opened,
            context=task.context,
            cell_timeout=self.cell_timeout,
            tool_timeout=self.tool_timeout,
            check=AnswerCheck(self.answer_type, self.verify),
            require_code=self.require_code,
            seconds_left=model.account.seconds_left,
            hooks=self.hooks,
            node=model.node.path,
            allow=self.allow,
            observation_cap=getattr(self.dialect(), "observation_cap", HARD_CAP),
            keep_tree=lambda tree, patch: model.trace.patch(
                tree, patch, node=model.node.path, depth=model.depth, turn=model.turn
            ),
        )

    def _recursion(self) -> Recursion:
        """How sub-calls are made in one run; raises `UnknownPrice` where a cost limit could not be kept."""
        sub_model = None if self.sub_model is None else get_model(self.sub_model)
        limited = self.budget.cost is not None or (self.sub_budget is not None and self.sub_budget.cost is not None)
        if limited and sub_model is not None and price_of(sub_model) is None:
            raise UnknownPrice("a cost limit needs a sub_model whose price is known; limit tokens or calls instead")
        most = self.max_depth if self.budget.depth is None else min(self.max_depth, int(self.budget.depth))
        tree = Tree(self.concurrency, cache=self.cache_subcalls)
        return Recursion(most, self.on_depth, sub_model, self.sub_budget, self.hooks, tree)

    def _asking(self, model: Metered, recursion: Recursion) -> Asking:
        def sub_agent(prompt: str, context: Any, inner: Metered) -> Outcome:
            # its answer is no answer to the whole question, which these are to check
            agent = replace(self, model=inner.model, answer_type=None, verify=None)
            return agent._drive(Task("llm_query", prompt, _unscored, context=context), inner, recursion)

        return Asking(model, recursion, sub_agent)

    def _repl(self, task: Task) -> Callable[[], Session]:
        kind = self.repl
        if not isinstance(kind, str):
            return kind
        return lambda: open_repl(kind, files=task.files, setup=task.setup)

    def _inlined(self, context: Any) -> str:
        """The context as text, for a strategy without hands."""
        return inline_context(context)


@dataclass(frozen=True)
class ToolLoopAgent(Agent):
    """The code-block loop: runs the fenced Python blocks of a reply in a persistent REPL.

    The answer is the variable `final_answer`, or a reply without a code block.
    """

    def _speaks(self) -> Dialect:
        return CodeBlocks() if self.system is None else CodeBlocks(rule=self.system)


@dataclass(frozen=True)
class LeanAgent(Agent):
    """The lean function-calling loop: adds nothing per turn.

    `presentation` says how tools are shown: `native` schemas, a `text` list, or a text list with replies
    `constrained` by a JSON schema.  `None` takes what works with the model: text for a local one, else native.
    """

    presentation: Presentation | None = None

    def _speaks(self) -> Dialect:
        shown = self.presentation or _default_presentation(self.model)
        if self.system is None:
            return FunctionCalls(shown)
        return FunctionCalls(shown, rule=self.system, native_rule=self.system)


@dataclass(frozen=True)
class ReActAgent(Agent):
    """ReAct, in one of its two forms.

    `text`: one template with Thought / Action / Observation lines.  `calls`: an initiator once and a thought prompt
    every turn over tool calls (then `presentation` as in `LeanAgent`).  Only finishing ends either: the frameworks that
    work so (mellea, inspect) go on after a reply that is text alone, since thinking aloud is what they ask for.

    Three settings are its own, with the limits that such frameworks have: `max_iterations` steps at most (the budget's
    own limit of steps counts too, and is none by default), `max_history` messages, and `tool_timeout` seconds.
    """

    budget: Budget = field(default_factory=lambda: Budget(steps=None))
    max_history: int | None = 40
    form: Literal["text", "calls"] = "text"
    presentation: Presentation | None = None
    max_iterations: int | None = 50

    def limits(self) -> Budget:
        """The budget with the smaller of the two limits of steps."""
        given = [Budget(steps=self.max_iterations).steps, self.budget.steps]
        return replace(self.budget, steps=min((s for s in given if s is not None), default=None))

    def settings(self) -> dict[str, Any]:
        """What identifies the strategy: `max_iterations` as the budget's steps, and no `max_history` that these cannot
        reach, since it changes nothing."""
        steps, own = self.limits().steps, super().settings()
        native = self.form == "calls" and (self.presentation or _default_presentation(self.model)) == "native"
        most = self.max_history
        if most is not None and steps is not None and not native and 2 * steps < most:  # system, task, two a turn
            own["max_history"] = None
        return {k: v for k, v in own.items() if k != "max_iterations"} | {"budget": plain(self.limits())}

    def attempt(
        self, task: Task, *, trace: str | Path | Trace | None = None, workspace: Workspace | None = None
    ) -> Outcome:
        """Work on a task of a suite; raises as `run` does."""
        limited = replace(self, budget=self.limits(), max_iterations=None)
        return super(ReActAgent, limited).attempt(task, trace=trace, workspace=workspace)

    def _speaks(self) -> Dialect:
        if self.form == "text":
            return ReActText() if self.system is None else ReActText(rule=self.system)
        shown = self.presentation or _default_presentation(self.model)
        calls = FunctionCalls(shown, text_answers=False)
        rule = calls if self.system is None else replace(calls, rule=self.system)
        return Injected(rule, (Initiator(), ThoughtPrompt()))


@dataclass(frozen=True)
class DirectAgent(Agent):
    """No loop: the question with its material inlined, and the first reply is the answer.

    `window` is how many characters of the context are shown, head and tail; what is left out is said.
    """

    window: int = 12_000

    def _speaks(self) -> Dialect:
        return Direct() if self.system is None else Direct(rule=self.system)

    def _inlined(self, context: Any) -> str:
        return inline_context(context, limit=self.window)


AGENTS: Mapping[str, type[Agent]] = {
    "tool-loop": ToolLoopAgent,
    "lean": LeanAgent,
    "react": ReActAgent,
    "direct": DirectAgent,
}


def _default_presentation(model: str | Model) -> Presentation:
    """Small local models do not make native tool calls; hosted ones do."""
    name = model if isinstance(model, str) else model.name
    return "text" if name.split(":")[0] == "local" or catalog.find(name) is not None else "native"


def _unscored(attempt: Attempt) -> Score:
    return Score(False, 0.0, "a question of the user's has no truth to compare with")


@functools.cache
def versions() -> dict[str, str]:
    """The versions that a run depends on, for its trace."""
    found = {"python": platform.python_version()}
    for package in ("rlm-loop", "xllamacpp", "litellm", "httpx", "pydantic"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
