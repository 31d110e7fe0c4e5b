"""What a whole study may cost, and how many calls a minute it may make."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from rlm_loop.agents.recursion.settings import price_of
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import get_model
from rlm_loop.models.base import Model, ModelError
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Episode, StudyAgent
from rlm_loop.study.store.rows import Row


class Spending:
    """US dollars spent by a study, all earlier runs in its folder and failed episodes included.

    An episode is taken to cost what its agent's own budget allows (`Budget.cost`) or, where that is open, the most that
    one of its arm has cost so far (of any arm, for an arm without an episode).  With budgets the limit is kept as well
    as these are; without, the study can end above it by what the running episodes cost more than any before.
    """

    def __init__(
        self, limit: float, agents: Callable[[Episode], StudyAgent], rows: Iterable[Mapping[str, Any]]
    ) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < float("inf"):
            raise StudyError(f"max_cost={limit!r} is no limit: give US dollars, zero or more")
        self.limit = limit
        self.total = 0.0
        self.stopped = False
        self._agents = agents
        self._most: dict[str, float] = {}
        for row in rows:
            self._add(row)

    def check(self, episodes: Iterable[Episode]) -> None:
        """Raises `StudyError` where the price of an arm's model is not known: the limit could not be kept."""
        for episode in {(c.arm, c.model): c for c in episodes}.values():
            agent = self._agents(episode)
            for role in ("model", "sub_model"):
                model = _made(getattr(agent, role, None))
                if model is not None and price_of(model) is None:
                    raise StudyError(
                        f"the price of {model.name} ({episode.arm}) is not known, so max_cost={self.limit:g} cannot be "
                        "kept; give a model with a price, or limit the tokens of each episode (budget)"
                    )

    def allows(self, episode: Episode, running: Iterable[Episode]) -> bool:
        """Whether an episode may be started beside those that are running."""
        could = self.total + sum(map(self._could_cost, running)) + self._could_cost(episode)
        self.stopped = self.total >= self.limit or could > self.limit * (1 + 1e-9)  # sums of cents are not exact
        return not self.stopped

    def spent(self, row: Row) -> None:
        """Count a row.  Raises `StudyError` where calls were made whose price is not known."""
        if row.get("cost") is None and row.get("calls"):
            raise StudyError(
                f"the price of {row['model_name']} is not known, so max_cost={self.limit:g} cannot be kept; "
                "give a model with a price, or limit the tokens of each episode (budget)"
            )
        self._add(row)

    def _add(self, row: Mapping[str, Any]) -> None:
        cost = 0.0 if row.get("rescored") else row.get("cost") or 0.0
        self.total += cost
        self._most[row["arm"]] = max(cost, self._most.get(row["arm"], 0.0))

    def _could_cost(self, episode: Episode) -> float:
        if episode.unscored is not None:
            return 0.0
        own = getattr(getattr(self._agents(episode), "budget", None), "cost", None)
        usual = self._most.get(episode.arm, max(self._most.values(), default=0.0))
        return usual if own is None else float(own)


def _made(model: Any) -> Model | None:
    """The model of a name or an object; `None` for none of ours: then the rows say what it costs."""
    try:
        return None if model is None else get_model(model)
    except ModelError:
        return None


class Pace:
    """At most `per_minute` calls begin in a minute, evenly spaced, whichever thread they come from.

    It is kept in one process: each of several workers is given a share of the rate.
    """

    def __init__(
        self,
        per_minute: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if isinstance(per_minute, bool) or not isinstance(per_minute, int | float) or not 0 < per_minute < float("inf"):
            raise StudyError(f"rate={per_minute!r} is no rate: give model calls a minute, more than zero")
        self.per_minute = per_minute
        self._clock, self._sleep = clock, sleep
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> float:
        """Wait for this call's turn; returns the seconds that it took."""
        with self._lock:
            now = self._clock()
            at = max(now, self._next)
            self._next = at + 60 / self.per_minute
        if at > now:
            self._sleep(at - now)
        return at - now


class Paced:
    """A model whose calls keep a pace; what it waits is no working time.  All else is the model's own."""

    def __init__(self, model: Any, pace: Pace) -> None:
        self._model, self._pace = model, pace

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        waited = self._pace.wait()
        reply: Reply = self._model.complete(prompt, max_tokens=max_tokens)
        return replace(reply, waited=reply.waited + waited) if waited else reply

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_model", "_pace"):  # not there yet while it is copied
            raise AttributeError(name)
        return getattr(self._model, name)


class PacedMeasuring(Paced):
    """One that knows its tokenizer (a protocol looks for the method itself)."""

    def measure(self, prompt: Prompt) -> Any:
        return self._model.measure(prompt)


def at_pace(model: Any, pace: Pace) -> Paced:
    """A model whose calls keep a pace."""
    return (PacedMeasuring if hasattr(model, "measure") else Paced)(model, pace)


def pacing(agents: Callable[[Episode], StudyAgent], pace: Pace) -> Callable[[Episode], StudyAgent]:
    """The agents with models that keep a pace.  Raises `StudyError` for one that makes its own models."""

    def find(episode: Episode) -> StudyAgent:
        agent = agents(episode)
        found = paced(agent, pace)
        if found is agent:
            raise StudyError(
                f"rate cannot be kept for arm {episode.arm!r}: it has no model of ours; limit its own calls"
            )
        return found

    return find


def paced(agent: Any, pace: Pace) -> Any:
    """An agent, or agents within one, with paced models; the same object where it has none."""
    if not is_dataclass(agent) or isinstance(agent, type):
        return agent
    change: dict[str, Any] = {}
    for name in (f.name for f in fields(agent) if f.init):
        value = getattr(agent, name)
        if name in ("model", "sub_model"):
            if value is not None:
                seed = getattr(agent, "seed", None) if name == "model" and isinstance(value, str) else None
                change[name] = at_pace(get_model(value, **({} if seed is None else {"seed": seed})), pace)
        elif hasattr(value, "attempt"):
            inner = paced(value, pace)
            if inner is not value:
                change[name] = inner
        elif isinstance(value, tuple) and value and all(hasattr(v, "attempt") for v in value):
            change[name] = tuple(paced(v, pace) for v in value)
    return replace(agent, **change) if change else agent
