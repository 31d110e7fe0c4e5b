"""One run of an agent: its place is made, the problem put, the loop driven; sub-agents are runs of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rlm_loop.accounting.budget import UnknownPrice
from rlm_loop.agents.answers import AnswerCheck
from rlm_loop.agents.approval import Approval
from rlm_loop.agents.compaction import plan_of
from rlm_loop.agents.environment import Environment
from rlm_loop.agents.history import History, rewriting, unchanged
from rlm_loop.agents.loop import Interrupted, Place, attach, run
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.record_setup import record_calls, record_problem
from rlm_loop.agents.recursion import Asking, Recursion, Tree, query_tools
from rlm_loop.agents.recursion.settings import price_of
from rlm_loop.agents.window import Fit
from rlm_loop.agents.world import REAL, World
from rlm_loop.dialects.base import Dialect, Hands, Problem
from rlm_loop.dialects.handover import NOTHING, Handover
from rlm_loop.dialects.injectors import told_first
from rlm_loop.models import get_model
from rlm_loop.outcome import Outcome
from rlm_loop.repl import open_repl
from rlm_loop.repl.base import Session
from rlm_loop.repl.clip import HARD_CAP
from rlm_loop.repl.contexts.context import describe_workspace
from rlm_loop.tasks.base import Attempt, Score, Task
from rlm_loop.workspace import Workspace

if TYPE_CHECKING:
    from rlm_loop.agents.agent import Agent


def noted(outcome: Outcome, notes: Sequence[str]) -> Outcome:
    """The outcome with further notes."""
    return replace(outcome, notes=(*outcome.notes, *notes)) if notes else outcome


def unscored(attempt: Attempt) -> Score:
    """For a question that no suite asked."""
    return Score(False, 0.0, "a question of the user's has no truth to compare with")


def drive(
    agent: Agent,
    task: Task,
    model: Metered,
    recursion: Recursion,
    workspace: Workspace | None = None,
    *,
    before: int = 0,
    handover: Handover = NOTHING,
    world: World = REAL,
) -> Outcome:
    """One run at the model's depth: the root, or a sub-agent that `llm_query` asked for."""
    plan = plan_of(agent.history, agent.max_history)
    history = unchanged if plan is None else History(plan, model)
    compact = rewriting(getattr(agent.dialect(), "rewrites", ()), model, history)
    faults: list[str] = []
    ways: dict[str, Any] = {"before": before, "handover": handover, "world": world, "faults": faults}
    outcome: Outcome | None = None
    try:
        with prepared(agent, task, model, recursion, workspace, **ways) as (speaks, problem, place):
            outcome = run(
                speaks,
                problem,
                place,
                model,
                hooks=agent.hooks,
                collect=task.collect,
                agent=agent.name,
                fit=Fit(speaks, model, shortens=plan is not None),
                compact=lambda prompt, turns: compact(prompt, (*handover.turns, *turns)),
                before=before,
            )
    except BaseException as error:
        left = getattr(error, "outcome", None)
        if isinstance(left, Outcome):
            attach(error, noted(left, faults))
        elif outcome is not None and isinstance(error, KeyboardInterrupt):  # it was closed when Ctrl-C came
            raise Interrupted(noted(outcome, faults)) from None
        raise
    return noted(outcome, faults)


@contextmanager
def prepared(
    agent: Agent,
    task: Task,
    model: Metered,
    recursion: Recursion,
    workspace: Workspace | None = None,
    *,
    before: int = 0,
    handover: Handover = NOTHING,
    world: World = REAL,
    faults: list[str] | None = None,
) -> Generator[tuple[Dialect, Problem, Place]]:
    """What a run begins with: how it speaks, what it is told, and the place where it acts, closed at the end.

    What goes wrong when it is closed is added to `faults`, a line each.
    """
    dialect = agent.dialect()
    problem = world.problem(agent, task, dialect.hands)
    asking = _asking(agent, task, model, recursion, world)
    with (
        _place(agent, task, dialect.hands, model, asking, workspace) as opened,
        model.node.scope.waking(lambda: threading.Thread(target=opened.close, daemon=True).start()),
    ):
        opened.faults = opened.faults if faults is None else faults
        place = world.place(opened, asking)
        told = world.told(agent, task, opened.workspace)
        record_problem(model, agent, task, problem, opened, told, before)
        if world.begin(opened, model, handover.patch):
            seen = filter(None, [problem.context, describe_workspace(place.tools)])
            problem = replace(problem, context="\n".join(seen))
        yield world.speaks(handover.around(told_first(dialect, told)), model), problem, place


def _place(
    agent: Agent, task: Task, hands: Hands, model: Metered, asking: Asking, workspace: Workspace | None
) -> Environment:
    asks = query_tools(asking) if hands != "none" else ()
    told = agent.max_depth > 0 and (task.context is not None or agent.max_depth > 1)
    given = isinstance(agent.repl, Session)  # handed in, so it is to be used
    opened = workspace
    if opened is None and hands != "none" and task.workspace is not None:
        opened = task.workspace()
    return Environment(
        (*task.tools, *agent.tools, *(asks if told else ())),
        unlisted=() if told else asks,
        hands=hands,
        repl=_repl(agent, task) if hands != "none" and (task.needs_repl or hands == "code" or given) else None,
        workspace=opened,
        owned=workspace is None,
        context=task.context,
        cell_timeout=agent.cell_timeout,
        tool_timeout=agent.tool_timeout,
        check=AnswerCheck(agent.answer_type, agent.verify),
        require_code=agent.require_code,
        seconds_left=model.account.seconds_left,
        hooks=agent.hooks,
        node=model.node.path,
        about=lambda: {
            "run": model.trace.run,
            "task": model.trace.task,
            "turn": model.turn,
            "steps_remaining": model.trace.steps_left(model.node.path, model.turn),
        },
        allow=agent.allow,
        observation_cap=getattr(agent.dialect(), "observation_cap", HARD_CAP),
        variables=getattr(agent.dialect(), "wants_variables", False),
        answer_tool=getattr(agent, "answer_tool", True),
        sampled=_samples(model.model),
        approve=None if agent.approve is None else Approval(agent.approve, partial(_record_approval, model)),
        keep_tree=lambda tree, patch: model.trace.patch(
            tree, patch, node=model.node.path, depth=model.depth, turn=model.turn
        ),
        keep_calls=lambda calls: record_calls(model, calls),
    )


def _record_approval(model: Metered, **said: Any) -> None:
    model.trace.record("approval", node=model.node.path, depth=model.depth, turn=model.turn, **said)


def _samples(model: object) -> bool:
    """Whether replies are drawn: a temperature above 0, or none given, so that a provider takes its own."""
    temperature: float | None = getattr(model, "temperature", 0.0)
    return temperature is None or temperature > 0


def recursion_of(agent: Agent) -> Recursion:
    """How sub-calls are made in one run; raises `UnknownPrice` where a cost limit could not be kept."""
    sub_model = None if agent.sub_model is None else get_model(agent.sub_model)
    limited = agent.budget.cost is not None or (agent.sub_budget is not None and agent.sub_budget.cost is not None)
    if limited and sub_model is not None and price_of(sub_model) is None:
        raise UnknownPrice("a cost limit needs a sub_model whose price is known; limit tokens or calls instead")
    most = agent.max_depth if agent.budget.depth is None else min(agent.max_depth, int(agent.budget.depth))
    tree = Tree(agent.concurrency, cache=agent.cache_subcalls)
    return Recursion(most, agent.on_depth, sub_model, dict(agent.sub_models), agent.sub_budget, agent.hooks, tree)


def _asking(agent: Agent, task: Task, model: Metered, recursion: Recursion, world: World) -> Asking:
    def sub_agent(prompt: str, context: Any, inner: Metered) -> Outcome:
        # its answer is no answer to the whole question, which these are to check
        own = replace(agent, model=inner.model, answer_type=None, verify=None)
        own = own if isinstance(own.repl, str) or callable(own.repl) else replace(own, repl="auto")  # one for itself
        asked = Task("llm_query", prompt, unscored, context=context, tools=task.tools)
        return drive(own, asked, inner, recursion, world=world)

    return Asking(model, recursion, sub_agent)


def _repl(agent: Agent, task: Task) -> Callable[[], Session] | Session:
    kind = agent.repl
    if not isinstance(kind, str):
        return kind
    return lambda: open_repl(kind, files=task.files, setup=task.setup)
