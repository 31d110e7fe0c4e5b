"""The figures of a page, each inside it with its text for those who cannot see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from rlm_loop.report.tables.trace_files import has_traces
from rlm_loop.study import Results, StudyError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Pixels of the page for an inch of a figure: a little larger than life, since a screen is read from further away.
_SCALE = 112
#: Lines of resolve rates, and arms of overhead by turn, that one figure has room for.
_LINES, _ARMS = 40, 3
#: The figure that stands beside the answer, and is not drawn again below.
ANSWERING = "Resolved against tokens"


class Figured(NamedTuple):
    """A figure on the page: its name, its address, its words, and its size in pixels; or `why` there is none."""

    name: str
    why: str = ""
    address: Markup = Markup()
    words: str = ""
    width: int = 0
    height: int = 0


def drawings(results: Results, baseline: str, compared: pd.DataFrame | None = None, *, only: str = "") -> list[Figured]:
    """Every figure that the study has numbers for but the one beside the answer, or `only` that of this name.

    `compared` is the frame of the comparison, where it is at hand.  Raises `StudyError` where matplotlib is missing.
    """
    from rlm_loop.report.figures import style

    chosen = [one for one in _chosen(results, baseline, compared) if (one[0] == only if only else one[0] != ANSWERING)]
    with style():  # one word about matplotlib, where it is missing, not one a figure
        return [_figured(*one) for one in chosen]


def _chosen(
    results: Results, baseline: str, compared: pd.DataFrame | None
) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """The figures that the study has numbers for, by name, not drawn yet."""
    from rlm_loop.report import figures

    arms, suites = len(results.arms), {row["suite"] for row in results.rows}
    by = "suite" if len(suites) > 1 and (len(suites) + 1) * arms <= _LINES else None
    yield "Tasks resolved", lambda: figures.resolve_rates(results, by=by)
    yield ANSWERING, lambda: figures.resolve_against_tokens(results, intervals=arms < 2)
    if arms > 1 and compared is not None:
        shown = compared.query("measure in ['resolved', 'input_tokens']")
        yield "Paired differences", lambda: figures.paired_differences(results, baseline=baseline, intervals=shown)
    yield "Where the prompt tokens go", lambda: figures.stacked_causes(results)
    if has_traces(results) and any(row["steps"] > 1 for row in results.complete_pairs):
        yield _overhead(results, baseline)
    for factor, values in _factors(results).items():
        if len(values) > 1:
            yield f"Response to {factor}", lambda this=factor: figures.factor_response(results, this)


def _overhead(results: Results, baseline: str) -> tuple[str, Callable[[], Figure]]:
    """The baseline and the first other arms, in the order of the study."""
    from rlm_loop.report.figures import overhead_by_turn
    from rlm_loop.report.figures.sessions import mean_session

    room = max(1, _ARMS // len(results.models))
    others = [arm for arm in results.arms if arm != baseline][: room - 1]
    shown = [arm for arm in results.arms if arm in (baseline, *others)]
    part = f", {', '.join(shown)} of {len(results.arms)} arms" if len(shown) < len(results.arms) else ""
    name = f"Overhead by turn, mean of the runs that reach it{part}"
    return name, lambda: overhead_by_turn(mean_session(results, arms=shown))


def _factors(results: Results) -> dict[str, list[Any]]:
    """The ablation factors of the study with their values."""
    found: dict[str, list[Any]] = {}
    for row in results.rows:
        for name, value in (row.get("factors") or {}).items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return found


def _figured(name: str, make: Callable[[], Figure]) -> Figured:
    from rlm_loop.report.figures import alt_text, data_uri

    try:
        made = make()
    except StudyError as error:
        return Figured(name, str(error))
    width, height = (round(_SCALE * float(side)) for side in made.get_size_inches())
    return Figured(name, "", Markup(data_uri(made, "svg")), alt_text(made), width, height)
