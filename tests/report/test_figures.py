"""Six figures: each is drawn from recorded results, says its numbers in words, and gives the same bytes again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from made_crossed import crossed_study
from made_rows import made_results

from rlm_loop.report import mean_session, save
from rlm_loop.report.figures import (
    alt_text,
    factor_response,
    overhead_by_turn,
    paired_differences,
    resolve_against_tokens,
    resolve_rates,
    stacked_causes,
)
from rlm_loop.study import Results, StudyError, compare, load_study
from rlm_loop.study.statistics import wilson_interval

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
LEAN = load_study(EXPERIMENTS / "lean_vs_react" / "results")


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return load_study(crossed_study(tmp_path_factory.mktemp("crossed")))


DRAWN: dict[str, tuple[Callable[[], Any], str]] = {
    "rates": (lambda: resolve_rates(LEAN), "code: 14 of 36"),
    "rates by suite": (lambda: resolve_rates(LEAN, by="suite"), "tables"),
    "tokens": (lambda: resolve_against_tokens(LEAN), "On the Pareto front: "),
    "differences": (lambda: paired_differences(LEAN, baseline="react-text"), "react-text"),
    "causes": (lambda: stacked_causes(LEAN), "react-native"),
    "overhead": (lambda: overhead_by_turn(mean_session(LEAN, arms=["lean", "react-text"], tasks=2)), "of a window"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_says_its_numbers(name: str) -> None:
    draw, says = DRAWN[name]
    assert says in alt_text(made := draw())
    assert name != "tokens" or made._repr_png_().startswith(b"\x89PNG")  # a picture in any notebook


@pytest.mark.slow
def test_a_figure_is_the_same_again(tmp_path: Path) -> None:
    draw, _ = DRAWN["rates by suite"]
    files = save(draw(), tmp_path / "one"), save(draw(), tmp_path / "two")
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]


def test_a_response_has_a_point_for_each_value(crossed: Results) -> None:
    assert "max_tokens 100: 2 of 4 (50 %" in alt_text(factor_response(crossed, "max_tokens"))
    for factor in (None, "luck"):
        with pytest.raises(StudyError, match="max_depth"):
            factor_response(crossed, factor)


def test_arms_are_named_in_the_legend_inside_the_figure() -> None:
    arms = {f"an arm with a long name {n}": (0.5, 100, 9, 2) for n in "ab"}
    made = resolve_against_tokens(made_results(3, arms=arms))
    made.canvas.draw()
    legend = next(iter([*made.legends, *(axes.get_legend() for axes in made.axes if axes.get_legend())]))
    assert {text.get_text().partition("  ")[0] for text in legend.get_texts()} == {*arms, "Pareto front"}
    box, page = legend.get_window_extent(), made.bbox
    assert (box.x0 >= page.x0 - 1, box.x1 <= page.x1 + 1) == (True, True)


def test_rates_are_those_of_the_rows_with_wilsons_intervals() -> None:
    low, high = (round(100 * bound) for bound in wilson_interval(14 / 36, 36))
    assert f"code: 14 of 36 (39 %, interval {low} to {high})" in alt_text(resolve_rates(LEAN))


def test_differences_are_those_of_the_comparison() -> None:
    frame = compare(LEAN, baseline="react-text").frame()
    (row,) = frame.query("measure == 'resolved' and arm == 'code'").to_dict("records")
    assert f"{100 * row['estimate']:+.0f}" in alt_text(paired_differences(LEAN, baseline="react-text")).replace(
        "−", "-"
    )


def test_the_frame_is_only_read() -> None:
    frame = LEAN.frame()
    before = frame.copy(deep=True)
    resolve_rates(frame)
    stacked_causes(frame)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda: resolve_rates(made_results(2), arms=["gone"]), "gone"),
        (lambda: paired_differences(made_results(2), baseline="gone"), "gone"),
        (lambda: stacked_causes(made_results(2).frame().assign(by_cause=None)), "says where"),
        (lambda: resolve_against_tokens(made_results(2), measure="luck"), "luck"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(draw: Callable[[], Any], says: str) -> None:
    with pytest.raises(StudyError, match=says) as caught:
        draw()
    assert "\n" not in str(caught.value)
