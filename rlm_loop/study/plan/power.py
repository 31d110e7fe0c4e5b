"""Power of a study of a planned size, before it is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from rlm_loop.study import statistics
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.analysis import Analysis
from rlm_loop.study.store.rows import frame_of

if TYPE_CHECKING:
    import pandas as pd

#: True differences that are planned for, where the claim is that arms differ.
_DIFFERENCES = (0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Chance:
    """The power of one claim in the resolve rate under one assumption about the truth.

    `discordant` is the share of pairs that just one of the two arms resolves, `difference` the true difference of the
    rates.  `chance` is that of the planned number of tasks, by one test at the end; `with_looks` that of `sequential`,
    which may be read after every task; `tasks` how many give the power wanted (`None`: no number does).
    """

    discordant: float
    difference: float
    chance: float
    with_looks: float
    tasks: int | None


@dataclass(frozen=True)
class StudyPower:
    """Power of `tasks` planned tasks for `claims` claims, each judged at `level`, the first step of Holm.

    Seeds of one task count as one pair, since nobody knows before a run how much they differ: more seeds can only help.
    """

    tasks: int
    claims: int
    margin: float
    level: float
    wanted: float
    chances: tuple[Chance, ...]

    def frame(self) -> pd.DataFrame:
        """The rows: one for each assumption; the columns are the fields of `Chance`."""
        return frame_of([asdict(c) for c in self.chances], [f.name for f in fields(Chance)])

    def __str__(self) -> str:
        claim = f"resolves no more than {100 * self.margin:g} points fewer" if self.margin else "resolves more or fewer"
        lines = [
            f"power of {self.tasks} tasks to show that an arm {claim}: {self.claims} "
            f"claim{'s' * (self.claims != 1)}, the first judged at {100 * self.level:.3g} %",
            f"  only one arm resolves   true difference   chance   with looks   tasks for {100 * self.wanted:g} %",
        ]
        for c in self.chances:
            lines.append(
                f"  {100 * c.discordant:>8.0f} % of tasks {100 * c.difference:>+15.0f} {100 * c.chance:>9.0f} % "
                f"{100 * c.with_looks:>9.0f} % {'none' if c.tasks is None else f'{c.tasks:,}':>12}"
            )
        last = "  compare() shows nothing before the last task; sequential() may decide at any look: chance with looks"
        return "\n".join([*lines, last])


def planned_power(
    tasks: int, claims: int, analysis: Analysis, *, discordant: Sequence[float], power: float, alpha: float
) -> StudyPower:
    """Return the power of a study of so many tasks.  Raises `StudyError` for a share that cannot be."""
    if not all(0 < share <= 1 for share in discordant) or not 0 < power < 1:
        raise StudyError(f"discordant and power must be shares between 0 and 1, got {list(discordant)} and {power}")
    margin, level = analysis.margin, alpha / claims
    chances: list[Chance] = []
    for share in discordant:
        for difference in (0.0,) if margin else [d for d in _DIFFERENCES if d <= share]:
            truth: dict[str, float] = {"discordant": share, "difference": difference, "margin": margin, "alpha": level}
            chance = statistics.power_of_rate(tasks, **truth)
            looks = statistics.chance_to_decide(tasks, share, difference, margin, level)
            chances.append(Chance(share, difference, chance, looks, statistics.pairs_for_rate(**truth, power=power)))
    return StudyPower(tasks, claims, margin, level, power, tuple(chances))
