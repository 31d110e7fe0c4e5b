"""How an arm's prompt tokens grow over the turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlm_loop.study.store.rows import Row


@dataclass(frozen=True)
class Curve:
    """`tokens[k]` is the mean of the prompt tokens sent up to turn k + 1; `running[k]` over how many tasks."""

    arm: str
    tokens: tuple[float, ...]
    running: tuple[int, ...]


def prompt_curves(rows: Sequence[Row], arms: Sequence[str], share: float = 1 / 3) -> list[Curve]:
    """The curve of each arm, over the tasks that reach a turn, as long as at least `share` of the arm's tasks do.

    Survivors rather than carrying a finished task's last figure forward: the slope then is what a turn really
    costs, while a carried figure flattens the line where tasks end, so that an arm which gives up early would look
    cheap per turn.  The price of a task as a whole is in the tables.
    """
    return [_curve(arm, [r["cumulative_prompt_tokens"] for r in rows if r["arm"] == arm], share) for arm in arms]


def _curve(arm: str, growths: Sequence[Sequence[int]], share: float) -> Curve:
    tokens: list[float] = []
    running: list[int] = []
    for turn in range(max((len(g) for g in growths), default=0)):
        here = [g[turn] for g in growths if len(g) > turn]
        if len(here) < share * len(growths):
            break
        tokens.append(sum(here) / len(here))
        running.append(len(here))
    return Curve(arm, tuple(tokens), tuple(running))
