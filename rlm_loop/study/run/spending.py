"""What a whole study may cost: no episode is started that could bring it above the limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rlm_loop.agents.recursion.settings import price_of
from rlm_loop.models import get_model
from rlm_loop.models.base import Model, ModelError
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Agent, Episode
from rlm_loop.study.store.rows import Row


class Spending:
    """US dollars spent by a study, all earlier runs in its folder and failed episodes included.

    An episode is taken to cost what its agent's own budget allows (`Budget.cost`) or, where that is open, the most that
    one of its arm has cost so far (of any arm, for an arm without an episode).  With budgets the limit is kept as well
    as these are; without, the study can end above it by what the running episodes cost more than any before.
    """

    def __init__(self, limit: float, agents: Callable[[Episode], Agent], rows: Iterable[Mapping[str, Any]]) -> None:
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
