"""The figures of a report, each inside the page with its text for those who cannot see it."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from rlm_loop.report.study.traced import Drawing, traced
from rlm_loop.study import Results, StudyError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Pixels of the page for an inch of a figure: a little larger than life, since a screen is read from further away.
_SCALE = 112
_PAIRED = "measure in ['resolved', 'input_tokens']"
#: Lines of resolve rates that one figure has room for.
_LINES = 40


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


def drawings(results: Results, baseline: str, compared: pd.DataFrame | None = None) -> list[Figured]:
    """Every figure that the study has numbers for, but the one that stands beside the answer.

    `compared` is the frame of the comparison, where it is at hand.
    Raises `StudyError` where matplotlib is missing.
    """
    from rlm_loop.report.figures import style

    with style(), _uncollected():  # one word about matplotlib, where it is missing, not one a figure
        return [_figured(*one) for one in chosen(results, baseline, compared) if one[0] != ANSWERING]


def figured(name: str, results: Results) -> Figured:
    """One of the figures.  Raises `StudyError` where matplotlib is missing."""
    from rlm_loop.report.figures import style

    with style(), _uncollected():
        return next(_figured(*one) for one in chosen(results, results.arms[0]) if one[0] == name)


@contextlib.contextmanager
def _uncollected() -> Generator[None]:
    """Without Python's cycle collector: it would go through thousands of parts of figures that are still in use."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def chosen(results: Results, baseline: str, compared: pd.DataFrame | None = None) -> Iterator[Drawing]:
    """The figures that the study has numbers for, by name, not drawn yet."""
    from rlm_loop.report import figures

    arms, suites = len(results.arms), {row["suite"] for row in results.rows}
    by = "suite" if len(suites) > 1 and (len(suites) + 1) * arms <= _LINES else None
    yield "Tasks resolved", lambda: figures.resolve_rates(results, by=by)
    yield ANSWERING, lambda: figures.resolve_against_tokens(results)
    if arms > 1 and compared is not None:
        shown = compared.query(_PAIRED)  # its caption counts the missing pairs of what it is given
        yield "Paired differences", lambda: figures.paired_differences(results, baseline=baseline, intervals=shown)
    yield "Where the prompt tokens go", lambda: figures.stacked_causes(results)
    yield from traced(results, baseline)
    for factor, values in _factors(results).items():
        if len(values) > 1:
            yield f"Response to {factor}", lambda this=factor: figures.factor_response(results, this)


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
