"""Estimate of what is left of a study: tokens and US dollars for each model, before a model is called.

Tokens are means of the rows of the folder that is gone on with, by arm, of the same model where there are any.  Without
rows they are not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Episode, StudyAgent, made_model, models_of
from rlm_loop.study.statistics.descriptive import mean, total
from rlm_loop.study.store.reading import read_rows
from rlm_loop.study.store.rows import Row, finished, key, to_run
from rlm_loop.study.study import Study


@dataclass(frozen=True)
class RunEstimate:
    """Estimate for one model: `episodes` left, tokens in and out, US dollars, and the rows that they are from.

    `None` is not known: of tokens where there are no rows, of the cost also where a model has no price.
    """

    model: str
    episodes: int
    input_tokens: float | None
    output_tokens: float | None
    cost: float | None
    basis: str

    def __str__(self) -> str:
        tokens = "an unknown number of tokens"
        if self.input_tokens is not None and self.output_tokens is not None:
            tokens = f"{self.input_tokens:,.0f} tokens in and {self.output_tokens:,.0f} out"
        cost = "cost unknown" if self.cost is None else f"${self.cost:.4g}"
        return f"{self.model}: {self.episodes} episodes, {tokens}, {cost} ({self.basis})"


def estimates(study: Study, folder: str | Path = "", limit: int | None = None) -> list[RunEstimate]:
    """Estimate `study.run(folder, limit=limit)` for each model."""
    rows: list[Row] = []
    with suppress(StudyError):  # a folder that cannot be read is said when the study is run
        rows = [r for r in read_rows(folder) if finished(r) and r.get("calls")] if folder else []
    known = {key(r): r for r in rows}
    left = [e for e in study.episodes(limit) if to_run(known.get(e.key))]
    arms = {model: list(by_arm.values()) for (model, _), by_arm in study.agents().items()}
    return [_estimate(model, agents, [e for e in left if e.model == model], rows) for model, agents in arms.items()]


def _estimate(model: str, agents: Iterable[StudyAgent], left: list[Episode], every: list[Row]) -> RunEstimate:
    rows = [r for r in every if r["model"] == model] or every
    tokens: list[float | None] = []
    for name in ("input_tokens", "output_tokens"):
        usual = {arm: mean(r.get(name) for r in rows if r["arm"] == arm) for arm in {e.arm for e in left}}
        tokens.append(total(usual[e.arm] for e in left))
    into, out = tokens
    made = [made_model(each) for agent in agents for each in {"model": model, **models_of(agent)}.values()]
    prices = [each.price for each in made if each is not None and each.price is not None]
    cost = None
    if len(prices) == len(made) and into is not None and out is not None:  # at the dearest of the arms' models
        cost = into * max(price[0] for price in prices) + out * max(price[1] for price in prices)
    basis = f"from {len(rows)} rows of {', '.join(sorted({str(r['model']) for r in rows}))}"
    if not rows:
        basis = "there are no results to go by: run a few tasks first (--limit)"
    return RunEstimate(model, len(left), into, out, cost, basis)
