"""Arms as doses: read from their names, compared with the one without, in pairs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_rows import made_results

from rlm_loop.report import by_dose, dose_response, dose_table, save
from rlm_loop.study import Results, StudyError
from rlm_loop.study.statistics import bootstrap, sign_test

PLAIN = (0.5, 100, 1, 1.0)
ARMS = ("thought-832", "lean", "thought-52", "nudge-every-1", "nudge-every-3", "thought-208")


def dosed() -> Results:
    """`lean` resolves the even tasks, a small thought all, a large one none; a thought costs its characters."""
    results = made_results(tasks=6, arms=dict.fromkeys(ARMS, PLAIN))
    for row in results.rows:
        even = int(row["task"].split("-")[1]) % 2 == 0
        size = int(row["arm"].split("-")[1]) if row["arm"].startswith("thought") else 0
        row["resolved"] = {52: True, 832: False}.get(size, even)
        row["input_tokens"], row["output_tokens"] = 1_000 + size, 50
    return results


def test_doses_are_read_from_names_and_ordered() -> None:
    found = by_dose(dosed())
    assert [(d.injector, d.label, d.arm.arm) for d in found] == [
        ("thought", "none", "lean"),
        ("thought", "52", "thought-52"),
        ("thought", "208", "thought-208"),
        ("thought", "832", "thought-832"),
        ("nudge", "none", "lean"),
        ("nudge", "every 3 turns", "nudge-every-3"),
        ("nudge", "every turn", "nudge-every-1"),
    ]


def test_a_digit_in_a_name_is_no_dose_where_the_arm_injects_nothing() -> None:
    made = made_results(tasks=2, arms=dict.fromkeys(("code-2", "thought-52"), PLAIN))
    arms = {arm: {"local": {"settings": {"injectors": of}}} for arm, of in (("code-2", []), ("thought-52", [{}]))}
    found = by_dose(replace(made, lock={**made.lock, "arms": arms}))
    assert [(d.injector, d.label, d.arm.arm) for d in found] == [
        ("thought", "none", "code-2"),
        ("thought", "52", "thought-52"),
    ]


def test_doses_are_paired_with_none() -> None:
    found = {d.arm.arm: d for d in by_dose(dosed())}
    assert (found["thought-52"].gained, found["thought-52"].lost) == (9, 0)
    assert (found["thought-832"].gained, found["thought-832"].lost) == (0, 9)
    assert (found["nudge-every-1"].gained, found["nudge-every-1"].p) == (0, 1.0)
    assert found["thought-52"].p == pytest.approx(2 / 2**9)
    assert [found["thought-832"].more, found["thought-832"].low, found["thought-832"].high] == [832, 832, 832]


def test_a_task_that_was_met_twice_is_not_two_tasks() -> None:
    """Else a study would be made surer by running it twice."""
    once = dosed()
    for n, row in enumerate(once.rows):
        row["input_tokens"] += 7 * n % 100
    twice = Results([*once.rows, *({**r, "seed": r["seed"] + 1000} for r in once.rows)], once.lock)
    intervals = [end for d in by_dose(once) for end in (d.more, d.low, d.high)]
    assert len(set(intervals)) > 9
    assert [end for d in by_dose(twice) for end in (d.more, d.low, d.high)] == pytest.approx(intervals)


def test_a_frame_is_as_good() -> None:
    results = dosed()
    assert dose_table(results.frame()).rows == dose_table(results).rows


def test_tokens_that_are_not_known_are_not_zero() -> None:
    results = dosed()
    next(r for r in results.rows if r["arm"] == "thought-52")["output_tokens"] = None
    found = {d.arm.arm: d for d in by_dose(results)}
    assert found["thought-52"].more is None
    assert found["thought-208"].more == 208
    assert "not known" in dose_table(results.frame()).to_text()


@pytest.mark.parametrize("arms", [("lean", "code", "thought-52"), ("thought-52", "thought-208"), ("lean",)])
def test_without_one_arm_to_compare_with_it_says_so(arms: tuple[str, ...]) -> None:
    with pytest.raises(StudyError, match="one arm without a number"):
        by_dose(made_results(tasks=2, arms=dict.fromkeys(arms, PLAIN)))


def test_the_figure_says_in_words_what_it_shows(tmp_path: Path) -> None:
    made = dose_response(dosed())
    assert len(made.axes) == 4
    assert "thought: none: 9 of 18 resolved, 1,050 tokens a task; 52: 18 of 18 resolved" in str(made.get_label())
    png, svg = save(dose_response(dosed()), tmp_path / "doses")
    assert png.stat().st_size > 5_000
    assert "18 of 18 resolved" in svg.read_text("utf-8")


@pytest.mark.parametrize(
    ("here", "there", "p"), [(0, 0, 1.0), (8, 0, 0.0078125), (9, 2, 0.0654296875), (14, 0, 2 / 2**14)]
)
def test_mcnemar(here: int, there: int, p: float) -> None:
    """The values that the README of lean_vs_react rounds to 0.008, 0.07 and 0.0001."""
    assert sign_test(here, there) == sign_test(there, here) == pytest.approx(p)


@given(st.lists(st.integers(-500, 500), min_size=2, max_size=40))
def test_the_bootstrap_interval_holds_the_mean_and_repeats(values: list[int]) -> None:
    found = bootstrap(values, resamples=200)
    assert found is not None
    assert found == bootstrap(values, resamples=200)
    assert min(values) <= found[0] <= found[1] <= max(values)


def test_the_bootstrap_has_the_width_of_a_normal_interval() -> None:
    """Forty values of a known spread: 2.02 standard errors (t, not normal) either side, give or take."""
    values = [float(v) for v in range(40)]
    found = bootstrap(values)
    assert found is not None
    error = math.sqrt(sum((v - 19.5) ** 2 for v in values) / 39 / 40)
    assert found[0] == pytest.approx(19.5 - 2.02 * error, abs=0.5)
    assert found[1] == pytest.approx(19.5 + 2.02 * error, abs=0.5)
    assert bootstrap([1.0]) is None
