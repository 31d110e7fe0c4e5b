"""`rlm-loop study run --models`: a study with several models, what that would use, and whether to go on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlm_loop.cli.experiments import place_of, run_study
from rlm_loop.cli.terminal import echo, fitting, note

if TYPE_CHECKING:
    from rlm_loop.study import Study
    from rlm_loop.study.run.estimate import RunEstimate


def say_estimates(
    experiment: str, studies: Sequence[Study], folder: str, *, limit: int | None, max_cost: float | None
) -> None:
    """Print what is left for each model and would be used, and the sum.

    Raises `StudyError` where a limit in dollars was given and the price of a model is not known.
    """
    from rlm_loop.study.run.estimate import estimates
    from rlm_loop.study.run.spending import unknown_price

    place = place_of(experiment)
    committed = (place if place.is_dir() else place.parent) / "results"
    found = [e for study in studies for e in estimates(study, folder, committed, limit)]
    for one in found:
        echo(fitting(one))
    echo(fitting(summed(found)))
    unpriced = [e.model for e in found if not e.priced and e.episodes]
    if max_cost is not None and unpriced:
        raise unknown_price(", ".join(unpriced), max_cost)


def summed(found: Sequence[RunEstimate]) -> str:
    """All models in a line: what will be spent."""
    episodes = sum(e.episodes for e in found)
    if not episodes:
        return "to be spent: nothing, all is done"
    left = [e for e in found if e.episodes]
    tokens = [
        None if e.input_tokens is None or e.output_tokens is None else e.input_tokens + e.output_tokens for e in left
    ]
    known = sum(t for t in tokens if t is not None)
    more = " and what is not known" if None in tokens else ""
    cost = f"${sum(e.cost for e in left if e.cost is not None):.4g}"
    unknown = [e.model for e in left if e.cost is None]
    rest = f" and what {', '.join(unknown)} cost{'s' if len(unknown) == 1 else ''}" if unknown else ""
    return f"to be spent: {known:,.0f} tokens{more}, {cost}{rest}, for {episodes} episodes"


def agreed_to_spend() -> bool:
    """Whether to go on: asked where somebody is there to be asked."""
    if not sys.stdin.isatty():
        return True
    note("Go on? [y/N]")
    if sys.stdin.readline().strip().casefold() in ("y", "yes"):
        return True
    note("nothing was run; --yes goes on without asking")
    return False


def run_studies(studies: Sequence[Study], folder: str, **options: Any) -> int:
    """Run the studies one after the other into one folder, which each extends by its model; the table comes last.

    `options` are those of `Study.run`.  What Ctrl-C or a limit ends is gone on with by the same command.
    """
    for study in studies:
        code = run_study(study, folder, show=study is studies[-1], **options)
        if code:
            return code
    return 0
