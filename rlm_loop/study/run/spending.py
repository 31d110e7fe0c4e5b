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
    open, the most that one of its arm has used so far (of any arm, for an arm without an episode).  With budgets the
    limit is kept as well as these are; without, the study can end above it by what the running episodes use more than
    any before.
    """

    def __init__(
        self, name: str, limit: float, agents: Callable[[Episode], StudyAgent], rows: Iterable[Mapping[str, Any]]
    ) -> None:
        self._name, self._limit, self._agents = name, limit, agents
        self._fields = ("cost",) if name == "max_cost" else ("input_tokens", "output_tokens")
        if limit < 0:
            raise StudyError(f"{name} must be 0 or more, got {limit!r}")
        self._total = 0.0
        self.stopped = False
        self._most: dict[str, float] = {}
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
        could = self._total + sum(map(self._could_use, running)) + self._could_use(episode)
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
        return StudyError(
            f"{unknown} is not known, so {self._name}={self._limit:g} cannot be kept; leave it out, and limit the "
            "tasks (limit) or the budget of each episode"
        )

    def _add(self, row: Mapping[str, Any]) -> None:
        used = 0.0 if row.get("rescored") else float(sum(row.get(name) or 0 for name in self._fields))
        self._total += used
        self._most[row["arm"]] = max(used, self._most.get(row["arm"], 0.0))

    def _could_use(self, episode: Episode) -> float:
        if episode.unscored is not None:
            return 0.0
        budget = getattr(self._agents(episode), "budget", None)
        own = getattr(budget, self._name.removeprefix("max_"), None)
        return self._most.get(episode.arm, max(self._most.values(), default=0.0)) if own is None else float(own)
