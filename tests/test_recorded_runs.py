"""Every recorded run of the repository: the rows of each call sum to what the model reported, and nothing is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.agents.past_run import ledger_of
from rlm_loop.study.store.archive import TRACES, read_packed
from rlm_loop.traces.reader import read
from rlm_loop.traces.redact import Redactor

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


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def test_nothing_that_is_published_looks_like_a_secret() -> None:
    """Nor is anything of it taken for one: what models wrote in these runs stays as they wrote it."""
    hide, seen = Redactor(), set[str]()
    for archive in sorted(EXPERIMENTS.rglob(TRACES)):
        for data in read_packed(archive.parent).values():
            seen |= {text for line in data.decode().splitlines() for text in texts(json.loads(line))}
    assert len(seen) > 10_000
    assert [text for text in seen if hide(text) != text] == []
