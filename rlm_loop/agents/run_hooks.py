"""Hooks are told when a run begins and when it is over, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from rlm_loop.agents.metered import Metered
from rlm_loop.outcome import Outcome
from rlm_loop.tasks.base import Task
from rlm_loop.tools.hooks import notify


@contextmanager
def run_hooks(
    hooks: Iterable[object], task: Task, agent: str, model: Metered
) -> Generator[Callable[[Outcome], Outcome]]:
    """Around one run; what is given is to be handed its outcome, and gives it back.

    An exception that carries an `outcome` (Ctrl-C, a model's fault) is told of as the end of the run too, any other as
    an error.
    """
    hooks = tuple(hooks)

    def ended(outcome: Outcome) -> Outcome:
        notify(hooks, "on_run_end", outcome=outcome)
        return outcome

    if hooks:
        values = {"question": task.question, "ledger": model.ledger, "trace": model.trace}
        notify(hooks, "on_run_start", task=task.id, agent=agent, model=model.name, **values)
    try:
        yield ended
    except BaseException as error:
        left = getattr(error, "outcome", None)
        if isinstance(left, Outcome):
            ended(left)
        else:
            notify(hooks, "on_run_error", error=error, trace=model.trace)
        raise
