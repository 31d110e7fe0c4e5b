"""How many tasks fewer are still no worse: so many points, or a share of what the baseline resolves."""

from __future__ import annotations

from typing import NamedTuple

from rlm_loop.study.errors import StudyError


class Margin(NamedTuple):
    """A margin of non-inferiority; `share` 0 is none, and the claim then that the rates differ.

    `share` is of all tasks (0.03: 3 points), and where `relative` of what the baseline resolves.
    """

    share: float = 0.0
    relative: bool = False

    def points(self, baseline_rate: float | None) -> float:
        """The margin as a share of all tasks, where the baseline resolves so many."""
        return self.share * (baseline_rate or 0.0) if self.relative else self.share

    @property
    def claim(self) -> str:
        """What is claimed of the resolve rate."""
        if not self.share:
            return "differs"
        return f"no more than {100 * self.share:g} {'%' if self.relative else 'points'} fewer"


def margin_of(margin: float, relative: float | None) -> Margin:
    """The margin of these two, of which one is given.  Raises `StudyError` where that is no margin."""
    if relative is None:
        if not 0 <= margin < 1:
            raise StudyError("margin is a share: give 0.03 for 3 points")
        return Margin(margin)
    if margin:
        raise StudyError("give margin= (of all tasks) or relative_margin= (of what the baseline resolves), not both")
    if not 0 < relative < 1:
        raise StudyError("relative_margin is a share of the baseline's rate: give 0.1 for 10 % of it")
    return Margin(relative, relative=True)
