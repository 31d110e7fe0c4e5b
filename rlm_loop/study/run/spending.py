"""Limits of a whole study: US dollars, and tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Episode, StudyAgent, made_model, models_of
from rlm_loop.study.store.rows import Row


class Spending:
    """A limit of a study ("max_cost" or "max_tokens"), and the use of it, failed episodes and earlier runs included.

    An episode is taken to use what its agent's own budget allows (`Budget.cost`, `Budget.tokens`) or, where that is
    open, the most that one has used so far.  With budgets the limit is kept as well as these are; without, the study
    can end above it by what the running episodes use more than any before.
    """

    def __init__(
        self, name: str, limit: float, agents: Callable[[Episode], StudyAgent], rows: Iterable[Mapping[str, Any]]
    ) -> None:
        self._name, self._limit, self._agents = name, limit, agents
        self._fields = ("cost",) if name == "max_cost" else ("input_tokens", "output_tokens")
        if limit < 0:
            raise StudyError(f"{name} must be 0 or more, got {limit!r}")
        self._total = self._most = 0.0
        self.stopped = False
        for row in rows:
            self._add(row)

    def check(self, episodes: Iterable[Episode]) -> None:
        """Raises `StudyError` where the price of an arm's model is not known: a limit in dollars could not be kept."""
        for episode in {(c.arm, c.model): c for c in episodes}.values() if self._name == "max_cost" else ():
            for model in map(made_model, models_of(self._agents(episode)).values()):
                if model is not None and model.price is None:
                    raise self._not_kept(f"the price of {model.name} ({episode.arm})")

    def allows(self, episode: Episode, running: Iterable[Episode]) -> bool:
        """Return whether an episode may be started beside those that are running."""
        could = self._total + sum(map(self._could_use, (*running, episode)))
        self.stopped = self._total >= self._limit or could > self._limit * (1 + 1e-9)  # sums of cents are not exact
        return not self.stopped

    def spent(self, row: Row) -> None:
        """Count a row.  Raises `StudyError` where calls were made and nobody knows what they used up."""
        if row.get("calls") and any(row.get(name) is None for name in self._fields):
            raise self._not_kept(f"the {' and '.join(self._fields)} of {row['model_name']}")
        self._add(row)

    def ended(self, study: str, left: int) -> str:
        """Return the warning for a study that the limit ended."""
        form = "${:.4g}" if self._name == "max_cost" else "{:,.0f} tokens"
        spent = f"{form.format(self._total)} of at most {form.format(self._limit)} are spent"
        return f"{study}: ended with {left} episodes to go, since {spent}; give more ({self._name}) to go on"

    def _not_kept(self, unknown: str) -> StudyError:
        return StudyError(f"{unknown} is not known, so {self._name}={self._limit:g} cannot be kept; leave it out")

    def _add(self, row: Mapping[str, Any]) -> None:
        used = 0.0 if row.get("rescored") else float(sum(row.get(name) or 0 for name in self._fields))
        self._total += used
        self._most = max(used, self._most)

    def _could_use(self, episode: Episode) -> float:
        if episode.unscored is not None:
            return 0.0
        own = getattr(getattr(self._agents(episode), "budget", None), self._name.removeprefix("max_"), None)
        return self._most if own is None else float(own)
