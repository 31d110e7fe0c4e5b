"""The figures of a report that need the traces: how the overhead grows turn by turn, and the largest call trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from rlm_loop.accounting.tree import TraceTree, tree_of
from rlm_loop.report.tables.trace_files import has_traces, trace_files
from rlm_loop.study import Results, StudyError
from rlm_loop.study.store.rows import Row, finished
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.trace import TraceError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawing = tuple[str, Callable[[], "Figure"]]

#: Lines of overhead, and call trees, that one report has room for.
_ARMS, _TREES = 3, 3


def traced(results: Results, baseline: str) -> Iterator[Drawing]:
    """What the traces of a study can show; nothing where there are none, or no run took a second turn."""
    if not has_traces(results):
        return
    if any(row["steps"] > 1 for row in results.complete_pairs):
        yield _overhead(results, baseline)
    for row, tree in _trees(results):
        yield _tree(results, row, tree)


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


def _tree(results: Results, row: Row, tree: TraceTree) -> Drawing:
    from rlm_loop.report.figures import cost_tree

    several = f", {row['model']}" if len(results.models) > 1 else ""
    seed = f", seed {row['seed']}" if len({r["seed"] for r in results.rows}) > 1 else ""
    name = f"Call tree of {row['arm']}{several} on {row['suite']}/{row['task']}{seed}, its run with the most sub-calls"
    return name, lambda: cost_tree(tree)


def _trees(results: Results) -> list[tuple[Row, TraceTree]]:
    """Of each arm (without its factors) the finished run with the most calls below the root; the first of equals."""
    rows = {str(row["trace"]): row for row in results.rows if finished(row) and _may_have_subcalls(row)}
    found: dict[tuple[str, str], tuple[int, str, TraceTree]] = {}
    for name, record in _records(results, rows):
        calls = sum(bool(event.get("depth")) for event in record.of("reply"))
        of = (str(rows[name].get("arm_base", rows[name]["arm"])), str(rows[name]["model"]))
        most, first, _ = found.get(of, (0, "", None))
        if calls > most or (calls and calls == most and name < first):
            found[of] = (calls, name, tree_of(record))
    names = {str(row["trace"]): place for place, row in enumerate(results.rows)}
    shown = sorted(found.values(), key=lambda kept: names[kept[1]])[:_TREES]
    return [(rows[name], tree) for _, name, tree in shown]


def _may_have_subcalls(row: Row) -> bool:
    """Whether a run made more calls than it took turns, or nobody knows; its trace says the rest."""
    return row.get("calls") is None or row["calls"] > row["steps"]


def _records(results: Results, names: Iterable[str]) -> Iterator[tuple[str, RunRecord]]:
    """Those that can be read; what is wrong with the others is said where the overhead would be."""
    with suppress(StudyError):
        for name, path in trace_files(results, names):
            with suppress(TraceError):
                yield name, read(path)
