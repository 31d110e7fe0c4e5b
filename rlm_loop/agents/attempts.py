"""Several attempts at a task: try again with what failed (`retry`), or hand on to a stronger model (`escalate`, as
SOFAI does, arXiv 2110.01834).  Each attempt is a run of its own: new messages, a new REPL, the agent's budget anew.

>>> outcomes = retry(task, LeanAgent(), 2)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rlm_loop.agents.agent import Agent
from rlm_loop.agents.checking import with_context
from rlm_loop.dialects.injectors import Told
from rlm_loop.outcome import Outcome
from rlm_loop.repl.text import clip
from rlm_loop.tasks.base import CheckResult, Task
from rlm_loop.traces.trace import Trace
from rlm_loop.workspace import Workspace

Check = Callable[[Workspace], CheckResult]

_FAILED = "A fix was tried, and the check still fails:\n{feedback}\n{state} Find out why and make it right."
_FRESH, _PATCHED = "The files are as they were before it.", "The files hold that fix."
_FEEDBACK = 2000  # characters of a check's feedback


def retry(
    task: Task, agent: Agent, times: int = 1, *, check: Check | None = None, trace: str | Path | Trace | None = None
) -> list[Outcome]:
    """Let the agent try, and up to `times` again until its patch passes the check; return all outcomes in order.

    A further attempt begins with the patch of the one before and is told the check's feedback.  `check` judges a clean
    checkout with the patch applied (by default the task's own visible check); `evidence["check"]` of each outcome says
    whether it passed.  `trace` gets a run for each attempt.
    Raises as an agent's `attempt` does, with the outcomes of earlier attempts as `attempts`, and `ValueError` where the
    task has no check to judge an attempt by.
    """
    return _attempts(task, [agent] * (times + 1), check, trace, mends=True)


def escalate(
    task: Task, fast: Agent, strong: Agent, *, check: Check | None = None, trace: str | Path | Trace | None = None
) -> list[Outcome]:
    """Let the fast agent try first, and the strong one, as if nobody had tried, where the patch does not pass.

    Returns and raises as `retry` does.
    """
    return _attempts(task, [fast, strong], check, trace, mends=False)


def _attempts(
    task: Task, agents: Sequence[Agent], check: Check | None, trace: str | Path | Trace | None, *, mends: bool
) -> list[Outcome]:
    """Return the outcomes of the agents' attempts, until one passes; `mends` goes on from what failed."""
    check = check or task.check
    if task.workspace is None or check is None:
        raise ValueError(f"task {task.id} needs a workspace and a check that may be seen: give check=")
    if check == task.score:
        raise ValueError("check= is the task's hidden score: give a check that may be seen")
    task = put = with_context(task)
    outcomes, told = list[Outcome](), tuple[Told, ...]()
    try:
        for agent in agents:
            agent = replace(agent, injectors=(*agent.injectors, *told))
            outcomes.append(agent.attempt(put, trace=trace))
            patch = outcomes[-1].artifact or ""
            with _checkout(task, patch) as space:
                verdict = check(space)
            outcomes[-1] = replace(outcomes[-1], evidence={**(outcomes[-1].evidence or {}), "check": verdict.passed})
            if verdict.passed:
                break
            if mends:
                feedback = clip(verdict.feedback.strip() or "(it does not say why)", _FEEDBACK)[0]
                failed = _FAILED.format(feedback=feedback, state=_PATCHED if patch.strip() else _FRESH)
                told = (Told(failed, "repair"),)
                put = replace(task, workspace=partial(_checkout, task, patch))
    except BaseException as error:
        error.attempts = outcomes  # pyright: ignore[reportAttributeAccessIssue]
        raise
    return outcomes


def _checkout(task: Task, patch: str) -> Workspace:
    """Open a clean checkout of the task's workspace with the patch applied."""
    space: Workspace = task.workspace()  # pyright: ignore[reportOptionalCall]  # those who call have checked
    space.apply(patch)
    return space
