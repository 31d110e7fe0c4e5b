"""The figures of a report that need the traces: how the overhead grows turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rlm_loop.report.tables.trace_files import has_traces
from rlm_loop.study import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawing = tuple[str, Callable[[], "Figure"]]

#: Lines of overhead that one report has room for.
_ARMS = 3


def traced(results: Results, baseline: str) -> Iterator[Drawing]:
    """What the traces of a study can show; nothing where there are none, or no run took a second turn."""
    if not has_traces(results):
        return
    if any(row["steps"] > 1 for row in results.complete_pairs):
        yield _overhead(results, baseline)


def _overhead(results: Results, baseline: str) -> Drawing:
    """The baseline and the first other arms, in the order of the study."""
    from rlm_loop.report.figures import overhead_by_turn
    from rlm_loop.report.figures.sessions import mean_session

    room = max(1, _ARMS // len(results.models))
    others = [arm for arm in results.arms if arm != baseline][: room - 1]
    shown = [arm for arm in results.arms if arm in (baseline, *others)]
    part = f", {', '.join(shown)} of {len(results.arms)} arms" if len(shown) < len(results.arms) else ""
    return f"Overhead by turn, mean of the runs that reach it{part}", lambda: overhead_by_turn(
        mean_session(results, arms=shown)
    )
