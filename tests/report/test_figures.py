"""Every figure: drawn from a frame, with the numbers in its alternative text, all words inside its edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from made_ablation import compared, crossed, full, tree

from rlm_loop.report.figures import (
    ablation_heatmap,
    alt_text,
    cost_tree,
    dose_response,
    overhead_by_turn,
    paired_differences,
    paired_slopes,
    resolve_against_tokens,
    resolve_rates,
    stacked_causes,
)
from rlm_loop.study import Results, StudyError

LONG = {
    "code-blocks-with-a-long-name": (0.9, 150, 95, 2.6),
    "react-text-as-of-2022": (0.1, 320, 150, 3.4),
    "lean[history=outputs, max_tokens=200]": (0.3, 190, 90, 2.9),
    "lean[history=none, max_tokens=200]": (0.3, 190, 90, 2.9),
}


def ledger() -> pd.DataFrame:
    rows = [("lean", turn, "template", 9 * turn, 9 * turn - 9) for turn in (1, 2, 3)]
    return pd.DataFrame(rows, columns=["arm", "turn", "cause", "tokens", "resent"])


#: name: (figure, what its text has to say)
DRAWN: dict[str, tuple[Callable[[], Any], str]] = {
    "rates": (lambda: resolve_rates(full().frame()), "code: {code} of 12"),
    "rates by suite": (lambda: resolve_rates(full(), by="suite"), "all tasks, code: {code} of 12"),
    "rates by level": (lambda: resolve_rates(full().frame(), by="level"), "level 1, lean"),
    "price": (lambda: resolve_against_tokens(full().frame()), "On the Pareto front: "),
    "price in seconds": (lambda: resolve_against_tokens(full().frame(), measure="seconds"), "seconds a task"),
    "causes": (lambda: stacked_causes(full().frame()), "added: thought 17%"),
    "shares": (lambda: stacked_causes(full().frame(), share=True), "assistant"),
    "slopes": (lambda: paired_slopes(full().frame(), baseline="react-text"), "code against react-text: "),
    "differences": (lambda: paired_differences(compared()), "lean, resolved: +4.2 (−1.0 to +9.4) points"),
    "differences with dots": (
        lambda: paired_differences(full().frame(), intervals=compared()),
        "code, input tokens: +25 % (+10 to +40)",
    ),
    "ablation": (lambda: ablation_heatmap(crossed()), "code, temperature 0.0, max depth 0: "),
    "ablation of arms": (lambda: ablation_heatmap(full(), value="input_tokens"), "arm code, suite tables/test: "),
    "dose": (lambda: dose_response(crossed(), factor="temperature"), "code, temperature 0.8: "),
    "tree": (lambda: cost_tree(tree()), "depth 2: 3 nodes, 300 tokens of their own (18%), 1 failed"),
    "overhead": (lambda: overhead_by_turn(ledger()), "27 in that of turn 3"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_each_figure_says_its_numbers_and_keeps_its_words_inside(name: str) -> None:
    draw, says = DRAWN[name]
    made = draw()
    code = sum(r["resolved"] for r in full().rows if r["arm"] == "code")
    assert says.format(code=code) in alt_text(made)
    inside(made)


@pytest.mark.parametrize(
    "draw",
    [
        lambda r: resolve_rates(r, by="suite"),
        resolve_against_tokens,
        stacked_causes,
        paired_slopes,
        ablation_heatmap,
        lambda r: overhead_by_turn(pd.concat([ledger().assign(arm=arm) for arm in r.arms])),
    ],
)
def test_long_names_stay_inside_and_nothing_lies_on_the_caption(draw: Callable[[Results], Any]) -> None:
    made = draw(full(3, arms=LONG))
    inside(made)
    renderer = made.canvas.get_renderer()
    (caption,) = [text for text in made.texts if text.get_text()][-1:] or [made._supxlabel]
    if caption is not None:
        low = made._supxlabel.get_window_extent(renderer) if made._supxlabel else caption.get_window_extent(renderer)
        for legend in made.legends:
            assert not legend.get_window_extent(renderer).overlaps(low)
    titles = [axes.get_title(loc="left") for axes in made.axes]
    boxes = [axes._left_title.get_window_extent(renderer) for axes, title in zip(made.axes, titles) if title]
    assert not [1 for i, box in enumerate(boxes) for other in boxes[:i] if box.overlaps(other)]


def inside(made: Any) -> None:
    made.draw_without_rendering()
    box, (width, height) = made.get_tightbbox(made.canvas.get_renderer()), made.get_size_inches()
    assert box.x0 > -0.03
    assert box.y0 > -0.03
    assert box.x1 < width + 0.03
    assert box.y1 < height + 0.03


@pytest.mark.parametrize("high", [1.3, 4.5, 17.0, 60.0])
def test_ticks_of_ratios_do_not_meet(high: float) -> None:
    wide = compared().query("measure != 'cost'").assign(arm=lambda f: f["arm"] + "[max_depth=0, max_tokens=200]")
    wide.loc[wide["effect"] == "ratio", "high"] = high
    made = paired_differences(wide)
    made.draw_without_rendering()
    for axes in made.axes[1:]:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
        assert len(boxes) > 2
        assert "same" in [label.get_text() for label in axes.get_xticklabels()]
        assert not [1 for left, right in pairwise(boxes) if left.overlaps(right)]


def test_a_frame_is_only_read() -> None:
    frame = full().frame()
    before = frame.copy(deep=True)
    resolve_rates(frame)
    stacked_causes(frame)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda: resolve_rates(full().frame().drop(columns="suite")), "no column suite; give results.frame()"),
        (lambda: resolve_rates(full(), arms=["code", "gone"]), "no arm 'gone'; there are code, lean"),
        (lambda: resolve_rates(full(), by="colour"), "no row has a colour"),
        (lambda: resolve_rates(full().frame().iloc[:0]), "nothing to draw yet"),
        (lambda: resolve_against_tokens(full(), measure="luck"), "no measure 'luck'; there are total_tokens"),
        (lambda: resolve_against_tokens(full(), measure="cost"), "no arm has cost of every task"),
        (lambda: paired_slopes(full(), arms=["code"]), "there is only the arm 'code'"),
        (lambda: paired_slopes(full(), baseline="gone"), "no arm 'gone'"),
        (lambda: paired_slopes(full(), measure="cost"), "no task has cost above zero"),
        (lambda: stacked_causes(full().frame().assign(by_cause=None)), "no task of this study says where"),
        (lambda: paired_differences(compared(), measures=["steps"]), "no interval of steps .* compared are resolved"),
        (lambda: ablation_heatmap(crossed(), rows="luck"), "no row has a luck; use one of temperature, max_depth"),
        (lambda: ablation_heatmap(full(), value="cost"), "nothing is known of cost"),
        (lambda: dose_response(crossed()), "factors temperature, max_depth; choose one"),
        (lambda: dose_response(crossed(), factor="luck"), "no factor 'luck'"),
        (lambda: dose_response(crossed()[lambda f: f["arm"].str.contains("=0.8")], factor="temperature"), "one value"),
        (lambda: cost_tree(tree(cost=None), measure="cost"), "cost of node 0 is not known"),
        (lambda: cost_tree(tree(), measure="luck"), "no measure 'luck'"),
        (lambda: cost_tree(full().frame()), "no nodes; give the frame"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(draw: Callable[[], Any], says: str) -> None:
    with pytest.raises(StudyError, match=says):
        draw()


def test_a_crash_of_the_arm_is_not_resolved_and_one_of_the_machine_not_scored() -> None:
    whole = full()
    rows = [dict(r) for r in whole.rows]
    rows[0].update(error="ModelError: gone", resolved=False, value=None)
    made = resolve_rates(replace(whole, rows=rows).frame())
    assert "12 tasks an arm, every arm on the same." in made._supxlabel.get_text()  # type: ignore[attr-defined]
    assert "of 11" not in alt_text(made)
    rows[0].update(error="MemoryError", error_class="MemoryError")
    assert "of 11" in alt_text(resolve_rates(replace(whole, rows=rows).frame()))


def test_every_model_has_arms_of_its_own() -> None:
    one = full(2)
    both = replace(one, rows=[*one.rows, *({**r, "model": "other", "resolved": True} for r in one.rows)])
    assert "lean, other: 6 of 6 (100 %" in alt_text(resolve_rates(both))
    said = alt_text(paired_slopes(both))
    assert "lean, local against code" in said
    assert "lean, other against code" in said


def test_attempts_that_nothing_judged_are_not_failures() -> None:
    frame = full(2).frame()
    frame["resolved"] = [None if arm == "lean" else value for arm, value in zip(frame["arm"], frame["resolved"])]
    assert "lean: none judged" in alt_text(resolve_rates(frame))
