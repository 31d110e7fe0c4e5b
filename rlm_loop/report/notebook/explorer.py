"""A study to look around in: arm by suite by measure, as a picture and a table."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.report.figures.cells import measure_of
from rlm_loop.report.figures.paired import paired_slopes
from rlm_loop.report.figures.rates import resolve_rates
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

ALL = "all"
MEASURES = ("resolved", "input_tokens", "output_tokens", "scaffold_tokens", "steps", "seconds")


def look(results: Results, arm: str = ALL, suite: str = ALL, measure: str = "resolved") -> tuple[Any, Any]:
    """The figure and the table (suites by arms) of one choice, on the tasks that every arm was tried on.

    `resolved` gives rates in percent; another measure its means a task, and in the figure a line for each task from the
    study's first arm to the one chosen.  Raises `StudyError` where there is nothing to draw.
    """
    pandas: Any = import_module("pandas")
    rows, base = [r for r in results.complete_pairs if suite in (ALL, r["suite"])], results.arms[0]
    arms = results.arms if arm == ALL or (arm == base and measure != "resolved") else [arm]
    frame, words = pandas.DataFrame(rows), "{x:.0f} %" if measure == "resolved" else measure_of(measure).format
    if measure == "resolved":
        figure = resolve_rates(frame, arms=arms, by="suite" if suite == ALL else None)
        frame["resolved"] = [None if (good := is_resolved(row)) is None else 100.0 * good for row in rows]
    else:
        figure = paired_slopes(frame, measure=measure, baseline=base, arms=dict.fromkeys([base, *arms]))
    whole = [frame.assign(suite="all suites")] if frame["suite"].nunique() > 1 else []
    shown = pandas.concat([frame, *whole]).astype({measure: float})
    table = shown.pivot_table(index="suite", columns="arm", values=measure)
    table = table.rename_axis(index=None, columns=None)
    return figure, table[arms].map(lambda x: words.format(x=x))  # pyright: ignore[reportUnknownLambdaType]


def explore(results: Results, **choice: str) -> None:
    """In a notebook: menus for the arguments of `look`, and below them what it gives, first for `choice`.

    Both are ordinary outputs, which a saved notebook shows without a kernel.  Raises `StudyError` without ipywidgets.
    """
    try:
        widgets: Any = import_module("ipywidgets")
    except ImportError:
        raise StudyError(f"the explorer needs ipywidgets: {install_line('jupyter')}") from None
    display: Any = import_module("IPython.display").display

    suites = dict.fromkeys(row["suite"] for row in results.rows)
    options = {"arm": (ALL, *results.arms), "suite": (ALL, *suites), "measure": MEASURES}
    menus = {name: widgets.Dropdown(options=of, description=name) for name, of in options.items()}
    for name, value in choice.items():
        menus[name].value = value
    still = {"text/plain": "In a running notebook, menus here choose arm, suite and measure."}
    display({**widgets.HBox(list(menus.values()))._repr_mimebundle_(), **still}, raw=True)
    handles = [display(shown, display_id=True) for shown in look(results, **choice)]

    def redraw(_: Any) -> None:
        try:
            now = look(results, **{name: menu.value for name, menu in menus.items()})
        except StudyError as error:  # an error in a menu's callback would be in the log only
            now = str(error), ""
        for handle, shown in zip(handles, now, strict=True):
            handle.update(shown)

    for menu in menus.values():
        menu.observe(redraw, "value")
