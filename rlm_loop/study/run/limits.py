"""How many calls a minute a study may make, and the limits that cannot be meant."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import get_model
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Episode, StudyAgent


def require_limits(*, limit: Any, seconds: Any, jobs: Any) -> None:
    """Raises `StudyError` for a number of tasks, of seconds or of episodes at a time that is none."""
    for name, value, kind, least in (
        ("limit", limit, int, 0),
        ("seconds", seconds, (int, float), 0),
        ("jobs", jobs, int, 1),
    ):
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind) or not value >= least):
            what = "a number" if name == "seconds" else "a whole number"
            raise StudyError(f"{name} is {what}, {least} or more, or None, not {value!r:.60}")


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
