"""Settings of a run's sub-calls, what all of them share, and the errors of a failed one."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.accounting.budget import Account, Budget, PricePerToken, UnknownPrice
from rlm_loop.accounting.scope import Scope
from rlm_loop.accounting.slots import Slots
from rlm_loop.actions import FailureKind
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.rules import Beyond, SubCalls
from rlm_loop.messages import Usage
from rlm_loop.models import get_model
from rlm_loop.models.base import Model, ModelError
from rlm_loop.tools.function import ToolError

_SLICE = 0.1  # seconds between two looks at whether an answer is still wanted


class SubCallError(ToolError):
    """A sub-call gave no answer.  `reason` is one line that says why.

    It is raised where the sub-call was asked for; an error is never returned as if it were an answer.  `stop` is why a
    sub-agent ended.
    """

    stop: str | None = None

    def __init__(self, reason: str, kind: FailureKind = "runtime") -> None:
        super().__init__(kind, f"{type(self).__name__}: {reason}")
        self.reason = reason

    def __str__(self) -> str:
        return self.reason

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.reason, self.kind))


class DepthExceeded(SubCallError):
    """A sub-call would be deeper than `max_depth` allows, and `SubCalls.beyond` is `"error"`."""

    def __init__(self, reason: str, kind: FailureKind = "denied") -> None:
        super().__init__(reason, kind)


class SubcallCache:
    """Answers and what they cost, by what was asked.

    Who asks the same at the same time waits for the first; failures are not kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_key: dict[Hashable, tuple[str, Usage] | threading.Event] = {}  # an event while the first one asks

    def find(self, key: Hashable, scope: Scope) -> tuple[str, Usage] | None:
        """The answer; `None` where there is none, and then the caller must call `settle`.

        Raises `Cancelled` where the scope ends while an answer is waited for.
        """
        while True:
            with self._lock:
                entry = self._by_key.setdefault(key, mine := threading.Event())
            if entry is mine:
                return None
            if not isinstance(entry, threading.Event):
                return entry
            while not entry.wait(_SLICE):
                scope.check()
            scope.check()

    def settle(self, key: Hashable, answer: tuple[str, Usage] | None) -> None:
        """Keep the answer; without one the next caller who asks makes the call."""
        with self._lock:
            entry = self._by_key.pop(key, None)
            if answer is not None:
                self._by_key[key] = answer
        if isinstance(entry, threading.Event):
            entry.set()


class Tree:
    """What all agents of one run share.

    At most `concurrency` model calls are under way at once, and at most so many sub-agents run besides one for each
    agent that waits for it.  With `cache`, identical sub-calls are made once.
    """

    def __init__(self, concurrency: int = 8, *, cache: bool = False) -> None:
        self.calls = Slots(concurrency)
        self.agents = Slots(concurrency)
        self.answers = SubcallCache() if cache else None
        self._models: dict[str, Model] = {}
        self._lock = threading.Lock()

    def model(self, name: str, listed: Mapping[str, str | Model]) -> Model:
        """The model that the user listed by that name, made once."""
        with self._lock:
            if name not in self._models:
                try:
                    self._models[name] = get_model(listed[name])
                except (ModelError, ImportError, ValueError) as error:
                    raise SubCallError(str(error), "invalid_arguments") from error
            return self._models[name]


@dataclass(frozen=True)
class Recursion:
    """The settings of an agent's sub-calls.

    `sub_model` answers instead of the agent's own model, and those of `sub_models` where a cell names them;
    `sub_budget` limits each sub-call with all below it, besides what is left of the whole.
    """

    max_depth: int = 1
    on_depth: Beyond = "error"
    sub_model: Model | None = None
    sub_models: Mapping[str, str | Model] = field(default_factory=dict[str, "str | Model"])
    sub_budget: Budget | None = None
    tree: Tree = field(default_factory=Tree)

    @classmethod
    def of(cls, subcalls: SubCalls, budget: Budget) -> Recursion:
        """The sub-calls of one run within a budget; raises `UnknownPrice` where a cost limit could not be kept."""
        model = None if subcalls.model is None else get_model(subcalls.model)
        if model is not None and model.price is None:
            own = subcalls.budget
            if budget.cost is not None or (own is not None and own.cost is not None):
                raise UnknownPrice(
                    "a cost limit needs a model of sub-calls whose price is known; limit tokens or calls"
                )
        depth = subcalls.depth if budget.depth is None else min(subcalls.depth, int(budget.depth))
        tree = Tree(subcalls.concurrency, cache=subcalls.cache)
        return cls(depth, subcalls.beyond, model, subcalls.listed if subcalls.models else {}, subcalls.budget, tree)

    def model_for(self, name: str | None, agent: Meter) -> tuple[Model, PricePerToken | None]:
        """The model of a sub-call, and its price; raises `SubCallError` where there is none that may be used.

        A name is what a cell says: it is looked up, and never read as an address.
        """
        known = {m.name: m for m in (agent.model, self.sub_model) if m is not None}
        if name is None:
            model = self.sub_model or agent.model
        elif name in known:
            model = known[name]
        elif name in self.sub_models:
            model = self.tree.model(name, self.sub_models)
        else:
            there = ", ".join([*dict.fromkeys([*reversed(known), *self.sub_models])])
            raise SubCallError(
                f"no model {str(name)[:100]!r} may be asked here; there are: {there}", "invalid_arguments"
            )
        if model.price is None and self.account_for(agent).priced:
            raise SubCallError(f"the price of {model.name} is not known, and this run has a cost limit", "denied")
        return model, model.price

    def account_for(self, agent: Meter) -> Account:
        """What a sub-call spends from."""
        if self.sub_budget is None:
            return agent.account
        return agent.account.scope(self.sub_budget, price=agent.price or (0.0, 0.0))
