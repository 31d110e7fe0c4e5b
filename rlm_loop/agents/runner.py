"""One run of an agent: its environment is made, the task put, the loop driven; sub-agents are runs of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from rlm_loop.agents.answers import AnswerCheck, Approval
from rlm_loop.agents.environment import Environment
from rlm_loop.agents.history import History
from rlm_loop.agents.loop import Interrupted, attach, run
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.record_setup import record_calls, record_problem
from rlm_loop.agents.recursion import Recursion, SubcallRunner, query_tools
from rlm_loop.agents.setup import RunSetup, with_servers
from rlm_loop.agents.window import Fit
from rlm_loop.dialects.base import Dialect, Problem
from rlm_loop.dialects.injectors import told_first
from rlm_loop.outcome import Outcome, Score
from rlm_loop.repl import open_repl
from rlm_loop.repl.base import Session
from rlm_loop.repl.contexts.context import describe_workspace
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Task
from rlm_loop.workspace import Workspace

#: Makes the environment of a run, which is then entered; a replay makes one that reads the record.
MakeEnvironment = Callable[[RunSetup, Metered, SubcallRunner, Workspace | None], Environment]


def noted(outcome: Outcome, notes: Sequence[str]) -> Outcome:
    """The outcome with further notes."""
    return replace(outcome, notes=(*outcome.notes, *notes)) if notes else outcome


def unscored(attempt: Attempt) -> Score:
    """For a question that no suite asked."""
    return Score(False, 0.0, "a question of the user's has no truth to compare with")


def environment_of(
    setup: RunSetup,
    model: Metered,
    asking: SubcallRunner,
    workspace: Workspace | None = None,
    make: Callable[..., Environment] = Environment,
) -> Environment:
    """The environment of a run: its tools, the REPL, the workspace; a `workspace` that is given stays open."""
    task, dialect, mode = setup.task, setup.dialect, setup.dialect.action_mode
    allowed = setup.max_depth > 0 or asking.settings.on_depth != "error"
    asks = query_tools(asking) if mode != "none" and allowed else ()
    told = setup.max_depth > 0 and (task.context is not None or setup.max_depth > 1)
    given = isinstance(setup.repl, Session)  # handed in, so it is to be used
    opened = workspace
    if opened is None and mode != "none" and task.workspace is not None:
        opened = task.workspace()
    trace, node = model.trace, model.node
    return make(
        (*task.tools, *setup.tools, *(asks if told else ())),
        unlisted=() if told else asks,
        action_mode=mode,
        repl=_repl(setup) if mode != "none" and (task.needs_repl or mode == "code" or given) else None,
        workspace=opened,
        owned=workspace is None,
        context=task.context,
        cell_timeout=setup.cell_timeout,
        tool_timeout=setup.tool_timeout,
        check=AnswerCheck(setup.answer_type, setup.verify),
        require_code=setup.require_code,
        seconds_left=model.account.seconds_left,
        hooks=setup.hooks,
        node=node.path,
        about=lambda: {
            "run": trace.run,
            "task": trace.task,
            "turn": model.turn,
            "steps_remaining": trace.steps_left(node.path, model.turn),
        },
        allow=setup.allow,
        observation_cap=dialect.observation_cap,
        answer_tool=setup.answer_tool,
        sampled=_samples(model),
        approve=None if setup.approve is None else Approval(setup.approve, partial(_record_approval, model)),
        keep_tree=partial(_record_tree, model),
        keep_calls=partial(record_calls, model),
    )


def drive(
    setup: RunSetup,
    model: Metered,
    recursion: Recursion,
    workspace: Workspace | None = None,
    environment: MakeEnvironment = environment_of,
) -> Outcome:
    """One run at the model's depth: the root, or a sub-agent that `llm_query` asked for."""
    history = History(setup.history, model, setup.earlier.turns)
    faults: Sequence[str] = ()
    outcome: Outcome | None = None
    try:
        with prepared(setup, model, recursion, workspace, environment) as (dialect, problem, place):
            faults = place.faults  # filled when it is closed
            outcome = run(
                dialect,
                problem,
                place,
                model,
                hooks=setup.hooks,
                collect=setup.task.collect,
                agent=setup.agent,
                fit=Fit(dialect, model, shortens=setup.history is not None),
                history=history,
                turn_offset=setup.turn_offset,
                earlier=setup.earlier,
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
    setup: RunSetup,
    model: Metered,
    recursion: Recursion,
    workspace: Workspace | None = None,
    environment: MakeEnvironment = environment_of,
) -> Generator[tuple[Dialect, Problem, Environment]]:
    """What a run begins with: how it speaks, what it is told, and where it acts, closed at the end."""

    def sub_agent(prompt: str, context: Any, inner: Metered) -> Outcome:
        asked = Task("llm_query", prompt, unscored, context=context, tools=setup.task.tools)
        below = replace(setup.below(inner.model, asked), tools=setup.tools)  # of the same servers
        return drive(below, inner, recursion, environment=environment)

    with with_servers(setup) as setup:
        opened = environment(setup, model, SubcallRunner(model, recursion, sub_agent), workspace)
        with opened, model.node.scope.waking(lambda: threading.Thread(target=opened.close, daemon=True).start()):
            problem, told = opened.tell(setup)
            record_problem(model, setup, problem, opened, told)
            if opened.begin(setup.earlier.patch):
                seen = filter(None, [problem.context, describe_workspace(opened.tools)])
                problem = replace(problem, context="\n".join(seen))
            yield opened.speaking(told_first(setup.dialect, told)), problem, opened


def _record_tree(model: Metered, tree: str, patch: str) -> None:
    model.trace.patch(tree, patch, node=model.node.path, depth=model.depth, turn=model.turn)


def _record_approval(model: Metered, **said: Any) -> None:
    model.trace.record("approval", node=model.node.path, depth=model.depth, turn=model.turn, **said)


def _samples(model: Metered) -> bool:
    """Whether replies are drawn: a temperature above 0, or none given, so that a provider takes its own."""
    temperature = model.model.temperature if model.temperature is None else model.temperature
    return temperature is None or temperature > 0


def _repl(setup: RunSetup) -> Callable[[], Session] | Session:
    kind = setup.repl
    if not isinstance(kind, str):
        return kind
    return lambda: open_repl(kind, files=setup.task.files, setup=setup.task.setup)
