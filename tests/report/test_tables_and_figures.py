"""Tables in every form, and figures: each says its numbers in words, and gives the same bytes again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_study import crossed_study

from rlm_loop import Budget, LeanAgent, report
from rlm_loop.dialects import Nudge, ThoughtPrompt
from rlm_loop.messages import Reply, ToolCall
from rlm_loop.models import ScriptedModel
from rlm_loop.study import Results, StudyError, compare, load_study

#: Five arms on twelve tasks of each of three suites.
LEAN = load_study(Path(__file__).parents[2] / "experiments" / "lean_vs_react" / "results")
ROWS = LEAN.rows


def test_the_forms_of_a_table() -> None:
    table = report.Table("A <title>", ["name", "n"], [["x|y", "1"], ["<z>", "22"]], ["A note."])
    assert table.to_markdown() == (
        "**A <title>**\n\n| name | n |\n| --- | ---: |\n| x\\|y | 1 |\n| <z> | 22 |\n\nA note.\n"
    )
    assert table.to_text() == "A <title>\nname   n\n----  --\nx|y    1\n<z>   22\nA note."
    html = table._repr_html_()
    assert [part in html for part in ("&lt;z&gt;", "A note.", "<z>")] == [True, True, False]


def test_the_table_of_the_arms_says_what_the_rows_say() -> None:
    table = report.arm_table(LEAN, baseline="lean")
    assert table.title == "Arms of lean_vs_react-held (recorded run)"
    row = dict(zip(table.columns, table.rows[0], strict=True))
    mine = [r for r in ROWS if r["arm"] == "code"]
    resolved = sum(r["resolved"] for r in mine)
    tokens = f"{sum(r['input_tokens'] for r in mine) / 36:,.0f}"
    assert [row[name] for name in ("arm", "n", "resolved", "tokens in")] == ["code", "36", str(resolved), tokens]
    assert row["rate [95 % CI]"].startswith(f"{resolved / 36:.0%} [")
    assert table.rows[1][-1] == "baseline"
    assert any("2 CPUs, Linux x86_64; `rlm-loop study run lean_vs_react" in n for n in table.notes)
    suites = report.suite_table(LEAN).rows
    assert (len(suites), sum(int(r[2]) for r in suites)) == (15, len(ROWS))


def test_what_is_missing_is_said() -> None:
    rows = [{**r, "cached_tokens": None, "new_tokens": None} for r in ROWS]
    rows[3].update(error="ModelError: gone", resolved=False)
    table = report.arm_table(replace(LEAN, rows=rows[:-1]))
    assert "1 pair of task and seed is left out: not every arm was tried on them." in table.notes
    assert table.notes[0].startswith("Crashed: react-native in 1 of 36 episodes (1 ModelError).")
    assert {(row[1], row[6]) for row in table.rows} == {("35", "-")}


def test_a_text_is_put_between_the_marks_of_a_file_and_a_file_without_them_is_left_alone(tmp_path: Path) -> None:
    readme, two = tmp_path / "README.md", "<!-- two: written by x.py -->\n2\n<!-- end of two -->\n"
    frame = "a\n<!-- one: written by x.py -->\n{}<!-- end of one -->\nb\n" + two
    readme.write_text(frame.format("old\n"), "utf-8")
    for text in ("| new |", r"| \1 \g<2> |\n\n- and more"):  # as it is: no pattern's references
        report.write_between(readme, "one", text)
        assert readme.read_text("utf-8") == frame.format(f"\n{text}\n\n")
    for text in ("", "<!-- one: written by x -->\n", "<!-- end of one -->", two):
        readme.write_text(text, "utf-8")
        with pytest.raises(ValueError, match="'one'"):
            report.write_between(readme, "one", "new")
        assert readme.read_text("utf-8") == text


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda: report.resolve_rates(LEAN), "code: 14 of 36 (39 %, interval 25 to 55)"),  # Wilson's
        (lambda: report.resolve_rates(LEAN, by_suite=True), "tables"),
        (lambda: report.stacked_causes(LEAN), "react-native"),
        (lambda: report.overhead_by_turn(report.mean_session(LEAN.only("lean"), tasks=2)), "in that of turn"),
    ],
)
def test_a_figure_says_its_numbers(draw: Callable[[], Any], says: str) -> None:
    assert says in report.alt_text(draw())


def test_differences_are_those_of_the_comparison() -> None:
    frame = compare(LEAN, baseline="react-text").frame()
    (row,) = frame.query("measure == 'resolved' and arm == 'code'").to_dict("records")
    said = report.alt_text(report.paired_differences(LEAN, baseline="react-text")).replace("−", "-")
    assert (f"{100 * row['estimate']:+.0f}" in said, "react-text" in said) == (True, True)


@pytest.mark.slow
def test_a_figure_is_the_same_again_and_its_frame_is_only_read(tmp_path: Path) -> None:
    frame = LEAN.frame()
    one, two = (report.save(report.resolve_rates(frame, by_suite=True), tmp_path / name) for name in ("one", "two"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    pd.testing.assert_frame_equal(frame, LEAN.frame())


def test_a_response_has_a_point_for_each_value(tmp_path: Path) -> None:
    crossed = load_study(crossed_study(tmp_path))
    assert "max_tokens 100: 2 of 4 (50 %" in report.alt_text(report.factor_response(crossed, "max_tokens"))
    for factor in (None, "luck"):
        with pytest.raises(StudyError, match="max_depth"):
            report.factor_response(crossed, factor)


def test_arms_are_named_in_the_legend_inside_the_figure() -> None:
    rows = [{**r, "arm": f"an arm with a long name: {r['arm']}"} for r in LEAN.only("code", "lean").rows]
    made = report.resolve_against_tokens(Results(rows))
    assert "On the Pareto front: " in report.alt_text(made)
    made.canvas.draw()
    legend = next(iter([*made.legends, *(axes.get_legend() for axes in made.axes if axes.get_legend())]))
    named = {text.get_text().partition("  ")[0] for text in legend.get_texts()}
    assert named == {*(row["arm"] for row in rows), "Pareto front"}
    box, page = legend.get_window_extent(), made.bbox
    assert (box.x0 >= page.x0 - 1, box.x1 <= page.x1 + 1) == (True, True)
    assert made._repr_png_().startswith(b"\x89PNG")  # a picture in any notebook


def test_figures_are_drawn_in_the_axes_of_a_figure_of_ones_own() -> None:
    pyplot = pytest.importorskip("matplotlib.figure")
    made = pyplot.Figure(layout="constrained")
    axes = made.subplots(2, 2)
    assert report.paired_differences(LEAN, axes[0], baseline="lean") is made
    report.resolve_rates(LEAN, axes[1, 0], intervals=False)
    report.stacked_causes(LEAN, axes[1, 1])
    said = [part in report.alt_text(made) for part in ("Paired differences", "14 of 36 (39 %)", "Stacked bars")]
    notes = [text.get_text() for part in made.axes for text in part.texts]
    assert (said, any("95 % intervals" in note for note in notes)) == ([True] * 3, True)
    with pytest.raises(StudyError, match="axes must be 2"):
        report.paired_differences(LEAN, axes[0, 0])


def test_twenty_two_arms_leave_room_for_the_points() -> None:
    rows = [{**r, "arm": f"{r['arm']}-with-a-suffix-{n}"} for n in range(5) for r in LEAN.rows]
    made = report.resolve_against_tokens(Results(rows))
    made.canvas.draw()
    assert made.axes[0].get_window_extent().height > made.dpi * 1.8


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda: report.stacked_causes(LEAN.frame().assign(by_cause=None)), "says where"),
        (lambda: report.resolve_against_tokens(Results([])), "draw"),
        (lambda: report.save(report.resolve_rates(LEAN), Path(__file__) / "figure"), "choose another folder"),
        (lambda: report.overhead(pd.DataFrame({"turn": [1], "cause": ["task"]})), "tokens"),
        (lambda: report.overhead(frame().iloc[:0]), "no rows"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(draw: Callable[[], Any], says: str) -> None:
    with pytest.raises(StudyError, match=says) as caught:
        draw()
    assert "\n" not in str(caught.value)


# -- overhead in the window and on the bill: the two are told apart, and every token is in one of them


def frame(turns: int = 4, once: int = 90, each: int = 40, markers: int = 5, arm: str = "react") -> pd.DataFrame:
    """A session whose strategy says `once` tokens at first and `each` before every reply."""
    rows = []
    for turn in range(1, turns + 1):
        before = turn - 1
        rows += [
            (arm, turn, "task", 30, 30 * (turn > 1)),
            (arm, turn, "scaffold:once", once, once * (turn > 1)),
            (arm, turn, "scaffold:each", each * turn, each * before),
            (arm, turn, "template", markers * turn, markers * before),
            (arm, turn, "tool_result", 100 * before, 100 * max(0, before - 1)),
        ]
    return pd.DataFrame(rows, columns=["arm", "turn", "cause", "tokens", "resent"])


def test_the_claim_counts_the_window_and_not_the_bill() -> None:
    """About 90 once and 40 a turn: 1,090 tokens after 25 turns, which every turn before has paid for as well."""
    found = report.overhead(frame(25, markers=0)).loc["react", 25]
    assert found.window == 90 + 25 * 40 == 1_090
    assert found.billed == 25 * 90 + 40 * sum(range(1, 26)) == 15_250
    assert found.cached == pytest.approx(1_090 + 0.1 * (15_250 - 1_090))


@given(st.integers(1, 30), st.integers(0, 900), st.integers(0, 900), st.integers(0, 9))
def test_what_is_billed_is_all_but_the_work(turns: int, once: int, each: int, markers: int) -> None:
    made = frame(turns, once, each, markers)
    rest = made[~made["cause"].isin(["task", "tool_result"])]
    found = report.overhead(made).iloc[-1]
    new = rest["tokens"].sum() - rest["resent"].sum()
    assert (found.billed, found.window) == (rest["tokens"].sum(), new)
    assert found.cached == pytest.approx(new + 0.1 * rest["resent"].sum())


def test_a_ledger_is_such_a_frame() -> None:
    """The frame of one run; its overhead is what the ledger itself calls scaffold, beside template and tools."""

    def look(number: int) -> str:
        """Look at one."""
        return "nothing"

    replies = [Reply("", (ToolCall(str(n), "look", f'{{"number": {n}}}'),)) for n in range(3)]
    model = ScriptedModel([*replies, Reply("", (ToolCall("9", "final_answer", '{"answer": 1}'),))])
    said = (ThoughtPrompt("Think."), Nudge("Done?"))
    agent = LeanAgent(model=model, presentation="native", budget=Budget(steps=9), injectors=said, tools=(look,))
    outcome = agent.run("How many?")
    found = report.overhead(outcome.ledger.frame())
    added = sum(tokens for cause, tokens in outcome.ledger.by_cause().items() if cause in ("template", "tool_schema"))
    assert len(found) == 4
    assert found.billed.iloc[-1] == outcome.ledger.scaffold_tokens + added > added


def test_a_second_call_of_a_turn_is_billed_but_not_present_twice() -> None:
    rows = [(1, 1, 0, 10, 0), (2, 1, 0, 12, 10), (3, 2, 0, 12, 12), (4, 2, 1, 99, 0)]
    made = pd.DataFrame(rows, columns=["call", "turn", "depth", "tokens", "resent"])
    found = report.overhead(made.assign(cause="system"))
    assert (list(found.window), list(found.billed)) == ([12, 12], [22, 34])  # the sub-agent's prompt is not this loop's


def test_one_turn_of_one_run_is_drawn() -> None:
    one_turn = frame(1, once=0, each=0).drop(columns="arm")
    assert len(report.overhead_by_turn(one_turn).axes) == 2
