"""One denominator: what an episode counts as is the same in the summary, the comparison and the figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from paired_rows import Pair, paired

from rlm_loop.study import Results, StudyError, compare, is_resolved
from rlm_loop.study.statistics import wilson_interval


@pytest.mark.parametrize(
    ("row", "counts_as"),
    [
        (None, None),
        ({"resolved": True, "error": None}, True),
        ({"resolved": False, "error": None}, False),
        ({"resolved": None, "error": None}, None),
        ({"resolved": False, "error": "RuntimeError: the loop broke"}, False),
        ({"resolved": False, "error": "RateLimited: for good", "error_class": "RateLimited"}, False),
        ({"resolved": False, "error": "OSError: [Errno 28] No space left on device"}, None),
        ({"resolved": False, "error": "ModuleNotFoundError: No module named 'mcp'"}, None),
        ({"resolved": False, "error": "TraceUnwritable: cannot write the trace x: No space left on device"}, None),
        ({"resolved": False, "error": "WorkerLost: its worker ended in mid-episode"}, None),
        ({"resolved": False, "error": "AuthenticationFailed: no key"}, None),
        ({"resolved": False, "error": "ModelUnreachable: is the server running?", "calls": 0}, None),
        ({"resolved": False, "error": "ModelUnreachable: broke off", "calls": 3}, False),
    ],
)
def test_what_an_episode_counts_as(row: dict[str, Any] | None, counts_as: bool | None) -> None:
    assert is_resolved(row) is counts_as


def rates(results: Results) -> tuple[list[tuple[int, int]], list[tuple[float, float]]]:
    """Of the summary: resolved and judged of each arm.  Of the comparison: the rates of each arm and the baseline."""
    found = compare(results, "base").contrasts
    return (
        [(s.resolved, s.judged) for s in results.summary()],
        [(c.value or 0.0, c.baseline_value or 0.0) for c in found if c.measure == "resolved"],
    )


def test_an_arm_that_crashes_on_half_of_the_tasks_resolves_half_of_them_everywhere() -> None:
    half: list[Pair] = [("y", "y")] * 30 + [("?", "y")] * 30
    summary, compared = rates(paired(half))
    assert summary == [(60, 60), (30, 60)]
    assert compared == [(0.5, 1.0)]


def test_an_arm_that_always_crashes_takes_nothing_from_the_others() -> None:
    results = paired([("?", "y")] * 6 + [("?", "n")] * 6)
    assert results.left_out == 0
    summary, compared = rates(results)
    assert summary == [(6, 12), (0, 12)]
    assert compared == [(0.0, 0.5)]
    assert "prompt tokens is not known" in " ".join(compare(results).sentences())


def test_an_arm_that_never_began_is_not_scored_and_empties_nothing() -> None:
    rows = [
        {**r, "error": "AuthenticationFailed: no key", "error_class": "AuthenticationFailed", "resolved": False}
        if r["arm"] == "lean"
        else r
        for r in paired([("n", "y")] * 12).rows
    ]
    results = replace(paired([]), rows=rows)
    assert [(s.n, s.resolved, s.judged, s.rate) for s in results.summary()] == [(12, 12, 12, 1.0), (12, 0, 0, None)]
    assert "whether tasks were resolved is not known" in " ".join(compare(results).sentences())


def test_what_is_under_way_is_left_out_and_not_lost() -> None:
    results = paired([("y", "y")] * 10 + [("-", "y")] * 5)
    assert results.left_out == 5
    found = compare(results, "base").contrasts[0]
    assert (found.pairs, found.missing, found.estimate) == (10, 0, 0.0)


def test_two_rows_of_one_cell_are_refused_and_named() -> None:
    one = paired([("y", "n")] * 3)
    twice = replace(one, rows=[*one.rows, {**one.rows[0], "resolved": True}])
    with pytest.raises(
        StudyError, match="two rows of arm 'base' on task 't0' of suite 's', seed 0, with model local:m"
    ):
        compare(twice)


def test_ten_equal_seeds_of_ten_tasks_are_ten_tasks() -> None:
    """5 of 10 tasks are resolved in all of their 10 seeds: the rate is known as of 10 tasks, not of 100."""
    outcomes: list[Pair] = [("y", "y") if i // 10 % 2 else ("n", "n") for i in range(100)]
    found = paired(outcomes, seeds=10).summary()[0]
    assert (found.resolved, found.judged, found.rate) == (50, 100, 0.5)
    low, high = wilson_interval(0.5, 10)
    assert found.low <= low < 0.25
    assert found.high >= high > 0.75
    alone = paired(outcomes).summary()[0]
    assert [alone.low, alone.high] == pytest.approx([float(x) for x in wilson_interval(0.5, 100)])
