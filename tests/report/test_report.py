"""Tables in every form, and the figure."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_rows import made_results

from rlm_loop.report import Table, arm_table, figure, save, suite_table, target_table
from rlm_loop.report.figures.labels import Anchor, Box, place
from rlm_loop.report.figures.overview import prompt_curves
from rlm_loop.report.study.arms import arm_tables
from rlm_loop.study import Results, StudyError
from rlm_loop.study.plan.analysis import Analysis

BOTH = Table("A <title>", ["name", "n"], [["x|y", "1"], ["<z>", "22"]], ["A note."])


def test_the_forms_of_a_table() -> None:
    assert BOTH.to_markdown() == (
        "**A <title>**\n\n| name | n |\n| --- | ---: |\n| x\\|y | 1 |\n| <z> | 22 |\n\nA note.\n"
    )
    assert BOTH.to_text() == "A <title>\nname   n\n----  --\nx|y    1\n<z>   22\nA note."
    html = BOTH._repr_html_()
    assert "&lt;z&gt;" in html
    assert "<z>" not in html
    assert "A note." in html


def test_a_table_in_a_rich_console_shows_brackets_as_they_are() -> None:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=60, force_terminal=False)
    console.print(Table("T", ["arm", "rate"], [["a", "40% [20-60]"], ["[b]", "-"]], ["[note]"]))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "40% [20-60]" in shown
    assert "[b]" in shown
    assert "[note]" in shown


def test_rows_have_to_fit() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table("T", ["a", "b"], [["1"]])


def test_the_table_of_the_arms_says_what_the_rows_say() -> None:
    results = made_results(4, seed=5, recorded=True)
    table = arm_table(results, baseline="lean")
    assert table.title == "Arms of made-up (recorded run)"
    row = dict(zip(table.columns, table.rows[0], strict=True))
    mine = [r for r in results.rows if r["arm"] == "code"]
    resolved = sum(r["resolved"] for r in mine)
    assert (row["arm"], row["n"], row["resolved"]) == ("code", "12", str(resolved))
    assert row["tokens in"] == f"{sum(r['input_tokens'] for r in mine) / 12:,.0f}"
    assert row["rate [95 % CI]"].startswith(f"{resolved / 12:.0%} [")
    assert table.rows[1][-1] == "baseline"
    assert any("2 CPUs, Linux x86_64; `rlm-loop study run made_up`" in n for n in table.notes)
    assert len(suite_table(results).rows) == 15
    assert sum(int(r[2]) for r in suite_table(results).rows) == len(results.rows)


def test_what_is_missing_is_said() -> None:
    whole = made_results(4)
    rows = [dict(r) for r in whole.rows]
    rows[3].update(error="ModelError: gone", resolved=False)
    for row in rows:
        row["cached_tokens"] = row["new_tokens"] = None
    table = arm_table(replace(whole, rows=rows[:-1]))
    assert "1 pair of task and seed is left out: not every arm was tried on them." in table.notes
    assert "1 of 59 episodes crashed; `--retry-failed` tries them again." in table.notes
    assert {row[6] for row in table.rows} == {"-"}
    assert {row[1] for row in table.rows} == {"11"}


def missed(tables: Sequence[Table]) -> bool:
    return any(cell.endswith(" missed") for table in tables for row in table.rows for cell in row)


def test_targets_that_nobody_declared_are_not_judged() -> None:
    table = target_table(made_results(12))
    assert table.columns == ["arm"]
    assert "declared no targets" in table.notes[0]
    assert not missed(arm_tables(made_results(12), "code"))


def test_declared_targets_are_marked() -> None:
    made = made_results(12)
    targets = {"rate": 0.8, "steps": 20, "tool_seconds_p95": 3, "seconds_p95": 60, "tokens_p95_ratio": 1.5}
    declared = replace(made, lock={**made.lock, "analysis": Analysis(targets=targets).locked()})
    assert missed(arm_tables(declared, "code"))
    table = target_table(declared)
    found = {row[0]: row for row in table.rows}
    assert found["lean"][1].endswith("missed")  # resolve rate
    assert not found["lean"][2].endswith("missed")  # steps
    assert found["code"][5] == "1.00"


def test_several_models_get_a_column() -> None:
    one = made_results(2)
    results = replace(one, rows=[*one.rows, *({**r, "model": "other"} for r in one.rows)])
    table = arm_table(results)
    assert table.columns[:2] == ["model", "arm"]
    assert [row[0] for row in table.rows] == ["local"] * 5 + ["other"] * 5
    assert set(results.by_arm().index.names) == {"model", "arm"}


@pytest.mark.parametrize("tasks", [1, 12])
def test_the_figure_is_saved_and_names_every_arm(tmp_path: Path, tasks: int) -> None:
    results = made_results(tasks)
    png, svg = save(figure(results), tmp_path / "a")
    again = save(figure(results), tmp_path / "b")
    assert png.read_bytes() == again[0].read_bytes()
    assert svg.read_bytes() == again[1].read_bytes()
    assert png.read_bytes()[:4] == b"\x89PNG"
    made = figure(results)
    for axes in made.axes:
        words = [t.get_text().split("  ")[0] for t in axes.texts if t.get_text() != "Pareto front"]
        assert sorted(words) == sorted(results.arms)
    renderer = made.canvas.get_renderer()
    for axes in made.axes:
        boxes = [t.get_window_extent(renderer) for t in axes.texts]
        pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :]]
        assert not any(a.shrunk(0.9, 0.9).overlaps(b.shrunk(0.9, 0.9)) for a, b in pairs)


def test_a_figure_of_unknown_tokens_is_still_a_figure() -> None:
    whole = made_results(2)
    unknown = {"input_tokens": None, "output_tokens": None, "cumulative_prompt_tokens": []}
    made = figure(replace(whole, rows=[{**r, **unknown} for r in whole.rows]))
    assert len(made.axes) == 2


def test_nothing_to_draw_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="nothing to draw yet"):
        figure(Results([]))
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="choose another folder"):
        save(figure(made_results(1)), tmp_path / "file" / "figure")


def test_a_curve_ends_where_fewer_than_a_third_still_run() -> None:
    growths = ([10], [10, 30], [20, 50], [20, 50, 90], [10], [20, 30], [10])
    rows = [{"arm": "a", "cumulative_prompt_tokens": c} for c in growths]
    (curve,) = prompt_curves(rows, ["a"])
    assert curve.running == (7, 4)
    assert curve.tokens == (pytest.approx(100 / 7), 40)


@given(
    st.lists(st.tuples(st.floats(0, 400), st.floats(0, 300), st.floats(0, 80)), min_size=1, max_size=7),
)
def test_names_are_placed_near_their_points(points: list[tuple[float, float, float]]) -> None:
    anchors = [Anchor(x, y, y - bar, y + bar, 60, 10) for x, y, bar in points]
    boxes = place(anchors, [], Box(0, 0, 500, 400), 7)
    for anchor, box in zip(anchors, boxes, strict=True):
        assert box in anchor.places(7)
        assert box.right - box.left == pytest.approx(60)


def test_a_name_keeps_clear_of_what_is_there() -> None:
    anchor = Anchor(150, 50, 50, 50, 60, 10)
    (box,) = place([anchor], [Box(155, 0, 160, 100)], Box(0, 0, 500, 400), 7)
    assert box.right <= 155
