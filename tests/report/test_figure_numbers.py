"""What is drawn is what the rows say: bars, points, squares, curves and boxes, recomputed here another way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_ablation import compared, crossed, full, tree

from rlm_loop.report.figures import (
    ablation_heatmap,
    cost_tree,
    dose_response,
    paired_differences,
    paired_slopes,
    resolve_against_tokens,
    stacked_causes,
)
from rlm_loop.report.figures.pareto import Point, front
from rlm_loop.report.figures.rates import Rate


def test_the_parts_of_a_bar_sum_to_the_mean_prompt() -> None:
    frame = full().frame()
    (axes,) = stacked_causes(frame).axes
    ends: dict[float, float] = {}
    for bar in axes.patches:
        ends[round(bar.get_y(), 2)] = max(ends.get(round(bar.get_y(), 2), 0.0), bar.get_x() + bar.get_width())
    means = frame.groupby("arm", sort=False)["input_tokens"].mean()
    assert [ends[y] for y in sorted(ends)] == pytest.approx(list(means))


def test_shares_are_all_of_it() -> None:
    (axes,) = stacked_causes(full().frame(), share=True).axes
    assert max(bar.get_x() + bar.get_width() for bar in axes.patches) == pytest.approx(100)


points = st.builds(
    lambda at, r: Point("", at, at, at, Rate(r, 20, 0.0, 1.0)), st.integers(1, 9).map(float), st.integers(0, 20)
)


@given(st.lists(points, min_size=1, max_size=9))
def test_the_front_is_what_no_other_beats(every: list[Point]) -> None:
    def beats(one: Point, other: Point) -> bool:
        better = one.rate.resolved > other.rate.resolved or one.spent < other.spent
        return better and one.rate.resolved >= other.rate.resolved and one.spent <= other.spent

    best = front(every)
    for point in every:
        assert (point in best) != any(beats(other, point) for other in best)
    assert [p.spent for p in best] == sorted(p.spent for p in best)


def test_arms_off_the_front_are_hollow() -> None:
    made = resolve_against_tokens(full().frame())
    best = str(made.get_label()).rsplit("front: ", 1)[1].rstrip(".").split(", ")
    filled = [
        line.get_markerfacecolor() != "white"
        for line in made.axes[0].lines
        if line.get_marker() not in ("None", "", "|", "_") and line.get_markersize() == 7.5
    ]
    assert sum(filled) == len(best)
    assert len(filled) == 5


def test_a_slope_is_a_task() -> None:
    frame = full().frame()
    made = paired_slopes(frame, baseline="react-text", arms=["react-text", "lean"])
    thin = [line.get_ydata() for line in made.axes[0].lines[:-1]]  # each task is two points and a gap
    lines = [(there, here) for values in thin for there, here in zip(values[::3], values[1::3])]
    wide = frame.pivot(index=["suite", "task"], columns="arm", values="input_tokens")
    assert sorted(lines) == sorted(zip(wide["react-text"], wide["lean"], strict=True))
    (before, after) = made.axes[0].lines[-1].get_ydata()
    assert after / before == pytest.approx((wide["lean"] / wide["react-text"]).prod() ** (1 / len(wide)))


def test_the_intervals_are_those_given_and_every_pair_is_a_dot() -> None:
    made = paired_differences(full().frame(), intervals=compared().assign(model="local"), margin=0.05)
    resolved, tokens = made.axes
    assert [t.get_text() for t in resolved.texts] == ["+4.2 (−1.0 to +9.4)", "+14.0 (+6.0 to +22.0)"]
    assert [t.get_text() for t in tokens.texts] == ["−41 % (−44 to −38)", "+25 % (+10 to +40)"]
    dots = [line for line in tokens.lines if line.get_markersize() == 2.6]
    assert [len(line.get_xdata()) for line in dots] == [12, 12]
    spans = [c for c in resolved.collections for c in [c.get_segments()] if len(c) and len(c[0]) == 2]
    drawn = sorted({round(float(x), 6) for segments in spans for (x, _) in segments[0]})
    assert drawn == [-1.0, 6.0, 9.4, 22.0]
    caption = made._supxlabel.get_text().replace("\n", " ")  # type: ignore[attr-defined]
    assert "up to 3 an arm, policy worst" in caption
    assert "fewer by more than 5 points" in caption


def test_the_intervals_are_the_comparisons_own() -> None:
    pytest.importorskip("scipy")
    from rlm_loop.study.compare.comparison import compare

    results = full()
    direct = paired_differences(results, baseline="react-text")
    handed = paired_differences(compare(results, "react-text").frame())
    assert [t.get_text() for a in direct.axes for t in a.texts] == [t.get_text() for a in handed.axes for t in a.texts]


def test_the_caption_names_the_level_of_each_interval() -> None:
    frame = compared().assign(model="local", confidence=0.95)
    frame.loc[frame["arm"] == "lean", "confidence"] = 0.9875
    caption = paired_differences(frame)._supxlabel.get_text().replace("\n", " ")  # type: ignore[attr-defined]
    assert "bars: 95 % intervals (98.75 %: lean in resolved, lean in input tokens)" in caption


def test_squares_are_the_pivot() -> None:
    frame = crossed()
    made = ablation_heatmap(frame)
    assert [axes.get_title(loc="left") for axes in made.axes] == ["code", "lean"]
    spread = frame.assign(**{n: [f[n] for f in frame["factors"]] for n in ("temperature", "max_depth")})
    for axes, base in zip(made.axes, ("code", "lean"), strict=True):
        mine = spread[spread["arm_base"] == base]
        wanted = mine.pivot_table(index="temperature", columns="max_depth", values="resolved", aggfunc="sum")
        written = {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in axes.texts}
        for (y, x), text in written.items():
            assert text.endswith(f"\n{int(wanted.iloc[y, x])}/6")


def test_one_factor_stands_beside_the_arms_and_the_other_is_pooled() -> None:
    made = ablation_heatmap(crossed(), rows="arm_base", columns="max_depth", value="input_tokens")
    (axes,) = made.axes
    frame = crossed()
    mean = frame[(frame["arm_base"] == "code") & (frame["arm"].str.contains("max_depth=1"))]["input_tokens"].mean()
    assert f"{mean:,.0f}" in {t.get_text() for t in axes.texts}
    assert "Pooled over temperature" in made._supxlabel.get_text()  # type: ignore[attr-defined]


def test_a_factors_values_are_in_order_and_arms_are_lines() -> None:
    left, right = dose_response(crossed(), factor="temperature").axes
    assert [t.get_text() for t in left.get_xticklabels()] == ["0.0", "0.4", "0.8"]
    assert [line.get_label() for line in left.get_legend_handles_labels()[0]] == ["code", "lean"]
    frame = crossed()
    whole = frame.assign(tokens=frame["input_tokens"] + frame["output_tokens"])
    wanted = [
        whole[whole["arm"].str.startswith(f"code[temperature={heat}")]["tokens"].mean() for heat in (0.0, 0.4, 0.8)
    ]
    lines = [line for line in right.lines if len(line.get_xdata()) == 3 and line.get_linestyle() != "None"]
    assert list(lines[0].get_ydata()) == pytest.approx(wanted)


def boxes(made: Any) -> list[tuple[float, float, float]]:
    """From where, to where, at which depth."""
    drawn = [p for p in made.axes[0].patches if p.get_fill()]
    return [(p.get_x(), p.get_x() + p.get_width(), round(p.get_y() - 0.05)) for p in drawn]


def test_a_box_is_as_wide_as_all_below_it() -> None:
    found = boxes(cost_tree(tree()))
    assert found[0] == (0, 600 + 3 * 350, 0)
    assert sorted(right - left for left, right, depth in found if depth == 1) == [350] * 3
    for left, right, depth in found[1:]:
        assert any(a <= left and right <= b and d == depth - 1 for a, b, d in found)
    assert sum(not p.get_fill() for p in cost_tree(tree()).axes[0].patches) == 1  # the edge of the one that failed


def test_narrow_siblings_are_one_box() -> None:
    made = cost_tree(tree(2, small=40))
    assert len([b for b in boxes(made) if b[2] == 1]) == 3
    assert any(text.get_text().startswith("40 nodes") or text.get_text() == "40" for text in made.axes[0].texts)
    assert "43 nodes" not in str(made.get_label())
    assert "depth 1: 42 nodes" in str(made.get_label())


def test_a_tree_counts_what_it_is_asked_for() -> None:
    assert "$0.07 in all" in str(cost_tree(tree(), measure="cost").get_label())
    assert "7 calls in all" in str(cost_tree(tree(), measure="calls").get_label())
    assert "3.5 s in all" in str(cost_tree(tree(), measure="seconds").get_label())
