"""What a whole study may use up: US dollars, and tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rlm_loop.models import get_model
from rlm_loop.models.base import Model, ModelError
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Episode, StudyAgent, models_of
from rlm_loop.study.store.rows import Row

_INSTEAD = "give a model with a price, or limit the tokens (max_tokens, or the budget of each episode)"


class Spending:
    """US dollars spent by a study, all earlier runs in its folder and failed episodes included.

    An episode is taken to cost what its agent's own budget allows (`Budget.cost`) or, where that is open, the most that
    one of its arm has cost so far (of any arm, for an arm without an episode).  With budgets the limit is kept as well
    as these are; without, the study can end above it by what the running episodes cost more than any before.
    """

    argument, limited_by, unit = "max_cost", "cost", "US dollars"

    def __init__(
        self, limit: float, agents: Callable[[Episode], StudyAgent], rows: Iterable[Mapping[str, Any]]
    ) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < float("inf"):
            raise StudyError(f"{self.argument}={limit!r} is no limit: give {self.unit}, zero or more")
        self.limit = limit
        self.total = 0.0
        self.stopped = False
        self._agents = agents
        self._most: dict[str, float] = {}
        for row in rows:
            self._add(row)

    def amount(self, row: Mapping[str, Any]) -> float | None:
        """What a row used up; `None` where that is not known."""
        return row.get("cost")

    def shown(self, amount: float) -> str:
        """An amount in words."""
        return f"${amount:.4g}"

    def check(self, episodes: Iterable[Episode]) -> None:
        """Raises `StudyError` where the price of an arm's model is not known: the limit could not be kept."""
        for episode in {(c.arm, c.model): c for c in episodes}.values():
            agent = self._agents(episode)
            for model in map(_made, models_of(agent).values()):
                if model is not None and model.price is None:
                    raise unknown_price(f"{model.name} ({episode.arm})", self.limit)

    def allows(self, episode: Episode, running: Iterable[Episode]) -> bool:
        """Whether an episode may be started beside those that are running."""
        could = self.total + sum(map(self._could_use, running)) + self._could_use(episode)
        self.stopped = self.total >= self.limit or could > self.limit * (1 + 1e-9)  # sums of cents are not exact
        return not self.stopped

    def spent(self, row: Row) -> None:
        """Count a row.  Raises `StudyError` where calls were made and nobody knows what they used up."""
        if self.amount(row) is None and row.get("calls"):
            raise self._unknown(row)
        self._add(row)

    def ended(self, study: str, left: int) -> str:
        """What to say where the limit ended a study."""
        return (
            f"{study}: ended with {left} episodes to go, since {self.shown(self.total)} of at most "
            f"{self.shown(self.limit)} are spent; give more ({self.argument}) and run again to go on"
        )

    def _unknown(self, row: Row) -> StudyError:
        return unknown_price(row["model_name"], self.limit)

    def _add(self, row: Mapping[str, Any]) -> None:
        used = 0.0 if row.get("rescored") else self.amount(row) or 0.0
        self.total += used
        self._most[row["arm"]] = max(used, self._most.get(row["arm"], 0.0))

    def _could_use(self, episode: Episode) -> float:
        if episode.unscored is not None:
            return 0.0
        own = getattr(getattr(self._agents(episode), "budget", None), self.limited_by, None)
        usual = self._most.get(episode.arm, max(self._most.values(), default=0.0))
        return usual if own is None else float(own)


class TokensSpent(Spending):
    """The same of tokens, in and out, of all calls of a study; an episode may use what its `Budget.tokens` allows."""

    argument, limited_by, unit = "max_tokens", "tokens", "a number of tokens"

    def amount(self, row: Mapping[str, Any]) -> float | None:
        """Tokens in and out."""
        used = (row.get("input_tokens"), row.get("output_tokens"))
        return None if None in used else float(sum(n for n in used if n is not None))

    def shown(self, amount: float) -> str:
        """An amount in words."""
        return f"{amount:,.0f} tokens"

    def check(self, episodes: Iterable[Episode]) -> None:
        """Tokens need no price."""

    def _unknown(self, row: Row) -> StudyError:
        return StudyError(
            f"{row['model_name']} does not report its tokens, so max_tokens={self.limit:,.0f} cannot be kept; "
            "leave it out, and limit the tasks (limit) or the steps of each episode (budget)"
        )


def limits_of(
    max_cost: float | None,
    max_tokens: float | None,
    agents: Callable[[Episode], StudyAgent],
    rows: Sequence[Mapping[str, Any]],
) -> list[Spending]:
    """The limits that were given, with what the rows have used up of them."""
    given = ((Spending, max_cost), (TokensSpent, max_tokens))
    return [kind(limit, agents, rows) for kind, limit in given if limit is not None]


def unknown_price(what: str, limit: float) -> StudyError:
    """What to raise where a limit in dollars cannot be kept."""
    return StudyError(f"the price of {what} is not known, so max_cost={limit:g} cannot be kept; {_INSTEAD}")


def _made(model: Any) -> Model | None:
    """The model of a name or an object; `None` for none of ours: then the rows say what it costs."""
    try:
        return get_model(model) if isinstance(model, (str, Model)) else None
    except ModelError:
        return None
