"""A function as an arm of a study: any framework, whose calls are metered as those of our agents are."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from rlm_loop.accounting.budget import Budget
from rlm_loop.agents.checking import with_context
from rlm_loop.agents.past_run import outcome_of
from rlm_loop.messages import digest
from rlm_loop.meter.endpoint import Endpoint, metered_endpoint
from rlm_loop.models.names import default_model, model_name
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.tasks.base import Task


@dataclass(frozen=True)
class FunctionArm:
    """An arm that is a function of a task and an endpoint; `arm` makes it.

    The function points its framework at the endpoint (`base_url=endpoint`, any key and any model's name) and returns
    the answer.  `model` is what answers behind the endpoint.  `budget` limits what the function may spend (its `steps`,
    for which `max_steps` is short, are requests): a request past it is refused with an error of the provider's shape,
    and the row says which limit it was.  The function's own code is not stopped.
    """

    function: Callable[[Task, Endpoint], Any]
    _: KW_ONLY
    name: str = ""
    model: Any = None
    budget: Budget = field(default_factory=Budget)
    max_steps: InitVar[int | None] = None

    def __post_init__(self, max_steps: int | None) -> None:
        object.__setattr__(self, "name", self.name or getattr(self.function, "__name__", "function"))
        if max_steps is not None:
            object.__setattr__(self, "budget", replace(self.budget, steps=max_steps))

    def settings(self) -> dict[str, Any]:
        """Return the marks of the arm: the function's name and the text of its source, the model, the budget."""
        source = repr(self.function)
        with suppress(OSError, TypeError):
            source = inspect.getsource(self.function)
        name = f"{self.function.__module__}.{getattr(self.function, '__qualname__', self.name)}"
        model = model_name(self.model or default_model())
        return {"agent": "function", "function": name, "source": digest(source)[:16], "model": model} | {
            "budget": dict(vars(self.budget))
        }

    def attempt(self, task: Task, *, trace: str | Path | None = None) -> Outcome:
        """Call the function on a task.  What it raises has the outcome so far as its `outcome`."""
        budget, task = self.budget, with_context(task)
        calls = min((n for n in (budget.steps, budget.calls) if n is not None), default=None)
        model = default_model() if self.model is None else self.model
        answer: Any = None
        fault: BaseException | None = None
        with metered_endpoint(model, budget=replace(budget, steps=None, calls=calls)) as endpoint:
            session = endpoint.meter.session("arm", None if trace is None else Path(trace))
            session.begin(task.id, task.question, self.name)
            try:
                answer = self.function(task, endpoint.session("arm"))
                session.result = (answer, Stop.ANSWERED, "")
            except (Exception, SystemExit) as error:
                if (spent := session.refused) is not None:
                    session.result = (None, Stop(spent.kind), spent.reason)
                else:
                    session.result = (None, Stop.FAILED, f"{type(error).__name__}: {error}")
                    fault = error
        made = outcome_of(session.record(), trace=None if trace is None else str(trace))
        made = replace(made, answer=answer, answer_form=None if answer is None else "object")
        if fault is not None:
            fault.outcome = made  # pyright: ignore[reportAttributeAccessIssue]
            raise fault
        return made


def arm(function: Callable[[Task, Endpoint], Any] | None = None, /, **settings: Any) -> Any:
    """Make an arm of a study from a function of (task, endpoint) that returns an answer; also as a decorator.

        @arm
        def smol(task, endpoint):
            model = OpenAIServerModel("any", api_base=endpoint, api_key="any")
            return CodeAgent(tools=[], model=model).run(task.question)

        Study("mine", {"smol": smol, "code": ToolLoopAgent()}, tasks, model="local")

    `settings` are those of `FunctionArm`.
    """
    return partial(FunctionArm, **settings) if function is None else FunctionArm(function, **settings)
