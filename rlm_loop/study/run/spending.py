"""What a whole study may use up: US dollars, and tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rlm_loop.models import get_model
from rlm_loop.models.base import Model, ModelError
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Episode, StudyAgent, models_of
from rlm_loop.study.store.rows import Row


class Spending:
    """What a study used up of a limit ("max_cost" or "max_tokens"), earlier runs and failed episodes included.

    An episode is taken to use what its agent's own budget allows (`Budget.cost`, `Budget.tokens`) or, where that is
    open, the most that one of its arm has used so far (of any arm, for an arm without an episode).  With budgets the
    limit is kept as well as these are; without, the study can end above it by what the running episodes use more than
    any before.
    """

    def __init__(
        self, name: str, limit: float, agents: Callable[[Episode], StudyAgent], rows: Iterable[Mapping[str, Any]]
    ) -> None:
        self._name, self._tokens = name, name == "max_tokens"
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < float("inf"):
            unit = "tokens" if self._tokens else "US dollars"
            raise StudyError(f"{name} must be a number of {unit}, 0 or more, got {limit!r}")
        self.limit = limit
        self.total = 0.0
        self.stopped = False
        self._agents = agents
        self._most: dict[str, float] = {}
        for row in rows:
            self._add(row)

    def check(self, episodes: Iterable[Episode]) -> None:
        """Raises `StudyError` where the price of an arm's model is not known: a limit in dollars could not be kept."""
        for episode in {} if self._tokens else {(c.arm, c.model): c for c in episodes}.values():
            for model in map(_made, models_of(self._agents(episode)).values()):
                if model is not None and model.price is None:
                    raise unknown_price(f"{model.name} ({episode.arm})", self.limit)

    def allows(self, episode: Episode, running: Iterable[Episode]) -> bool:
        """Whether an episode may be started beside those that are running."""
        could = self.total + sum(map(self._could_use, running)) + self._could_use(episode)
        self.stopped = self.total >= self.limit or could > self.limit * (1 + 1e-9)  # sums of cents are not exact
        return not self.stopped

    def spent(self, row: Row) -> None:
        """Count a row.  Raises `StudyError` where calls were made and nobody knows what they used up."""
        if self._used(row) is None and row.get("calls"):
            if not self._tokens:
                raise unknown_price(row["model_name"], self.limit)
            raise StudyError(
                f"{row['model_name']} does not report its tokens, so max_tokens={self.limit:,.0f} cannot be kept; "
                "leave it out, and limit the tasks (limit) or the steps of each episode (budget)"
            )
        self._add(row)

    def ended(self, study: str, left: int) -> str:
        """What to say where the limit ended a study."""
        total, limit = (f"{x:,.0f} tokens" if self._tokens else f"${x:.4g}" for x in (self.total, self.limit))
        return (
            f"{study}: ended with {left} episodes to go, since {total} of at most {limit} are spent; give more "
            f"({self._name}) and run again to go on"
        )

    def _used(self, row: Mapping[str, Any]) -> float | None:
        used = [row.get(name) for name in (("input_tokens", "output_tokens") if self._tokens else ("cost",))]
        return None if None in used else float(sum(n for n in used if n is not None))

    def _add(self, row: Mapping[str, Any]) -> None:
        used = 0.0 if row.get("rescored") else self._used(row) or 0.0
        self.total += used
        self._most[row["arm"]] = max(used, self._most.get(row["arm"], 0.0))

    def _could_use(self, episode: Episode) -> float:
        if episode.unscored is not None:
            return 0.0
        budget = getattr(self._agents(episode), "budget", None)
        own = getattr(budget, "tokens" if self._tokens else "cost", None)
        usual = self._most.get(episode.arm, max(self._most.values(), default=0.0))
        return usual if own is None else float(own)


def limits_of(
    max_cost: float | None,
    max_tokens: float | None,
    agents: Callable[[Episode], StudyAgent],
    rows: Sequence[Mapping[str, Any]],
) -> list[Spending]:
    """The limits that were given, with what the rows have used up of them."""
    given = (("max_cost", max_cost), ("max_tokens", max_tokens))
    return [Spending(name, limit, agents, rows) for name, limit in given if limit is not None]


def unknown_price(what: str, limit: float) -> StudyError:
    """What to raise where a limit in dollars cannot be kept."""
    return StudyError(
        f"the price of {what} is not known, so max_cost={limit:g} cannot be kept; give a model with a price, or limit "
        "the tokens (max_tokens, or the budget of each episode)"
    )


def _made(model: Any) -> Model | None:
    """The model of a name or an object; `None` for none of ours: then the rows say what it costs."""
    try:
        return get_model(model) if isinstance(model, (str, Model)) else None
    except ModelError:
        return None
