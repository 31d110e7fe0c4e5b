"""The explorer of a study: what a choice shows, and the menus in a real kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from notebook_kernel import Kernel

from rlm_loop.report.notebook.explorer import MEASURES, look
from rlm_loop.study import StudyError, load_study

pytest.importorskip("matplotlib")
STUDY = Path(__file__).parents[3] / "experiments" / "headline" / "results"


@pytest.mark.parametrize(
    ("choice", "columns", "cells", "says"),
    [
        ({}, ["lean", "react-text", "code"], {"all suites": "45 %", "humaneval/test": "71 %"}, "45 of 100"),
        ({"arm": "code"}, ["code"], {"all suites": "16 %", "humaneval/test": "0 %"}, "humaneval/test, code: 0 of 52"),
        ({"suite": "humaneval/test"}, ["lean", "react-text", "code"], {"humaneval/test": "71 %"}, "lean: 37 of 52"),
        ({"measure": "input_tokens"}, ["lean", "react-text", "code"], {"all suites": "383"}, "code against lean"),
        ({"measure": "steps", "arm": "code"}, ["code"], {"all suites": "1.8"}, "code against lean"),
        ({"measure": "steps", "arm": "lean"}, ["lean", "react-text", "code"], {"all suites": "1.5"}, "code against"),
    ],
)
def test_a_choice_is_a_figure_and_a_table(
    choice: dict[str, str], columns: list[str], cells: dict[str, str], says: str
) -> None:
    figure, table = look(load_study(STUDY), **choice)
    assert list(table.columns) == columns
    assert {suite: table.loc[suite, columns[0]] for suite in cells} == cells
    assert says in figure.get_label()


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_of_the_menu_can_be_looked_at(measure: str) -> None:
    figure, table = look(load_study(STUDY), measure=measure)
    assert figure.get_label()
    assert len(table) == 5  # four suites, and all of them


def test_an_unknown_arm_is_refused() -> None:
    with pytest.raises(StudyError, match="no arm 'fast'"):
        look(load_study(STUDY), arm="fast")


def test_the_menus_change_what_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("ipywidgets")
    pytest.importorskip("jupyter_client")
    kernel = Kernel(tmp_path)
    try:
        first = kernel.run(
            "%matplotlib inline\nfrom rlm_loop.report.notebook.explorer import explore\n"
            f"from rlm_loop.study import load_study\nexplore(load_study({str(STUDY)!r}))"
        )
        assert not first.error
        menus, figure, table = (shown[-1] for shown in first.displays.values())
        assert "menus here choose arm, suite and measure" in menus["text/plain"]
        assert "application/vnd.jupyter.widget-view+json" in menus
        assert figure["image/png"]
        assert "71 %" in table["text/html"]
        chosen = kernel.run(
            "from ipywidgets import Widget\n"
            "menu, = (w for w in Widget.widgets.values() if getattr(w, 'description', '') == 'measure')\n"
            "menu.value = 'input_tokens'"
        )
        assert not chosen.error
        assert list(chosen.displays) == list(first.displays)[1:]  # the same two outputs
        assert "383" in list(chosen.displays.values())[1][-1]["text/html"]
    finally:
        kernel.close()
