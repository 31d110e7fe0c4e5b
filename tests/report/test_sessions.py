"""The mean session of a study: what its traces sum to, turn by turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlm_loop.agents.past_run import ledger_of
from rlm_loop.report import mean_session, overhead_by_turn
from rlm_loop.study import StudyError, load_study

RECORDED = Path(__file__).parents[2] / "experiments" / "lean_vs_react" / "results"


def test_the_mean_of_two_recorded_runs() -> None:
    results = load_study(RECORDED)
    frame = mean_session(results, arms=["lean"], tasks=2, share=1.0)
    assert set(frame["running"]) == {2}
    whole = {(r["suite"], r["task"]) for r in results.rows if r["arm"] == "lean"}
    first = [r for r in results.rows if r["arm"] == "lean" and (r["suite"], r["task"]) in whole][:2]
    rows = [row for r in first for row in ledger_of(results.trace(r)).rows if row.depth == 0 and row.turn == 1]
    mine = frame[frame["turn"] == 1].set_index("cause")["tokens"]
    assert mine["system"] == round(sum(row.tokens for row in rows if row.cause == "system") / 2)
    assert "lean: " in str(overhead_by_turn(frame).get_label())


def test_a_trace_that_is_gone_is_named(tmp_path: Path) -> None:
    results = replace(load_study(RECORDED), folder=str(tmp_path))
    with pytest.raises(StudyError, match=r"the trace traces/lean/.* cannot be read"):
        mean_session(results, arms=["lean"], tasks=1)
