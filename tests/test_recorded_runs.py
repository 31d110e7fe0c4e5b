"""Every recorded run of the repository: the rows of each call sum to what the model reported, and nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop.past_run import ledger_of
from rlm_loop.study.archive import TRACES, read_packed
from rlm_loop.trace_reader import read

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


@pytest.mark.parametrize(
    "archive", sorted(EXPERIMENTS.rglob(TRACES)), ids=lambda path: str(path.parent.relative_to(EXPERIMENTS))
)
def test_rows_sum_to_the_bill_and_nothing_is_left(archive: Path, tmp_path: Path) -> None:
    calls = 0
    for name, data in read_packed(archive.parent).items():
        file = tmp_path / "trace.jsonl"
        file.write_bytes(data)
        record = read(file)
        ledger = ledger_of(record)
        for call in ledger.calls:
            if call.usage.input_tokens is None:  # cancelled before the reply: nobody knows
                assert call.doubt, name
                continue
            calls += 1
            assert sum(row.tokens for row in call.rows) == call.usage.input_tokens, (name, call.call)
            assert (call.residual, call.exact, call.counted) == (0, True, call.usage.input_tokens), (name, call.call)
            assert all(0 <= row.resent <= row.tokens for row in call.rows)
            assert sum(row.cached or 0 for row in call.rows) == (call.usage.cached_tokens or 0)
    assert calls
